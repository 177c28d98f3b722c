package hotkey

import (
	"bytes"
	"fmt"
	"time"

	"cacherouter/epoch"
)

// NearConfig sets up a [Near] cache.
type NearConfig struct {
	// Bytes is the memory for keys and values, at least 4096.
	Bytes int
	// TTL is how long after it was asked for a value is used, more than 0 and at most
	// 1 s. A write that goes past this router is not seen for as long.
	TTL time.Duration
	// MaxValue is the size of the largest value kept, in bytes; 0 means an eighth of
	// Bytes.
	MaxValue int
	// Epochs are those of the router.
	Epochs *epoch.Table
}

func (c *NearConfig) validate() error {
	switch {
	case c.Bytes < 4096 || c.Bytes > 1<<30:
		return fmt.Errorf("cannot use a near cache of %d bytes: it is not in 4096 to 2^30", c.Bytes)
	case c.TTL <= 0 || c.TTL > time.Second:
		return fmt.Errorf("cannot keep values for %v: it is not above 0 and at most 1s", c.TTL)
	case c.MaxValue < 0:
		return fmt.Errorf("cannot use a largest value of %d bytes: it is negative", c.MaxValue)
	case c.Epochs == nil:
		return fmt.Errorf("cannot use a near cache without epochs: it would not see writes")
	}
	return nil
}

// nearWays is how many places there are for a key.
const nearWays = 4

// Near is a small cache of one loop: the values of the hottest keys, for a second at
// most. It is for one goroutine, except that the Epochs it is tied to are shared. Its
// memory is a ring, written round and round: what is oldest goes first, which with so
// short a life is as good as any order. Times are measured from any fixed instant.
type Near struct {
	cfg   NearConfig
	ring  []byte
	head  uint64 // bytes written since the start, those skipped at the ring's end included
	slots [][nearWays]nearSlot
	mask  uint64
	stats NearStats
}

// nearSlot says where in the ring a key and its value are. What is further back than the
// ring is long has been overwritten.
type nearSlot struct {
	hash    uint64
	epoch   uint64 // 0: the slot is free
	at      uint64 // as head counts
	expires time.Duration
	key     uint32 // sizes
	value   uint32
}

// NearStats counts what became of look-ups and fills, since the start.
type NearStats struct {
	Hits     uint64
	Misses   uint64
	Fills    uint64
	Outdated uint64 // fills that a write overtook
	TooLarge uint64 // fills with a value that is too large
}

// NewNear makes an empty cache. It fails when a field of c makes no sense.
func NewNear(c NearConfig) (*Near, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.MaxValue == 0 {
		c.MaxValue = c.Bytes / 8
	}
	c.MaxValue = min(c.MaxValue, c.Bytes-maxKey)
	sets := 4
	for sets*nearWays*256 < c.Bytes && sets < 1<<14 {
		sets *= 2
	}
	return &Near{cfg: c, ring: make([]byte, c.Bytes), slots: make([][nearWays]nearSlot, sets), mask: uint64(sets - 1)}, nil
}

// Stats returns the counts so far.
func (n *Near) Stats() NearStats { return n.stats }

func (n *Near) set(hash uint64) *[nearWays]nearSlot {
	return &n.slots[hash*0x9e3779b97f4a7c15>>32&n.mask]
}

// Find returns the value of a key. It is part of the cache: valid until the next Fill,
// and not to be changed.
func (n *Near) Find(hash uint64, key []byte, now time.Duration) (value []byte, ok bool) {
	set := n.set(hash)
	for i := range set {
		s := &set[i]
		if s.hash != hash || !n.holds(s, now) {
			continue
		}
		from := int(s.at % uint64(len(n.ring)))
		split := from + int(s.key)
		if bytes.Equal(n.ring[from:split], key) {
			n.stats.Hits++
			return n.ring[split : split+int(s.value) : split+int(s.value)], true
		}
	}
	n.stats.Misses++
	return nil, false
}

// holds reports whether what a slot points to may be used.
func (n *Near) holds(s *nearSlot, now time.Duration) bool {
	return s.epoch != 0 && now < s.expires && n.head-s.at <= uint64(len(n.ring)) && n.cfg.Epochs.Now(s.hash) == s.epoch
}

// Token marks the time at which a key was asked for.
type Token struct {
	hash  uint64
	epoch uint64
	at    time.Duration
}

// Begin is called before a get is sent whose answer might be kept.
func (n *Near) Begin(hash uint64, now time.Duration) Token {
	return Token{hash: hash, epoch: n.cfg.Epochs.Now(hash), at: now}
}

// Fill keeps the answer to a get, and reports whether it did: not if a write of the key
// was on its way when the get was sent, or has been since, or if the value is too large.
// Key and value are copied. What the value is made of is up to the caller.
func (n *Near) Fill(t Token, key, value []byte) bool {
	switch {
	case t.epoch == 0 || n.cfg.Epochs.Now(t.hash) != t.epoch:
		n.stats.Outdated++
		return false
	case len(value) > n.cfg.MaxValue || len(key) > maxKey:
		n.stats.TooLarge++
		return false
	}
	at := n.reserve(len(key) + len(value))
	from := int(at % uint64(len(n.ring)))
	copy(n.ring[from:], key)
	copy(n.ring[from+len(key):], value)
	*n.victim(t.hash, t.at) = nearSlot{t.hash, t.epoch, at, t.at + n.cfg.TTL, uint32(len(key)), uint32(len(value))}
	n.stats.Fills++
	return true
}

// reserve makes room for so many bytes in one piece and returns where.
func (n *Near) reserve(size int) uint64 {
	length := uint64(len(n.ring))
	if left := length - n.head%length; left < uint64(size) {
		n.head += left
	}
	at := n.head
	n.head += uint64(size)
	return at
}

// victim returns the slot for a key: its own, else one that is of no use, else the one
// that expires first. Two keys with one hash share a slot.
func (n *Near) victim(hash uint64, now time.Duration) *nearSlot {
	set := n.set(hash)
	best := &set[0]
	for i := range set {
		s := &set[i]
		if s.epoch != 0 && s.hash == hash {
			return s
		}
		if !n.holds(best, now) {
			continue
		}
		if !n.holds(s, now) || s.expires < best.expires {
			best = s
		}
	}
	return best
}

// Invalidate drops a key from the near caches of all loops, and keeps fills that have
// begun from being kept. It is for writes that were heard of; those that go through this
// router use [epoch.Table.Began] and [epoch.Table.Ended].
func (n *Near) Invalidate(hash uint64) { n.cfg.Epochs.Passed(hash) }

// Add adds the counts of another near cache.
func (s *NearStats) Add(o NearStats) {
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Fills += o.Fills
	s.Outdated += o.Outdated
	s.TooLarge += o.TooLarge
}
