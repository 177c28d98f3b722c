package hotkey

import (
	"math"
	"time"
)

// rate is a smoothed number of events a second.
type rate struct {
	fast float64
	slow float64 // over ten times as long
	now  float64 // events of the tick that is being collected
}

// tick takes in what has come in dt seconds; k and slow are the parts by which the new
// value counts.
func (r *rate) tick(dt, k, slow float64) {
	v := r.now / dt
	r.now = 0
	r.fast += k * (v - r.fast)
	r.slow += slow * (v - r.slow)
}

// trend is between -1, when the rate has dropped to nothing, and 1, when it came from
// nothing.
func (r *rate) trend() float64 {
	most := max(r.fast, r.slow)
	if most == 0 {
		return 0
	}
	return (r.fast - r.slow) / most
}

// gate opens for a value that is above 1 often enough, and closes when it has been below
// the leave factor for long enough.
type gate struct {
	open   bool
	recent uint8 // bit i: above 1, i ticks ago
	warm   time.Duration
}

func (g *gate) tick(v float64, now time.Duration, c *Config) {
	g.recent <<= 1
	if v >= 1 {
		g.recent |= 1
	}
	switch {
	case v >= 1 && enough(g.recent&7, c.EnterTicks):
		g.open, g.warm = true, now
	case v >= c.Leave:
		g.warm = now
	case g.open && now-g.warm >= c.LeaveAfter:
		g.open = false
	}
}

func enough(last3 uint8, want int) bool {
	return int(last3&1+last3>>1&1+last3>>2&1) >= want
}

// track is one key that the collector follows.
type track struct {
	key      string
	hash     uint64
	requests rate
	writes   rate
	bytes    rate
	hot      gate
	severe   gate
	level    Level
	since    time.Duration // of the level
	absent   bool          // not in the samples of this tick
}

// heat is the larger of the key's shares of requests and bytes, each as a part of the
// limit of a level.
func (t *track) heat(c *Config, level Level, all *totals) float64 {
	limit := c.limit(level)
	return max(
		min(share(t.requests.fast, all.requests.fast)/limit, t.requests.fast/c.MinRate),
		min(share(t.bytes.fast, all.bytes.fast)/limit, t.bytes.fast/c.MinBytes),
	)
}

// ceased reports whether there is next to nothing left of a key's rates: less than a
// request in 100 s, and a byte a second.
func (t *track) ceased() bool { return t.requests.fast < 0.01 && t.bytes.fast < 1 }

func share(part, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return min(1, part/all)
}

// totals are the rates of all keys together.
type totals struct{ requests, bytes rate }

// weights returns by how much what came in dt counts in a rate with a time constant, and
// in one with ten times that.
func weights(dt, constant time.Duration) (k, slow float64) {
	x := float64(dt) / float64(constant)
	return -math.Expm1(-x), -math.Expm1(-x / 10)
}
