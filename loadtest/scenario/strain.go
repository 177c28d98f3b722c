//go:build linux

package scenario

import (
	"fmt"
	"math"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/pace"
	"cacherouter/loadtest/toll"
	"cacherouter/loadtest/traffic"
	"cacherouter/loadtest/walk"
)

// The servers of slow, as their gates have them, and the load.
const (
	slowServers = 8
	slowPlaces  = 8                     // requests that a server works on at a time
	slowService = 20 * time.Millisecond // that it takes for each
	slowTimes   = 10                    // how many times as long the slow one takes
	slowKeys    = 400
	slowZipf    = 1.2
	slowRate    = 2000 // requests a second
	slowWorkers = 256
	slowWrites  = 10 // of a thousand requests
	slowTimeout = time.Second
	slowOfAge   = 15 * time.Second // as ofAge, with a timeout of slowTimeout
)

// guard is what keeps servers from having too much in flight.
type guard struct {
	name    string
	routers int      // 0 is a walker in place of routers
	pool    []string // settings
	floor   int      // of each router's bound; 0 means that there is none
}

// perMilleOfBound is how far above its share a server may be, in thousandths, by all guards.
const perMilleOfBound = 1250

// slowHot lets keys be hot by their share alone: the load is slower than one in earnest, as the
// servers are.
const slowHot = "hot: {min_rate: 20}"

// guardOf is a guard by the routers' own bound.
func guardOf(name string, routers int, spill string, floor int) guard {
	bound := fmt.Sprintf("bound: {spill: %s, factor: %v, floor: %d}", spill, perMilleOfBound/1000.0, floor)
	return guard{name, routers, []string{slowHot, bound}, floor}
}

// cap is the most that the slow server may have in flight by the bounds of all routers, when so many
// are in flight in all. No router can have more in flight than all have together; with several each
// may be as full as its floor lets it.
func (g guard) cap(all float64) float64 {
	share := math.Ceil(perMilleOfBound * (all/float64(max(g.routers, 1)) + 1) / (1000 * slowServers))
	return float64(max(g.routers, 1)) * max(float64(g.floor), share)
}

// strain is what was seen while one server was slow.
type strain struct {
	guard   guard
	victim  int
	share   float64 // of all requests that came to the victim while it was well
	seen    []toll.Seen
	load    pace.Result
	hits    float64
	done    int // requests
	failed  int
	stale   int
	oldest  time.Duration
	spilled int     // reads, as the routers count them
	figure  float64 // what the routers say is in flight at the victim, in the mean
	refuses bool    // they said so
}

// row is the table's line.
func (x *strain) String() string {
	v := x.seen[x.victim]
	return fmt.Sprintf("%.1f in flight at the slow server (at most %d) of %.1f, %.1f of the mean; p50 %v, p99 %v, hits %.4f, %d of %d failed, %d stale (up to %v old), %d spilled; %.0f %% of requests came to it before, %.0f %% now",
		v.InFlight(), v.Max(here), v.Mean(allOf), x.peak(), x.quantile(50), x.quantile(99), x.hits, x.failed, x.done+x.failed, x.stale,
		x.oldest.Round(time.Millisecond), x.spilled, 100*x.share, 100*shareOf(x.seen, x.victim))
}

func here(s toll.State) int { return s.Here }

func allOf(s toll.State) float64 { return float64(s.All) }

// peak is what is in flight at the slow server to the mean of all.
func (x *strain) peak() float64 {
	v := x.seen[x.victim]
	return v.InFlight() * slowServers / v.Mean(allOf)
}

// capped is the mean of what the slow server may have had in flight, and over how much of the time it
// had more.
func (x *strain) capped() (mean, over float64) {
	v := x.seen[x.victim]
	mean = v.Mean(func(s toll.State) float64 { return x.guard.cap(float64(s.All)) })
	over = v.Mean(func(s toll.State) float64 {
		if float64(s.Here) > x.guard.cap(float64(s.All)) {
			return 1
		}
		return 0
	})
	return mean, over
}

func (x *strain) quantile(q float64) time.Duration {
	return time.Duration(x.load.Latency.ValueAtQuantile(q)).Round(time.Millisecond)
}

// shareOf is the share of all requests that came to one server.
func shareOf(seen []toll.Seen, server int) float64 {
	all := 0
	for _, s := range seen {
		all += s.Requests()
	}
	return float64(seen[server].Requests()) / float64(max(all, 1))
}

// median is the server whose share is nearest to the mean.
func median(seen []toll.Seen) (server int) {
	off := func(i int) float64 { return math.Abs(shareOf(seen, i) - 1/float64(len(seen))) }
	for i := range seen {
		if off(i) < off(server) {
			server = i
		}
	}
	return server
}

// rig is a fleet behind gates, with a load.
type rig struct {
	*stage
	guard guard
	fleet *fleet.Fleet
	road  *toll.Road
	gates []*toll.Gate
	plan  traffic.Plan
}

// rig starts a fleet that holds all keys.
func (s *stage) rig(g guard) (r *rig, err error) {
	r = &rig{stage: s, guard: g, road: toll.NewRoad(slowPlaces, slowService)}
	front := func(server string) (string, error) {
		gate, err := r.road.Open(server)
		if err != nil {
			return "", err
		}
		r.gates = append(r.gates, gate)
		return gate.Addr, nil
	}
	r.fleet, err = s.fleet(fleet.Config{Servers: slowServers, Routers: g.routers, Static: true, Timeout: slowTimeout, Pool: g.pool, Front: front})
	if err == nil {
		err = r.fill()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *rig) close() {
	if r.fleet != nil {
		r.fleet.Stop()
	}
	r.road.Close()
}

func (r *rig) fill() (err error) {
	r.plan = traffic.Plan{
		Targets: r.fleet.Targets(), Ledger: ledger.New(slowKeys, 100), Rate: slowRate, Workers: slowWorkers, Zipf: slowZipf,
		Writes: slowWrites, Refill: true, Timeout: 5 * time.Second, Seed: 1,
	}
	if r.guard.routers == 0 {
		c := walk.Config{PerMille: perMilleOfBound, Timeout: slowTimeout}
		for i, s := range r.fleet.Servers {
			c.Names, c.Targets = append(c.Names, s.Name), append(c.Targets, r.gates[i].Addr)
		}
		if r.plan.Cache, err = walk.New(c); err != nil {
			return err
		}
	}
	return traffic.Fill(r.ctx, r.plan)
}

// during loads for so long, and does something meanwhile.
func (r *rig) during(d time.Duration, do func(end <-chan time.Time) error) (*traffic.Account, pace.Result, error) {
	r.road.Clear()
	t, err := traffic.Start(r.ctx, r.plan)
	if err != nil {
		return nil, pace.Result{}, err
	}
	err = do(time.After(d))
	load := t.Stop()
	return t.Account(), load, err
}

// pass lets the time pass.
func (r *rig) pass(end <-chan time.Time) error {
	select {
	case <-end:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
