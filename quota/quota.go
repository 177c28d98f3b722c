// Package quota bounds what somebody may ask of what many share: how much a second, how much
// at a time, and how much of it may be asked again.
//
// A rate is kept by the generic cell rate algorithm (ITU-T I.371): a token bucket that is one
// instant, the one at which the next request would be neither early nor late. So a request is
// charged by one atomic operation, whoever shares the quota, and nothing has to refill it. The
// price is a cache line that all who share it write to with each request.
package quota

import (
	"fmt"
	"sync/atomic"
	"time"
)

// MaxRate is the highest rate of a quota, in requests a second.
const MaxRate = 1e7

// Config says what may be asked. The zero value bounds nothing.
type Config struct {
	// Rate is how many requests there may be a second, at most MaxRate; 0 means any number.
	Rate float64
	// Burst is how many may come at once; 0 means as many as the rate is in 100 ms, at
	// least 1.
	Burst int
	// Concurrent is how many may be under way at a time; 0 means any number.
	Concurrent int
}

// Validate says what is wrong with a configuration.
func (c *Config) Validate() error {
	switch {
	case !(c.Rate >= 0 && c.Rate <= MaxRate):
		return fmt.Errorf("a rate of %v is not between 0 and %d requests a second", c.Rate, int(MaxRate))
	case c.Rate > 0 && c.Rate < 0.001:
		return fmt.Errorf("a rate of %v is below one request in 1000 s", c.Rate)
	case c.Burst < 0:
		return fmt.Errorf("a burst of %d is negative", c.Burst)
	case c.Burst > 0 && c.Rate == 0:
		return fmt.Errorf("a burst of %d wants a rate", c.Burst)
	case c.Concurrent < 0:
		return fmt.Errorf("%d requests under way are negative", c.Concurrent)
	}
	return nil
}

// Verdict is what becomes of a request.
type Verdict uint8

// The verdicts.
const (
	// Passed: it may go on, and Done must follow.
	Passed Verdict = iota
	// TooFast: it is beyond the rate.
	TooFast
	// TooMany: too many are under way.
	TooMany
	numVerdicts
)

// Quota is what one of those who share may ask. Nil bounds nothing. All methods may be called
// concurrently, and none allocates but New and Another.
type Quota struct {
	step  int64 // nanoseconds between two requests; 0 means that there is no rate
	ahead int64 // by how much requests may come early
	most  int64 // under way; 0 means any number
	count *counters

	_        [96]byte // what follows is written with each request
	next     atomic.Int64
	underWay atomic.Int64
	_        [112]byte
}

// counters are what quotas have refused.
type counters [numVerdicts]atomic.Uint64

// New returns a quota of which nothing is used. It fails as Config.Validate does, and is nil
// if c bounds nothing.
func New(c Config) (*Quota, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c == (Config{}) {
		return nil, nil
	}
	q := &Quota{most: int64(c.Concurrent), count: new(counters)}
	if c.Rate > 0 {
		if c.Burst == 0 {
			c.Burst = max(1, int(c.Rate/10))
		}
		step := float64(time.Second) / c.Rate
		q.step, q.ahead = int64(step), int64(step*float64(c.Burst-1))
	}
	return q, nil
}

// Another returns a quota with the same bounds, which is used by itself. What the two refuse
// is counted together.
func (q *Quota) Another() *Quota {
	return &Quota{step: q.step, ahead: q.ahead, most: q.most, count: q.count}
}

// Ask reports whether a request that counts as n may go on at a time, measured from any fixed
// instant. It may when one would be in time, and what it counts for beyond that is waited for
// by those who come after it: so the rate holds in the long run, and a large request is late
// and not impossible. Callers that race for the last place may all be refused.
func (q *Quota) Ask(now time.Duration, n int) Verdict {
	if q == nil {
		return Passed
	}
	if q.most > 0 && q.underWay.Add(1) > q.most {
		q.underWay.Add(-1)
		return q.refuse(TooMany)
	}
	for q.step > 0 {
		next := q.next.Load()
		if next > int64(now)+q.ahead {
			q.Done()
			return q.refuse(TooFast)
		}
		if q.next.CompareAndSwap(next, max(next, int64(now))+int64(n)*q.step) {
			break
		}
	}
	return Passed
}

func (q *Quota) refuse(v Verdict) Verdict {
	q.count[v].Add(1)
	return v
}

// Pass is Ask for what may not be refused any more: Done must follow.
func (q *Quota) Pass(now time.Duration, n int) {
	if q.most > 0 {
		q.underWay.Add(1)
	}
	q.Charge(now, n)
}

// Charge counts what passed for n more.
func (q *Quota) Charge(now time.Duration, n int) {
	for q.step > 0 {
		next := q.next.Load()
		if q.next.CompareAndSwap(next, max(next, int64(now))+int64(n)*q.step) {
			return
		}
	}
}

// Done says that a request that passed is over.
func (q *Quota) Done() {
	if q != nil && q.most > 0 {
		q.underWay.Add(-1)
	}
}

// Unused reports whether a quota is at a time as if it were new.
func (q *Quota) Unused(now time.Duration) bool {
	return q.next.Load() <= int64(now) && q.underWay.Load() == 0
}

// Refused returns how many requests were refused so far, for one reason.
func (q *Quota) Refused(v Verdict) uint64 { return q.count[v].Load() }

// UnderWay returns how many requests are under way, 0 where there is no bound.
func (q *Quota) UnderWay() int { return int(q.underWay.Load()) }
