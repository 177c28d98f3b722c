//go:build linux

package scenario

import (
	"fmt"
	"slices"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/origin"
)

// The stampede: so many clients ask for one key that is not there, at once.
const (
	crowdSize     = 1000
	stampedeLoops = 2
	originTime    = 50 * time.Millisecond
)

// stampede lets a crowd ask for a cold key: without flights, with them, and with leases.
func stampede(s *stage) error {
	plain, err := s.rushes(false, "coalesce: off")
	if err != nil {
		return err
	}
	flights, err := s.rushes(false, "coalesce: strict")
	if err != nil {
		return err
	}
	leases, err := s.rushes(true, "coalesce: strict", "lease: {enabled: true}")
	if err != nil {
		return err
	}
	s.row("without flights, nobody stores", "%s", plain)
	s.row("with flights, nobody stores", "%s", flights)
	s.row("with leases, who misses stores", "%s", leases)
	s.yes("without flights each client asks a server", slices.Min(plain.gets) == crowdSize)
	s.atMost("gets at the server, with flights", slices.Max(flights.gets), stampedeLoops)
	s.atMost("questions to the origin, with leases", slices.Max(leases.asked), 1)
	slices.Sort(leases.p99)
	s.within("p99 of the clients, with leases, in the middle", leases.p99[len(leases.p99)/2], originTime+20*time.Millisecond)
	s.atMost("failed requests", plain.failed+flights.failed+leases.failed, 0)
	return nil
}

// rush is what some stampedes did, one after the other.
type rush struct {
	gets    []int // that servers counted
	flights []int // requests that gets shared, as the router counts them
	asked   []int // questions to the origin
	p99     []time.Duration
	failed  int // clients
}

func (r rush) String() string {
	return fmt.Sprintf("gets at the server %v, flights %v, questions to the origin %v, p99 %v, %d failed",
		r.gets, r.flights, r.asked, r.p99, r.failed)
}

// rushes has the crowd come several times, each time for another key, to a router with settings of
// the pool. Those who miss store the value if stores says so.
func (s *stage) rushes(stores bool, pool ...string) (r rush, err error) {
	f, err := s.fleet(fleet.Config{Servers: 3, Routers: 1, Loops: stampedeLoops, Static: true, Timeout: 2 * time.Second, Pool: pool})
	if err != nil {
		return r, err
	}
	defer f.Stop()
	c, err := newCrowd(f, crowdSize)
	if err != nil {
		return r, err
	}
	defer c.close()
	if stores {
		c.origin = origin.New(originTime, 0)
	}
	for i := range s.repeats(5, 20) {
		if err := s.rush(f, c, fmt.Sprintf("cold:%d", i), &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// rush has the crowd come once, and adds what was seen.
func (s *stage) rush(f *fleet.Fleet, c *crowd, key string, r *rush) error {
	const flights = "cacherouter_flights_total"
	before, err := total(f)
	if err != nil {
		return err
	}
	flew, err := f.Routers[0].Metric(s.ctx, flights)
	if err != nil {
		return err
	}
	asked := c.asked()
	took, failed, err := c.ask(key)
	if err != nil {
		return err
	}
	after, err := total(f)
	if err != nil {
		return err
	}
	flewNow, err := f.Routers[0].Metric(s.ctx, flights)
	if err != nil {
		return err
	}
	slices.Sort(took)
	r.gets = append(r.gets, after-before)
	r.flights = append(r.flights, int(flewNow-flew))
	r.asked = append(r.asked, c.asked()-asked)
	r.p99 = append(r.p99, took[len(took)*99/100].Round(100*time.Microsecond))
	r.failed += failed
	return nil
}

// total is how many gets all servers have counted.
func total(f *fleet.Fleet) (sum int, err error) {
	counts, err := gets(f)
	for _, n := range counts {
		sum += n
	}
	return sum, err
}
