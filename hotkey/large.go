package hotkey

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Limits of what a loop keeps of large values.
const (
	maxLarge   = 16
	largeFloor = 16 << 10 // bytes; smaller ones are not looked at
	largeKeep  = time.Minute
)

// largest are the largest values that one loop has seen within the last minute, one for
// a key. A value that is as large as the smallest of them does not displace it: of many
// equal ones the first are kept, for their minute. It must be made by newLargest.
type largest struct {
	from   int // the size from which a value is looked at
	n      int
	values [maxLarge]largeValue
}

type largeValue struct {
	hash    uint64
	size    int           // the largest seen
	times   uint32        // seen since the last sample
	last    time.Duration // the last sample before which it was seen
	keySize uint8
	key     [maxKey]byte
}

func newLargest() *largest { return &largest{from: largeFloor} }

func (l *largest) saw(hash uint64, key []byte, size int) {
	at := l.find(hash)
	switch {
	case at >= 0:
	case l.n < maxLarge:
		at = l.n
		l.n++
	case size > l.from:
		at = l.smallest()
	default:
		return
	}
	v := &l.values[at]
	if v.hash != hash || v.size == 0 {
		v.hash, v.size, v.times = hash, 0, 0
		v.keySize = uint8(copy(v.key[:], key))
	}
	v.size = max(v.size, size)
	v.times++
	l.limit()
}

func (l *largest) find(hash uint64) int {
	return slices.IndexFunc(l.values[:l.n], func(v largeValue) bool { return v.hash == hash })
}

func (l *largest) smallest() (at int) {
	for i := range l.values[:l.n] {
		if l.values[i].size < l.values[at].size {
			at = i
		}
	}
	return at
}

func (l *largest) limit() {
	l.from = largeFloor
	if l.n == maxLarge {
		l.from = l.values[l.smallest()].size
	}
}

// sample copies l to dst and forgets what was not seen for a minute.
func (l *largest) sample(dst *largest, now time.Duration) {
	for i := 0; i < l.n; {
		v := &l.values[i]
		if v.times > 0 {
			v.last = now
		}
		if now-v.last < largeKeep {
			i++
			continue
		}
		l.n--
		l.values[i], l.values[l.n] = l.values[l.n], largeValue{}
	}
	l.limit()
	dst.n = l.n
	copy(dst.values[:], l.values[:l.n])
	for i := range l.values[:l.n] {
		l.values[i].times = 0
	}
}

// Large is a key whose value is large.
type Large struct {
	Key  string
	Hash uint64
	Size int           // bytes, of the largest value seen since it was found
	For  time.Duration // since it was found
	Rate float64       // how often the value came or went, a second, smoothed
}

// heavy is a large value that the collector follows.
type heavy struct {
	Large
	rate    rate
	since   time.Duration
	present bool // in the samples of this tick
	told    bool // by Alert
}

// weigh takes in the large values of all loops. There are at most 16 of each loop.
func (c *Collector) weigh(samples []*Sample, dt, now time.Duration) {
	for _, s := range samples {
		for i := range s.large.values[:s.large.n] {
			c.lift(&s.large.values[i], now)
		}
	}
	k, slow := weights(dt, c.cfg.Smooth)
	for hash, h := range c.heavy {
		h.rate.tick(dt.Seconds(), k, slow)
		if !h.present {
			delete(c.heavy, hash)
		}
		h.present = false
	}
}

func (c *Collector) lift(v *largeValue, now time.Duration) {
	if v.size < c.cfg.LargeValue {
		return
	}
	h := c.heavy[v.hash]
	if h == nil {
		h = &heavy{Large: Large{Key: string(v.key[:v.keySize]), Hash: v.hash}, since: now}
		c.heavy[v.hash] = h
	}
	h.present = true
	h.Size = max(h.Size, v.size)
	h.rate.now += float64(v.times)
}

// alertEvery keeps somebody who stores ever larger values from filling the log.
const alertEvery = time.Second

// Alert returns the largest of the keys with large values that it has not returned
// before, false if there is none. It returns one a second at most, and is meant to be
// called after each Collect, for the log. A key that had no large value for a minute is
// forgotten, and may be returned again.
func (c *Collector) Alert() (l Large, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alerted && c.last-c.lastAlert < alertEvery {
		return l, false
	}
	var next *heavy
	for _, h := range c.heavy {
		if !h.told && (next == nil || h.Size > next.Size) {
			next = h
		}
	}
	if next == nil {
		return l, false
	}
	next.told, c.alerted, c.lastAlert = true, true, c.last
	return c.describeLarge(next), true
}

func (c *Collector) describeLarge(h *heavy) Large {
	l := h.Large
	l.For, l.Rate = c.last-h.since, h.rate.fast
	return l
}

// reportLarge returns the largest k, in order.
func (c *Collector) reportLarge(k int) (all []Large) {
	for _, h := range c.heavy {
		all = append(all, c.describeLarge(h))
	}
	slices.SortFunc(all, func(a, b Large) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Key, b.Key))
	})
	return all[:min(k, len(all))]
}
