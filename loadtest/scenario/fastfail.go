//go:build linux

package scenario

import (
	"fmt"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/toll"
	"cacherouter/loadtest/traffic"
)

// The servers of fast-fail take some time for each request, but for the one that fails: so it has the fewest in
// flight, and whoever chooses by that sends it all there is.
const (
	failServers = 8
	failService = 2 * time.Millisecond
	failAfter   = 5 * time.Second // when what a router does about it is done
	failLength  = 8 * time.Second // of each part that is looked at
)

// failure is one way to fail, and one way to place. An error line is an answer, which is passed on: where items have
// one copy nothing else can be done with it.
type failure struct {
	name   string
	fault  toll.Fault
	copies int
	passed bool // on to clients
}

var failures = []failure{
	{"closes connections", toll.Hanging, 1, false},
	{"closes connections, 3 copies", toll.Hanging, 3, false},
	{"answers errors", toll.Refusing, 1, true},
	{"answers errors, 3 copies", toll.Refusing, 3, false},
}

// fastFail has one server fail, in each way.
func fastFail(s *stage) error {
	for _, how := range failures {
		if err := s.sink(how); err != nil {
			return fmt.Errorf("a server that %s: %w", how.name, err)
		}
	}
	return nil
}

// sink has one server of a new fleet fail and says how much came to it, and to clients.
func (s *stage) sink(how failure) error {
	road := toll.NewRoad(toll.Config{Places: 8, Service: failService})
	defer road.Close()
	var gates []*toll.Gate
	front := func(server string) (string, error) {
		g, err := road.Open(server)
		if err != nil {
			return "", err
		}
		gates = append(gates, g)
		return g.Addr, nil
	}
	c := fleet.Config{Servers: failServers, Routers: 3, Timeout: 500 * time.Millisecond, Front: front}
	c.Pool = []string{fmt.Sprintf("copies: {number: %d}", how.copies)}
	little := func(p *traffic.Plan) { p.Rate, p.Ledger, p.Writes = 1000, ledger.New(5000, 100), 20 }
	return s.under(c, little, func(_ *fleet.Fleet, r *traffic.Running) error {
		if how.copies > 1 {
			if err := s.wait(ofAge); err != nil {
				return err
			}
		}
		return s.failNow(how, road, gates[0], r.Account())
	})
}

// failNow has the server behind the first gate fail for a while.
func (s *stage) failNow(how failure, road *toll.Road, victim *toll.Gate, a *traffic.Account) error {
	before, err := s.shareNow(road)
	if err != nil {
		return err
	}
	s.note("a server %s", how.name)
	fault := time.Now()
	victim.Fail(how.fault)
	if err := s.wait(failAfter); err != nil {
		return err
	}
	after, err := s.shareNow(road)
	if err != nil {
		return err
	}
	s.judgeSink(how, a, fault, before, after)
	victim.Fail(toll.Well)
	return s.wait(2 * time.Second)
}

// shareNow is the first server's share of what comes to all for a while.
func (s *stage) shareNow(road *toll.Road) (float64, error) {
	road.Clear()
	err := s.wait(failLength)
	return shareOf(road.Seen(), 0), err
}

func (s *stage) judgeSink(how failure, a *traffic.Account, fault time.Time, before, after float64) {
	var o, late outage
	o.add(a, fault)
	late.add(a, fault.Add(failAfter))
	s.row(how.name+": its share of requests", "%.3f before, %.3f when it fails", before, after)
	s.row(how.name+": failed reads", "%s", &o.reads)
	s.row(how.name+": failed writes", "%s", &o.writes)
	later := late.reads.failed + late.writes.failed
	s.row(how.name+": failed later", "%d", later)
	if !how.passed {
		s.within(how.name+": requests fail", max(o.reads.last, o.writes.last), 2*time.Second)
		s.atMost(how.name+": failed later", later, 0)
	}
	s.ratioAtMost(how.name+": its share, to before", after/before, 1.1)
}
