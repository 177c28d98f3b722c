//go:build linux

package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/load"
	"cacherouter/loadtest/toll"
	"cacherouter/loadtest/workload"
)

// The load of hot: half of all requests are for one key, the others are for so many that chance
// alone makes no server 2 % fuller than the mean.
const (
	hotServers  = 8
	hotChoice   = "hotspot:0.5:1:86400" // the hot key is the same all day
	spreadKeys  = 100_000
	hotMeasured = 4 * time.Second
	manyWrites  = 99   // gets for one set
	fewWrites   = 9999 // the same
)

// ofAge is how old a router with a timeout of hotTimeout is before it reads copies: until then its
// former self, if it had one, may have left some.
const (
	hotTimeout = 500 * time.Millisecond
	ofAge      = 14 * time.Second
)

// remedy is a way to deal with a hot key: settings of the pool.
type remedy struct {
	name   string
	pool   []string
	copies bool // reads copies, so that the router must be of age
}

// Each remedy is tried alone where it can be; the near cache needs flights.
var (
	direct  = remedy{"direct", []string{"coalesce: off", "bound: {spill: none}"}, false}
	flights = remedy{"flights", []string{"bound: {spill: none}"}, false}
	spill2  = remedy{"spill, depth 2", []string{"coalesce: off", "bound: {spill: hot, factor: 1.25, floor: 1}"}, true}
	spill6  = remedy{"spill, depth 6", []string{"coalesce: off", "bound: {spill: hot, factor: 1.25, floor: 1, depth: 6}"}, true}
	copies7 = remedy{"7 copies", []string{"coalesce: off", "bound: {spill: none}", "copies: {number: 7}"}, true}
	near    = remedy{"near cache", []string{"bound: {spill: none}", "near: {bytes: 1048576, ttl: 1s}"}, false}
)

// heated is what a remedy did under two loads.
type heated struct{ many, few spread } // of a hundred requests one writes; of ten thousand

// hot asks for one key half of the time and looks how full that makes its server, with each remedy.
func hot(s *stage) error {
	found := map[string]heated{}
	for _, r := range []remedy{direct, flights, spill2, spill6, copies7, near} {
		h, err := s.heat(r, hotMeasured)
		if err != nil {
			return fmt.Errorf("with %s: %w", r.name, err)
		}
		s.row(r.name, "%s", h.many)
		s.row("- few writes", "%s", h.few)
		found[r.name] = h
	}
	var bounded [2]spread
	for i, r := range []remedy{direct, near} {
		var err error
		if bounded[i], err = s.tolled(r, hotMeasured); err != nil {
			return fmt.Errorf("with %s before servers of %d requests a second: %w", r.name, tolledRate, err)
		}
		s.row(fmt.Sprintf("%s, servers of %d requests/s", r.name, tolledRate), "%s", bounded[i])
	}
	s.judgeHot(found)
	s.ratioAtLeast("requests a second with the near cache, to direct, where servers are the limit", bounded[1].rate/bounded[0].rate, 2)
	return nil
}

// judgeHot has goals for few writes: while a key is written only its home may be read, and with one
// write in a hundred requests a key as hot as this is written nearly all the time.
func (s *stage) judgeHot(found map[string]heated) {
	s.ratioAtLeast("fullest server to the mean, direct", found[direct.name].few.peak(), 4)
	s.ratioAtMost("with 7 copies, few writes", found[copies7.name].few.peak(), 1.3)
	s.ratioAtMost("with the near cache, few writes", found[near.name].few.peak(), 1.05)
	s.ratioAtLeast("requests a second with the near cache, to direct, few writes", found[near.name].few.rate/found[direct.name].few.rate, 1)
	wrong := 0
	for _, h := range found {
		wrong += h.many.wrong + h.few.wrong
	}
	s.atMost("wrong, refused and unanswered requests", wrong, 0)
}

// spread is how a load came to the servers.
type spread struct {
	gets  []int   // that each server counted
	sent  int     // requests of the clients
	rate  float64 // requests a second, as clients see them
	hits  float64 // of the gets
	wrong int     // answers that were none
	p99   time.Duration
}

// peak is the load of the fullest server to the mean.
func (sp spread) peak() float64 {
	sum := 0
	for _, n := range sp.gets {
		sum += n
	}
	return float64(slices.Max(sp.gets)*len(sp.gets)) / float64(max(sum, 1))
}

func (sp spread) String() string {
	var parts []string
	for _, n := range sp.gets {
		parts = append(parts, fmt.Sprintf("%.1fk", float64(n)/1000))
	}
	return fmt.Sprintf("%.2f of the mean, %.0f gets for 100 requests (all: %s); %.0f requests/s, p99 %v, hits %.4f",
		sp.peak(), 100*float64(slices.Max(sp.gets))/float64(max(sp.sent, 1)), strings.Join(parts, " "), sp.rate, sp.p99.Round(10*time.Microsecond), sp.hits)
}

