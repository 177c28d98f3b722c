//go:build linux

package scenario

import (
	"context"
	"fmt"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/pace"
	"cacherouter/loadtest/toll"
	"cacherouter/loadtest/traffic"
	"cacherouter/loadtest/walk"
)

// guard is what keeps servers from having too much in flight.
type guard struct {
	name    string
	routers int      // 0 is a walker in place of routers
	pool    []string // settings
	floor   int      // of each router's bound; 0 means that there is none
}

// slowFactor is how far above its share a server may be by all guards, in thousandths.
const slowFactor = 1250

// slowHot lets keys be hot by their share alone, as rates are lower than in earnest.
const slowHot = "hot: {min_rate: 20}"

// guardOf is a guard by the routers' own bound.
func guardOf(name string, routers int, spill string, floor int) guard {
	bound := fmt.Sprintf("bound: {spill: %s, factor: %v, floor: %d}", spill, slowFactor/1000.0, floor)
	return guard{name, routers, []string{slowHot, bound}, floor}
}

// bound is how much a server may have in flight while so much is at all. With several routers it is the
// sum of their bounds, the most that it can be however the load is divided: each rounds its share
// up. Then the floor must be 1, which every share is at least.
func (g guard) bound(all int) int {
	n := max(g.routers, 1)
	const whole = 1000 * slowServers
	share := (slowFactor*(all+n) + n*(whole-1)) / whole
	return max(g.floor, share)
}

// guarded is a fleet behind gates, with a load.
type guarded struct {
	guard guard
	fleet *fleet.Fleet
	gated
	plan traffic.Plan
}

// gated is gates before servers.
type gated struct {
	road  *toll.Road
	gates []*toll.Gate
}

// front opens one more, before a server, and returns its address.
func (g *gated) front(server string) (string, error) {
	gate, err := g.road.Open(server)
	if err != nil {
		return "", err
	}
	g.gates = append(g.gates, gate)
	return gate.Addr, nil
}

// guarded starts a fleet that holds all keys.
func (s *stage) guarded(g guard, work toil) (f *guarded, err error) {
	f = &guarded{guard: g, gated: gated{road: toll.NewRoad(toll.Config{Places: slowPlaces, Service: work.service, Kind: kindOf})}}
	f.fleet, err = s.fleet(fleet.Config{Servers: slowServers, Routers: g.routers, Static: true, Timeout: work.timeout, Pool: g.pool, Front: f.front})
	if err == nil {
		err = f.fill(s.ctx, work)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *guarded) close() {
	if f.fleet != nil {
		f.fleet.Stop()
	}
	f.road.Close()
}

func (f *guarded) fill(ctx context.Context, work toil) (err error) {
	f.plan = traffic.Plan{
		Targets: f.fleet.Targets(), Ledger: ledger.New(slowKeys, 100), Zipf: slowZipf, Rate: work.rate, Workers: work.workers,
		Writes: slowWrites, Refill: true, Timeout: 5 * work.timeout, Seed: 1,
	}
	if f.guard.routers == 0 {
		c := walk.Config{PerMille: slowFactor, Timeout: work.timeout}
		for i, s := range f.fleet.Servers {
			c.Names, c.Targets = append(c.Names, s.Name), append(c.Targets, f.gates[i].Addr)
		}
		if f.plan.Cache, err = walk.New(c); err != nil {
			return err
		}
	}
	return traffic.Fill(ctx, f.plan)
}

// during loads for so long and does something meanwhile, which it ends when its context does. What the
// gates have seen by then is counted from the beginning of the load.
func (f *guarded) during(ctx context.Context, d time.Duration, do func(context.Context) error) (a *traffic.Account, p pace.Result, seen []toll.Seen, err error) {
	f.road.Clear()
	r, err := traffic.Start(ctx, f.plan)
	if err != nil {
		return nil, p, nil, err
	}
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err = do(within)
	seen = f.road.Seen()
	p = r.Stop()
	if err == nil {
		err = ctx.Err()
	}
	return r.Account(), p, seen, err
}

// pass lets the time pass.
func (f *guarded) pass(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// sum is a metric of all routers together.
func (f *guarded) sum(ctx context.Context, name string) (sum float64, err error) {
	for _, r := range f.fleet.Routers {
		n, err := r.Metric(ctx, name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// listen asks the routers each tenth of a second what is in flight at a server, and returns the mean.
func (f *guarded) listen(ctx context.Context, victim int) (mean float64, err error) {
	s := f.fleet.Servers[victim]
	name := fmt.Sprintf("cacherouter_server_load{addr=%q,server=%q}", s.Front, s.Name)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return mean, nil
		case <-tick.C:
		}
		now, err := f.sum(ctx, name)
		if ctx.Err() != nil {
			return mean, nil
		}
		if err != nil {
			return 0, err
		}
		mean += (now - mean) / float64(n)
	}
}
