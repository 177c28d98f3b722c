package hotkey

import (
	"sync"
	"sync/atomic"
	"time"
)

// Collector knows the outstanding keys of all loops, and decides which are hot. All
// methods may be called concurrently. Times are measured from any fixed instant.
//
// A key is hot when its smoothed share of the traffic is above a limit in two of three
// ticks, and stays so until it has been below half of the limit for some seconds: a key
// that hovers around a limit must not have copies made and dropped all the time.
type Collector struct {
	heat atomic.Pointer[Heat]

	mu     sync.Mutex // guards all below
	cfg    Config
	tracks map[uint64]*track
	heavy  map[uint64]*heavy
	all    totals
	last   time.Duration
	began  bool

	alerted   bool
	lastAlert time.Duration
}

// NewCollector makes a collector. It fails when a field of c makes no sense.
func NewCollector(c Config) (*Collector, error) {
	c.complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Collector{cfg: c, tracks: make(map[uint64]*track), heavy: make(map[uint64]*heavy)}, nil
}

// SetServers says how many servers share the traffic from now on, at least 1.
func (c *Collector) SetServers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Servers = max(1, n)
}

// Heat returns the hot keys as of the last call of Collect.
func (c *Collector) Heat() *Heat { return c.heat.Load() }

// Change is a key that has reached or lost a level.
type Change struct {
	Key      string
	Hash     uint64
	From, To Level
	Rate     float64 // requests a second
	Share    float64 // of all requests, 0 to 1
	Bytes    float64 // a second
}

// Collect takes in the samples of all loops, which may be used again afterwards, and
// returns the keys that have reached or lost a level. Called much less often than ten
// times a second it finds hot keys later. The first call only sets the clock.
func (c *Collector) Collect(samples []*Sample, now time.Duration) []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	dt := now - c.last
	if c.began && dt <= 0 {
		dt = time.Millisecond // two calls at once: what came must still be counted
	}
	c.last = now
	if !c.began {
		c.began = true
		return nil
	}
	for _, t := range c.tracks {
		t.absent = true
	}
	for _, s := range samples {
		c.add(s)
	}
	c.tick(dt)
	c.weigh(samples, dt, now)
	return c.judge(now)
}

// add adds up one loop's sample.
func (c *Collector) add(s *Sample) {
	c.all.requests.now += float64(s.requests.Total)
	c.all.bytes.now += float64(s.bytes.Total << byteUnit)
	for i := range s.requests.Entries {
		e := &s.requests.Entries[i]
		if t := c.track(e); t != nil {
			t.requests.now += float64(e.Added)
			t.writes.now += float64(e.Writes)
		}
	}
	for i := range s.bytes.Entries {
		e := &s.bytes.Entries[i]
		if t := c.track(e); t != nil {
			t.bytes.now += float64(e.Added) * (1 << byteUnit)
		}
	}
}

// track returns the track of an entry, nil if there is none and nothing came: a sketch
// keeps a name for some seconds after the last request.
func (c *Collector) track(e *Entry) *track {
	t := c.tracks[e.Hash]
	if t == nil && e.Added == 0 {
		return nil
	}
	if t == nil {
		t = &track{key: string(e.Key), hash: e.Hash, since: c.last}
		c.tracks[e.Hash] = t
	}
	t.absent = false
	return t
}

func (c *Collector) tick(dt time.Duration) {
	seconds := dt.Seconds()
	k, slow := weights(dt, c.cfg.Smooth)
	c.all.requests.tick(seconds, k, slow)
	c.all.bytes.tick(seconds, k, slow)
	for _, t := range c.tracks {
		t.requests.tick(seconds, k, slow)
		t.writes.tick(seconds, k, slow)
		t.bytes.tick(seconds, k, slow)
	}
}

// forgetBelow is the heat below which a key that no loop names is forgotten. It bounds
// how many are followed: no more than 16/MinShare can be above.
const forgetBelow = 1.0 / 16

// judge gives every key its level.
func (c *Collector) judge(now time.Duration) (changes []Change) {
	for hash, t := range c.tracks {
		heat := t.heat(&c.cfg, Hot, &c.all)
		t.hot.tick(heat, now, &c.cfg)
		t.severe.tick(t.heat(&c.cfg, Severe, &c.all), now, &c.cfg)
		level := Cold
		switch {
		case t.severe.open:
			level = Severe
		case t.hot.open:
			level = Hot
		}
		if level != t.level {
			changes = append(changes, Change{t.key, hash, t.level, level, t.requests.fast, share(t.requests.fast, c.all.requests.fast), t.bytes.fast})
			t.level, t.since = level, now
		}
		if level == Cold && (t.absent && heat < forgetBelow || t.ceased()) {
			delete(c.tracks, hash)
		}
	}
	if len(changes) > 0 {
		c.publish()
	}
	return changes
}

func (c *Collector) publish() {
	levels := make(map[uint64]Level)
	for hash, t := range c.tracks {
		if t.level != Cold {
			levels[hash] = t.level
		}
	}
	c.heat.Store(newHeat(levels))
}
