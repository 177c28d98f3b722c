package coalesce

import (
	"cmp"
	"fmt"
	"time"
)

// LeaseConfig sets up [Leases]. The zero value has the defaults.
type LeaseConfig struct {
	// Duration is how long a client that saw a miss is waited for; 0 means 200 ms.
	Duration time.Duration
	// MaxLeases is how many keys may have leases; further misses are passed on. 0 means
	// 65,536.
	MaxLeases int
	// MaxParked is how many gets may be parked, over all keys; 0 means 65,536.
	MaxParked int
	// Fruitless is after how many leases of a key in a row that nobody used the misses
	// of that key are passed on for a while: there is nothing in the database either. 0
	// means never.
	Fruitless int
	// Pause is how long that while is; 0 means ten times Duration.
	Pause time.Duration
	// Began is called when there is a lease again after there was none, and so when
	// [Leases.Expire] must be called again. It must not wait, nor call the set. It may be
	// nil.
	Began func()
}

func (c *LeaseConfig) validate() error {
	switch {
	case c.Duration < 0:
		return fmt.Errorf("cannot use leases of %v: it is negative", c.Duration)
	case c.Pause < 0:
		return fmt.Errorf("cannot use a pause of %v: it is negative", c.Pause)
	case c.MaxLeases < 0 || c.MaxParked < 0 || c.Fruitless < 0:
		return fmt.Errorf("cannot use %d leases, %d parked, %d fruitless: none may be negative", c.MaxLeases, c.MaxParked, c.Fruitless)
	}
	return nil
}

func (c *LeaseConfig) complete() {
	c.Duration = cmp.Or(c.Duration, 200*time.Millisecond)
	c.MaxLeases = cmp.Or(c.MaxLeases, 65536)
	c.MaxParked = cmp.Or(c.MaxParked, 65536)
	c.Pause = cmp.Or(c.Pause, 10*c.Duration)
	if c.Began == nil {
		c.Began = func() {}
	}
}

// LeaseStats says what leases did since the start, and how many there are.
type LeaseStats struct {
	Granted uint64 // misses passed on with a lease
	Parked  uint64 // gets that were parked
	Reread  uint64 // gets that were sent back to the server at once
	Passed  uint64 // misses passed on without a lease
	Used    uint64 // leases that ended with a write
	Expired uint64 // leases that ended with their time
	Gone    uint64 // leases that ended with their holder

	Keys    int // that are remembered now
	Waiting int // gets parked now
}

// Add adds the figures of other leases.
func (s *LeaseStats) Add(o LeaseStats) {
	s.Granted += o.Granted
	s.Parked += o.Parked
	s.Reread += o.Reread
	s.Passed += o.Passed
	s.Used += o.Used
	s.Expired += o.Expired
	s.Gone += o.Gone
	s.Keys += o.Keys
	s.Waiting += o.Waiting
}
