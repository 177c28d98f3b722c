//go:build linux

package scenario

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/pace"
)

// The experiment is that of a lesson on load balancers: three servers, 600 requests at 200 a second, a
// server is killed at the 200th. Taking turns and asking nothing, 133 fail; with active checks every 500
// ms, two failures of which take a server out, 35 did there.
const (
	checksRate    = 200
	checksCount   = 600
	checksKillAt  = 200
	checkInterval = 500 * time.Millisecond
	checkFall     = 2
)

func checks(s *stage) error {
	blind, err := s.checksDirect(false)
	if err != nil {
		return err
	}
	active, err := s.checksDirect(true)
	if err != nil {
		return err
	}
	static, err := s.checksRouted(true)
	if err != nil {
		return err
	}
	ours, err := s.checksRouted(false)
	if err != nil {
		return err
	}
	s.row("errors, in turns, without checks", "%d of 600 (elsewhere 133)", blind)
	s.row("errors, in turns, active checks", "%d of 600 (elsewhere 35)", active)
	s.row("errors, a router without membership", "%d of 600", static)
	s.row("errors, a router", "%d of 600", ours)
	s.yes("without checks a third of what follows fails", blind == (checksCount-checksKillAt)/3 || blind == (checksCount-checksKillAt)/3+1)
	s.yes("active checks help", active < blind)
	s.atMost("errors with a router", ours, 5)
	return nil
}

// checksDirect asks the servers in turn, those that checks say are up if there are any.
func (s *stage) checksDirect(checked bool) (errors int, err error) {
	f, err := s.fleet(fleet.Config{Servers: 3})
	if err != nil {
		return 0, err
	}
	defer f.Stop()
	t := newTurns(f)
	if checked {
		ctx, cancel := context.WithCancel(s.ctx)
		var checking sync.WaitGroup
		defer checking.Wait()
		defer cancel()
		for i := range t.up {
			checking.Go(func() { t.check(ctx, i) })
		}
	}
	return s.checksRun(f, func(n int) string { return f.Servers[t.pick(n)].Addr })
}

// checksRouted asks a router.
func (s *stage) checksRouted(static bool) (errors int, err error) {
	f, err := s.fleet(fleet.Config{Servers: 3, Routers: 1, Static: static})
	if err != nil {
		return 0, err
	}
	defer f.Stop()
	defer s.crashes(f)
	return s.checksRun(f, func(int) string { return f.Routers[0].Addr })
}

// checksRun counts the requests that fail, each over a connection of its own.
func (s *stage) checksRun(f *fleet.Fleet, target func(n int) string) (int, error) {
	var failed atomic.Int64
	var once sync.Once
	_, err := pace.Run(s.ctx, pace.Plan{Rate: checksRate, Workers: 16, Count: checksCount}, func(_, n int) {
		if n >= checksKillAt {
			once.Do(f.Servers[0].Kill)
		}
		c := caller.Conn{Target: target(n), Timeout: 2 * time.Second}
		defer c.Close()
		if _, _, err := c.Get(fmt.Sprintf("checks:%d", n)); err != nil {
			failed.Add(1)
		}
	})
	return int(failed.Load()), err
}

// turns is a balancer as simple as can be.
type turns struct {
	addrs []string
	up    []atomic.Bool
}

func newTurns(f *fleet.Fleet) *turns {
	t := &turns{up: make([]atomic.Bool, len(f.Servers))}
	for i, s := range f.Servers {
		t.addrs = append(t.addrs, s.Addr)
		t.up[i].Store(true)
	}
	return t
}

// pick returns the server of request n, or the next that is up.
func (t *turns) pick(n int) int {
	for i := range t.up {
		if c := (n + i) % len(t.up); t.up[c].Load() {
			return c
		}
	}
	return n % len(t.up)
}

// check asks a server whether it is there, until ctx is done.
func (t *turns) check(ctx context.Context, i int) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for failed := 0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c := caller.Conn{Target: t.addrs[i], Timeout: checkInterval}
		_, _, err := c.Get("checks")
		c.Close()
		if failed++; err == nil {
			failed = 0
		}
		t.up[i].Store(failed < checkFall)
	}
}
