// Package damping keeps a server that comes and goes from taking the keys with it each
// time: every departure costs a penalty that decays, and while the penalty is high the
// server stays out, as a route that flaps does in BGP (RFC 2439). Beside that, each
// departure doubles the time for which the server is held out at least.
//
// Everything is a pure function of a Mark, which is small enough to be agreed between
// routers together with the departure itself, so all of them damp alike.
package damping

import (
	"cmp"
	"math"
	"time"
)

// Config holds the constants. The zero value of a field means its default; the reasons
// for those are in docs/membership.md.
type Config struct {
	// Suppress is the penalty from which a server is kept out; default 2000.
	Suppress int
	// Reuse is the penalty below which it may come back; default 750.
	Reuse int
	// HalfLife is how long a penalty takes to halve; default 1 min.
	HalfLife time.Duration
	// MaxSuppress bounds how long the penalty alone can keep a server out; default 5 min.
	MaxSuppress time.Duration
	// Hold is how long a server that left stays out at least, doubled with each departure;
	// default 10 s.
	Hold time.Duration
	// MaxHold bounds the doubling; default 5 min.
	MaxHold time.Duration
	// Forget is how long a server must have stayed for its departures to be forgotten;
	// default 30 min.
	Forget time.Duration
	// Off turns damping off.
	Off bool
}

// WithDefaults returns the configuration with zero fields filled in.
func (c Config) WithDefaults() Config {
	c.Suppress = cmp.Or(c.Suppress, 2000)
	c.Reuse = cmp.Or(c.Reuse, 750)
	c.HalfLife = cmp.Or(c.HalfLife, time.Minute)
	c.MaxSuppress = cmp.Or(c.MaxSuppress, 5*time.Minute)
	c.Hold = cmp.Or(c.Hold, 10*time.Second)
	c.MaxHold = cmp.Or(c.MaxHold, 5*time.Minute)
	c.Forget = cmp.Or(c.Forget, 30*time.Minute)
	return c
}

// Ceiling is the highest penalty that counts: the one that takes MaxSuppress to decay to
// Reuse.
func (c Config) Ceiling() int {
	return int(float64(c.Reuse) * math.Exp2(float64(c.MaxSuppress)/float64(c.HalfLife)))
}

// Mark is what is known about a server's past. The zero value is a clean record.
type Mark struct {
	// Penalty is the penalty at At.
	Penalty int
	// Flips counts departures that are not forgotten.
	Flips int
	// At is when the mark was last changed.
	At time.Time
	// Suppressed is set when the penalty has reached the suppress limit.
	Suppressed bool
}

// Value returns the penalty as it has decayed by now.
func (m Mark) Value(c Config, now time.Time) int {
	age := max(now.Sub(m.At), 0)
	return int(float64(m.Penalty) * math.Exp2(-float64(age)/float64(c.HalfLife)))
}

// Charge returns the mark after a penalty for something short of a departure.
func (m Mark) Charge(c Config, penalty int, now time.Time) Mark {
	if now.Sub(m.At) > c.Forget {
		m.Flips = 0
	}
	m.Suppressed = m.Holds(c, now)
	m.Penalty = min(m.Value(c, now)+penalty, c.Ceiling())
	m.At = now
	m.Suppressed = m.Suppressed || m.Penalty >= c.Suppress
	return m
}

// Depart returns the mark after a departure at the given time.
func (m Mark) Depart(c Config, penalty int, now time.Time) Mark {
	m = m.Charge(c, penalty, now)
	m.Flips++
	return m
}

// Holds reports whether the penalty keeps the server out: from the moment it has reached
// Suppress until it is under Reuse.
func (m Mark) Holds(c Config, now time.Time) bool {
	return !c.Off && m.Suppressed && m.Value(c, now) > c.Reuse
}

// Until returns the earliest time at which a server that departed at m.At may return.
func (m Mark) Until(c Config) time.Time {
	if c.Off {
		return m.At
	}
	return m.At.Add(max(c.hold(m.Flips), c.decay(m)))
}

// hold is Hold doubled by every departure but the first.
func (c Config) hold(flips int) time.Duration {
	if flips == 0 {
		return 0
	}
	d := c.Hold
	for range flips - 1 {
		if d *= 2; d >= c.MaxHold {
			return c.MaxHold
		}
	}
	return d
}

// decay is how long m's penalty takes to fall to Reuse.
func (c Config) decay(m Mark) time.Duration {
	if !m.Suppressed || m.Penalty <= c.Reuse {
		return 0
	}
	halvings := math.Log2(float64(m.Penalty) / float64(c.Reuse))
	return time.Duration(halvings * float64(c.HalfLife))
}
