//go:build linux

package scenario

import (
	"context"
	"fmt"
	"math"
	"time"

	"cacherouter/loadtest/ledger"
)

// The servers of slow as their gates make them, and the load: as much in flight that the bound is above
// one, and with no bound twice what the slow server can do.
const (
	slowServers = 8
	slowPlaces  = 8                     // requests that a server works on at a time
	slowService = 20 * time.Millisecond // that it takes for each
	slowTimes   = 10                    // how many times as long the slow one takes
	slowKeys    = 200
	slowZipf    = 1.2
	slowRate    = 2000 // requests a second
	slowWorkers = 256
	slowWrites  = 10 // of a thousand requests
	slowTimeout = time.Second
	slowOfAge   = 15 * time.Second // as ofAge, with a timeout of slowTimeout
	copyLife    = 10 * time.Second // at most, by the contract
)

var (
	unbounded = guard{name: "no bound", routers: 1, pool: []string{slowHot, "bound: {spill: none}"}}
	spillHot  = guardOf("spill hot, the default", 1, "hot", 8)
	spillAny  = guardOf("spill any", 1, "any", 8)
	spillLow  = guardOf("spill any, floor 1", 1, "any", 1)
	spillMany = guardOf("spill any, floor 1, three routers", 3, "any", 1)
	walking   = guard{name: "ring walk"}
)

// slow makes one server slow, with each guard. It is the same server with all of ours.
func slow(s *stage) error {
	found, victim := map[string]*strain{}, -1
	for _, g := range []guard{unbounded, spillHot, spillAny, spillLow, spillMany, walking} {
		if g.routers == 0 {
			victim = -1
		}
		x, err := s.strain(g, victim, s.length(12*time.Second, time.Minute))
		if err != nil {
			return fmt.Errorf("with %s: %w", g.name, err)
		}
		s.row(g.name, "%s", x)
		if g.floor > 0 {
			s.row("- its bound", "%s", x.bounds())
		}
		found[g.name], victim = x, x.victim
	}
	s.judgeSlow(found)
	return nil
}

func (s *stage) judgeSlow(found map[string]*strain) {
	for _, g := range []guard{spillAny, spillLow, spillMany} {
		s.bounded(found[g.name])
	}
	s.atMost("failed requests, spill any, one router", found[spillAny.name].failed+found[spillLow.name].failed, 0)
	old := 0
	for _, g := range []guard{spillHot, spillAny, spillLow, spillMany} {
		s.ratioAtLeast("hits to those with no bound, "+g.name, found[g.name].hits/found[unbounded.name].hits, 0.99)
		if g.routers == 1 {
			old += found[g.name].stale
		}
	}
	s.atMost("stale values, one router", old, 0)
	s.within("the stalest value, three routers", found[spillMany.name].oldest, copyLife)
	s.yes("the ring walk returns stale values, and they are found", found[walking.name].stale > 0)
}

// bounded checks that a bound was kept, and that the routers know it.
func (s *stage) bounded(x *strain) {
	bound, home := x.allowed()
	s.ratioAtMost("slow server to the mean, "+x.guard.name, x.peak(), math.Round(1000*(bound+home))/1000)
	s.atMost("reads let in by the slow server, "+x.guard.name, x.mostLetIn(), x.mayLetIn())
	s.ratioAtMost("what the routers tell is in flight there, off by", math.Abs(x.told/x.here(charged)-1), 0.1)
}

// strain makes a server of a new fleet slow, one with a usual share of the requests if none is given, and
// measures for so long after as much time in which that shows its effect.
func (s *stage) strain(g guard, victim int, d time.Duration) (*strain, error) {
	f, err := s.guarded(g)
	if err != nil {
		return nil, err
	}
	defer f.close()
	age := slowOfAge
	if g.floor == 0 {
		age = d / 4
	}
	_, _, well, err := f.during(s.ctx, age, f.pass)
	if err != nil {
		return nil, err
	}
	if victim < 0 {
		victim = median(well)
	}
	s.note("%s: %s is slowed", g.name, f.fleet.Servers[victim].Name)
	f.gates[victim].Take(slowTimes * slowService)
	if _, _, _, err := f.during(s.ctx, d, f.pass); err != nil {
		return nil, err
	}
	x := &strain{guard: g, victim: victim, before: shareOf(well, victim)}
	return x, f.measure(s.ctx, x, d)
}

func (f *guarded) measure(ctx context.Context, x *strain, d time.Duration) error {
	const spilled = "cacherouter_spilled_total"
	before, err := f.sum(ctx, spilled)
	if err != nil {
		return err
	}
	a, load, seen, err := f.during(ctx, d, func(within context.Context) (err error) {
		if x.guard.floor == 0 {
			return f.pass(within)
		}
		x.told, err = f.listen(within, x.victim)
		return err
	})
	if err != nil {
		return err
	}
	after, err := f.sum(ctx, spilled)
	x.seen, x.load, x.spilled = seen, load, int(after-before)
	x.done, x.failed = a.Done()
	x.hits = a.HitRatio(time.Time{}, time.Now().Add(time.Second))
	x.stale, x.oldest = a.Count(ledger.Stale), a.Oldest()
	return err
}
