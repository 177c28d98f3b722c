//go:build linux

package scenario

import (
	"fmt"
	"time"

	"cacherouter/loadtest/ledger"
)

var (
	unbound  = guard{name: "no bound", routers: 1, pool: []string{slowHot, "bound: {spill: none}"}}
	anyKey   = guardOf("spill any", 1, "any", 8)
	anyLow   = guardOf("spill any, floor 1", 1, "any", 1)
	hotKey8  = guardOf("spill hot, the default", 1, "hot", 8)
	anyThree = guardOf("spill any, floor 1, three routers", 3, "any", 1)
	walking  = guard{name: "ring walk"}
)

func slow(s *stage) error {
	for _, g := range []guard{unbound, anyKey, anyLow, hotKey8, walking, anyThree} {
		x, err := s.strain(g, s.length(12*time.Second, time.Minute))
		if err != nil {
			return fmt.Errorf("with %s: %w", g.name, err)
		}
		s.row(g.name, "%s", x)
		m, o := x.capped()
		s.row("-", "mean cap %.1f, over %.3f of the time; router's figure %.1f; verbs %v; late %d of %d", m, o, x.figure, x.seen[x.victim].Verbs, x.load.Late, x.load.Started)
	}
	return nil
}

// strain slows a server of a new fleet, and measures for so long when that has shown its effect.
func (s *stage) strain(g guard, d time.Duration) (*strain, error) {
	r, err := s.rig(g)
	if err != nil {
		return nil, err
	}
	defer r.close()
	x := &strain{guard: g}
	if _, _, err := r.during(slowOfAge, r.pass); err != nil {
		return nil, err
	}
	seen := r.road.Seen()
	x.victim = median(seen)
	x.share = shareOf(seen, x.victim)
	s.note("%s: %s is slowed", g.name, r.fleet.Servers[x.victim].Name)
	r.gates[x.victim].Take(slowTimes * slowService)
	if _, _, err := r.during(copyLife, r.pass); err != nil {
		return nil, err
	}
	return x, r.measure(x, d)
}

// copyLife is how long a copy lives at most.
const copyLife = 10 * time.Second

func (r *rig) measure(x *strain, d time.Duration) error {
	spilled, err := r.sum("cacherouter_spilled_total")
	if err != nil {
		return err
	}
	account, load, err := r.during(d, func(end <-chan time.Time) error {
		err := r.watch(x, end)
		x.seen = r.road.Seen()
		return err
	})
	if err != nil {
		return err
	}
	now, err := r.sum("cacherouter_spilled_total")
	x.load, x.spilled = load, int(now-spilled)
	x.done, x.failed = account.Done()
	x.hits = account.HitRatio(time.Time{}, time.Now())
	x.stale, x.oldest = account.Count(ledger.Stale), account.Oldest()
	return err
}

// sum is a metric of all routers together.
func (r *rig) sum(name string) (sum float64, err error) {
	for _, router := range r.fleet.Routers {
		n, err := router.Metric(r.ctx, name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// watch asks the routers now and then what is in flight at the victim, until the end.
func (r *rig) watch(x *strain, end <-chan time.Time) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	server := r.fleet.Servers[x.victim]
	name := fmt.Sprintf("cacherouter_server_load{addr=%q,server=%q}", server.Front, server.Name)
	sum := 0.0
	for n := 1; ; n++ {
		select {
		case <-end:
			return nil
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-tick.C:
		}
		if x.guard.floor == 0 {
			continue
		}
		load, err := r.sum(name)
		if err != nil {
			return err
		}
		sum += load
		x.figure = sum / float64(n)
	}
}
