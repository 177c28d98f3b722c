//go:build linux

package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/origin"
	"cacherouter/loadtest/pace"
)

// Of the requests each 20th is for a key that nobody asked for before, so that with a warm cache
// exactly 95 % hit, and each further question to the origin is due to keys that have moved.
const (
	hotKeys  = 20_000
	coldEach = 20
	outRate  = 3000.0
)

// scaleOut adds an eleventh server: to routers that hand keys over, and, for comparison, to ones
// that just place them anew.
func scaleOut(s *stage) error {
	plain, err := s.addServer(true)
	if err != nil {
		return err
	}
	ours, err := s.addServer(false)
	if err != nil {
		return err
	}
	s.row("origin, static routers", "%s", plain)
	s.row("origin, ours", "%s", ours)
	s.yes("the new server holds keys", ours.items > 0 && plain.items > 0)
	s.yes("without a hand-over the origin feels it", plain.worst > 1.5)
	s.ratioAtMost("load of the origin over 20 s, to steady", ours.mean, 1.05)
	s.ratioAtMost("its worst second, to steady", ours.worst, 1.05)
	s.atMost("failed requests", ours.failed, 0)
	return nil
}

// expansion is what adding a server did to the origin.
type expansion struct {
	steady      float64 // questions a second before
	mean, worst float64 // after, to steady
	items       int     // in the new server in the end
	failed      int     // requests
}

func (e expansion) String() string {
	return fmt.Sprintf("%.0f/s before, then %.2fx, %.2fx in the worst second; %d keys moved; %d requests failed", e.steady, e.mean, e.worst, e.items, e.failed)
}

// addServer measures what adding a server does to a new fleet.
func (s *stage) addServer(static bool) (expansion, error) {
	f, err := s.fleet(fleet.Config{Servers: 11, Listed: 10, Routers: 2, Static: static})
	if err != nil {
		return expansion{}, err
	}
	defer f.Stop()
	a := newAsking(f)
	defer a.close()
	if err := a.warm(); err != nil {
		return expansion{}, err
	}
	e, err := s.expand(f, a)
	s.crashes(f)
	if err != nil {
		return e, err
	}
	e.failed = int(a.failed.Load())
	e.items, err = items(f.Servers[10].Addr)
	return e, err
}

// expand measures for 10 s, adds the server, and measures for 20 s.
func (s *stage) expand(f *fleet.Fleet, a *asking) (e expansion, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	asking.Go(func() {
		_, _ = pace.Run(ctx, pace.Plan{Rate: outRate, Workers: len(a.clients)}, a.request) // the plan is right
	})
	before, err := s.watch(a, 10)
	if err != nil {
		return e, err
	}
	s.note("add %s", f.Servers[10].Name)
	if err := f.List(11); err != nil {
		return e, err
	}
	after, err := s.watch(a, 20)
	if err != nil {
		return e, err
	}
	e.steady = mean(before[2:]) // the first are about connections
	e.mean, e.worst = mean(after)/e.steady, slices.Max(after)/e.steady
	return e, nil
}

// watch returns how many questions the origin got in each of some seconds, per question due: the
// machine's moods are thereby none of the origin's.
func (s *stage) watch(a *asking, seconds int) (rates []float64, err error) {
	for range seconds {
		asked, sent := a.origin.Asked(), a.sent.Load()
		if err := s.wait(time.Second); err != nil {
			return nil, err
		}
		share := float64(a.origin.Asked()-asked) / float64(max(a.sent.Load()-sent, 1))
		rates = append(rates, share*outRate)
	}
	return rates, nil
}

func mean(of []float64) (sum float64) {
	for _, x := range of {
		sum += x / float64(len(of))
	}
	return sum
}

// items is how many keys a server holds.
func items(addr string) (int, error) {
	c := caller.Conn{Target: addr, Timeout: 2 * time.Second}
	defer c.Close()
	stats, err := c.Stats()
	return stats["curr_items"], err
}

// newAsking makes look-aside clients of the fleet's routers with one origin.
func newAsking(f *fleet.Fleet) *asking {
	a := &asking{origin: origin.New(2*time.Millisecond, 200)}
	for i := range 32 {
		a.clients = append(a.clients, &origin.Client{
			Cache:  &caller.Conn{Target: f.Routers[i%len(f.Routers)].Addr, Timeout: 2 * time.Second},
			Origin: a.origin, TTL: 3600,
			Value: func(key string) []byte { return fmt.Appendf(nil, "%s %0100d", key, 0) },
		})
	}
	return a
}
