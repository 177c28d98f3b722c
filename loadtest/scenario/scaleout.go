//go:build linux

package scenario

import (
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

// addServer measures for 10 s, adds the server, and measures for 20 s.
func (s *stage) addServer(static bool) (e expansion, err error) {
	f, err := s.fleet(fleet.Config{Servers: 11, Listed: 10, Routers: 2, Static: static})
	if err != nil {
		return e, err
	}
	defer f.Stop()
	a := newAsking(f)
	defer a.close()
	if err := a.warm(); err != nil {
		return e, err
	}
	var running sync.WaitGroup
	defer running.Wait()
	const before, after = 10, 20
	running.Go(func() {
		_, err = pace.Run(s.ctx, pace.Plan{Rate: outRate, Workers: len(a.clients), For: (before + after) * time.Second}, a.request)
	})
	rates, errWatch := s.watch(a, before)
	if errWatch == nil {
		s.note("add %s", f.Servers[10].Name)
		errWatch = f.List(11)
	}
	var later []float64
	if errWatch == nil {
		later, errWatch = s.watch(a, after-1)
	}
	if errWatch != nil {
		return e, errWatch
	}
	running.Wait()
	e.steady = mean(rates[2:])
	e.mean, e.worst = mean(later)/e.steady, slices.Max(later)/e.steady
	e.failed = int(a.failed.Load())
	e.items, err = items(f.Servers[10].Addr)
	return e, err
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
