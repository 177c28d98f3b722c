//go:build linux

package scenario

import (
	"context"
	"fmt"
	"math"
	"time"

	"cacherouter/loadtest/ledger"
)

// The servers of slow as their gates make them, and the load.
const (
	slowServers = 8
	slowPlaces  = 8  // requests that a server works on at a time
	slowTimes   = 10 // how many times as long the slow one takes for each
	slowKeys    = 200
	slowZipf    = 1.2
	slowWrites  = 10               // of a thousand requests
	copyLife    = 10 * time.Second // at most, by the contract
)

// toil is how much there is to do.
type toil struct {
	rate    float64       // requests a second
	workers int           // that send them: so many are under way at most
	service time.Duration // that a server takes for each, while it is well
	timeout time.Duration // after which a router does not wait for it any more
	length  time.Duration // of what is measured, and of what comes before it
}

// ofAge is as the other ofAge, for any timeout.
func (w toil) ofAge() time.Duration { return copyLife + 2*w.timeout + 3*time.Second }

// slowToil has so much in flight that the bound is well above one, and the slow server, with no bound,
// far more than it can do; though it could do what must come to it: each key once in the
// life of a copy, and writes.
var slowToil = toil{rate: 2000, workers: 256, service: 20 * time.Millisecond, timeout: time.Second, length: 12 * time.Second}

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
	found, victim, work := map[string]*strain{}, -1, slowToil
	work.length = s.length(work.length, time.Minute)
	for _, g := range []guard{unbounded, spillHot, spillAny, spillLow, spillMany, walking} {
		if g.routers == 0 {
			victim = -1
		}
		x, err := s.strain(g, victim, work)
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
	s.atMost("most reads let in by the slow server, "+x.guard.name, x.mostLetIn(), x.mayLetIn())
	s.ratioAtMost("what the routers tell is in flight there, off by", math.Abs(x.told/x.here(charged)-1), 0.1)
}

// strain makes a server of a new fleet slow, one with a usual share of the requests if none is given, and
// measures when that has shown its effect.
func (s *stage) strain(g guard, victim int, work toil) (*strain, error) {
	f, err := s.guarded(g, work)
	if err != nil {
		return nil, err
	}
	defer f.close()
	age := work.ofAge()
	if g.floor == 0 {
		age = work.length / 4
	}
	_, _, well, err := f.during(s.ctx, age, f.pass)
	if err != nil {
		return nil, err
	}
	if victim < 0 {
		victim = median(well)
	}
	s.note("%s: %s is slowed", g.name, f.fleet.Servers[victim].Name)
	f.gates[victim].Take(slowTimes * work.service)
	if _, _, _, err := f.during(s.ctx, work.length, f.pass); err != nil {
		return nil, err
	}
	x := &strain{guard: g, victim: victim, before: shareOf(well, victim)}
	return x, f.measure(s.ctx, x, work.length)
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
	if err != nil {
		return err
	}
	f.plan.Writes = 0
	_, _, x.pure, err = f.during(ctx, d/2, f.pass)
	return err
}
