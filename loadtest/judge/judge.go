// Package judge loads routers that somebody else runs, breaks nothing, and says whether clients would
// notice what happens to them meanwhile: values that are wrong or out of date, and requests that fail.
package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

// Config says what is asked of whom. Targets, Rate, Keys and For must be set.
type Config struct {
	Targets []string // of routers, each host:port; clients that get no answer from one go on with the next
	Rate    float64  // requests a second, over all
	For     time.Duration
	Keys    int
	Writes  int           // per mille of the requests; a read that misses is followed by a write besides
	Timeout time.Duration // how long a client waits
	// Wait is how long targets may take until they answer and have taken every key at first.
	Wait time.Duration
	// Outage is how long reads, or writes, may fail in a row.
	Outage time.Duration
	Note   func(string) // is told how it goes, may be nil
}

// tellEvery is the time between two notes.
const tellEvery = 5 * time.Second

// valueSize is that of the values, in bytes.
const valueSize = 100

// Run loads the targets until the time is over or ctx ends, and says what was seen. There is no report
// when there is an error.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.Keys < 1 || c.For <= 0 {
		return nil, errors.New("cannot judge: at least one key and some time are needed")
	}
	deadline := time.Now().Add(c.Wait)
	for _, target := range c.Targets {
		conn := caller.Conn{Target: target, Timeout: c.Timeout}
		defer conn.Close()
		err := persist(ctx, deadline, func() error { _, _, err := conn.Get(ledger.Key(0)); return err })
		if err != nil {
			return nil, err
		}
	}
	p := traffic.Plan{
		Targets: c.Targets, Switch: true, Ledger: ledger.New(c.Keys, valueSize), Rate: c.Rate, Writes: c.Writes,
		Refill: true, Timeout: c.Timeout, Seed: 1,
	}
	if err := persist(ctx, deadline, func() error { return traffic.Fill(ctx, p) }); err != nil {
		return nil, err
	}
	begin := time.Now()
	r, err := traffic.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	defer r.Stop()
	c.watch(ctx, r.Account(), begin)
	return c.report(r.Stop(), r.Account(), begin), nil
}

// persist tries something until it is done, or there is no time left for it.
func persist(ctx context.Context, deadline time.Time, try func() error) error {
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// watch lets the time pass, and tells now and then how it goes.
func (c Config) watch(ctx context.Context, a *traffic.Account, begin time.Time) {
	ctx, cancel := context.WithDeadline(ctx, begin.Add(c.For))
	defer cancel()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if done, failed := a.Done(); c.Note != nil {
			c.Note(fmt.Sprintf("%2.0f s: %d requests answered, %d failed, %d stale, %d wrong", time.Since(begin).Seconds(), done, failed,
				a.Count(ledger.Stale), a.Count(ledger.Wrong)))
		}
	}
}