// heat measures one remedy on a new fleet, for so long under each load.
func (s *stage) heat(r remedy, d time.Duration) (h heated, err error) {
	f, err := s.cold(r, nil)
	if err != nil {
		return h, err
	}
	defer f.Stop()
	s.note("measure %s", r.name)
	if h.many, err = s.spread(f, manyWrites, d); err == nil {
		h.few, err = s.spread(f, fewWrites, d)
	}
	return h, err
}

// What a server with a gate can do. All processes here share a machine, and a server that is asked much
// takes much at a time, so that the requests that a remedy saves are the cheap ones: what it does for
// a fleet whose fullest server is the limit shows only if servers have one.
const (
	tolledPlaces  = 8
	tolledService = 8 * time.Millisecond
	tolledRate    = tolledPlaces * int(time.Second/tolledService)
)

// tolled measures one remedy, few writes, on a new fleet of servers that have a limit.
func (s *stage) tolled(r remedy, d time.Duration) (sp spread, err error) {
	g := gated{road: toll.NewRoad(toll.Config{Places: tolledPlaces, Service: time.Microsecond})}
	defer g.road.Close()
	f, err := s.cold(r, g.front)
	if err != nil {
		return sp, err
	}
	defer f.Stop()
	for _, gate := range g.gates {
		gate.Take(tolledService)
	}
	s.note("measure %s before servers of %d requests/s", r.name, tolledRate)
	return s.spread(f, fewWrites, d)
}

// cold starts a fleet that holds all keys, and knows of no hot one yet. Routers reach the servers by front,
// if it is not nil.
func (s *stage) cold(r remedy, front func(server string) (string, error)) (*fleet.Fleet, error) {
	begin, timeout := time.Now(), 5*time.Second // the machine may be busy
	if r.copies {
		timeout = hotTimeout
	}
	f, err := s.fleet(fleet.Config{Servers: hotServers, Routers: 1, Loops: 2, Static: true, Timeout: timeout, Pool: r.pool, Front: front})
	if err != nil {
		return nil, err
	}
	if err = s.fillHot(f); err == nil && r.copies {
		err = s.wait(ofAge - time.Since(begin))
	}
	if err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// hotPlan is enough to keep two loops busy, with so many gets for a set.
func hotPlan(f *fleet.Fleet, gets int) load.Plan {
	p := load.DefaultPlan(f.Routers[0].Addr)
	p.Connections, p.Pipeline, p.Keys = 64, 8, spreadKeys
	p.Choice, p.Ratio = hotChoice, workload.Ratio{Sets: 1, Gets: gets}
	return p
}

func (s *stage) fillHot(f *fleet.Fleet) error {
	session, err := load.Dial(s.ctx, hotPlan(f, 0))
	if err != nil {
		return err
	}
	defer session.Close()
	_, err = session.Fill(s.ctx)
	return err
}

// spread loads until the router has found the hot key, and then measures for so long.
func (s *stage) spread(f *fleet.Fleet, gets int, d time.Duration) (spread, error) {
	session, err := load.Dial(s.ctx, hotPlan(f, gets))
	if err != nil {
		return spread{}, err
	}
	defer session.Close()
	if err := s.ignite(f, session, d); err != nil {
		return spread{}, err
	}
	return s.spreadOf(f, session, d)
}

// ignite loads until the router calls the key hot, and no other.
func (s *stage) ignite(f *fleet.Fleet, session *load.Session, d time.Duration) error {
	const times = 10
	for range times {
		if _, err := session.Run(s.ctx, load.Extent{Duration: d / 2}); err != nil {
			return err
		}
		keys, err := f.Routers[0].Hot(s.ctx)
		if err != nil {
			return err
		}
		if len(keys) == 1 {
			return nil
		}
	}
	return fmt.Errorf("the router has not found the hot key in %v", times*d/2)
}

// spreadOf measures what comes to the servers for so long.
func (s *stage) spreadOf(f *fleet.Fleet, session *load.Session, d time.Duration) (spread, error) {
	before, err := gets(f)
	if err != nil {
		return spread{}, err
	}
	r, err := session.Run(s.ctx, load.Extent{Duration: d})
	if err != nil {
		return spread{}, err
	}
	after, err := gets(f)
	if err != nil {
		return spread{}, err
	}
	for i := range after {
		after[i] -= before[i]
	}
	return spread{
		gets: after, sent: int(r.Requests()), rate: r.Rate, hits: float64(r.Hits) / float64(max(r.Gets, 1)), wrong: int(r.Wrong + r.Errors + r.Unanswered),
		p99: time.Duration(r.Latency.P99 * float64(time.Microsecond)),
	}, nil
}

// gets is how many gets each server has counted.
func gets(f *fleet.Fleet) (all []int, err error) {
	for _, server := range f.Servers {
		c := caller.Conn{Target: server.Addr, Timeout: 2 * time.Second}
		stats, err := c.Stats()
		c.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, stats["cmd_get"])
	}
	return all, nil
}
