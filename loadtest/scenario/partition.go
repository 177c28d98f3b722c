//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/traffic"
)

// partition cuts two of five routers off and kills a server: the three move its keys, the two stay
// as they are, and follow after the healing.
func partition(s *stage) error {
	return s.under(fleet.Config{Servers: 10, Routers: 5}, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		cut, err := f.Cut(s.ctx, 2)
		if err != nil {
			return err
		}
		defer cut.Heal()
		begin, victim := time.Now(), f.Servers[0]
		s.note("two routers are cut off from three")
		if err := s.wait(8 * time.Second); err != nil { // both sides know
			return err
		}
		s.note("kill %s", victim.Name)
		fault := time.Now()
		victim.Kill()
		if err := s.awaitMajority(f, victim.Name, fault); err != nil {
			return err
		}
		if err := s.wait(s.length(5*time.Second, 30*time.Second)); err != nil {
			return err
		}
		s.atMost("changes of placement by the two", max(len(f.Routers[0].Changes(begin)), len(f.Routers[1].Changes(begin))), 0)
		return s.heal(f, r, cut, victim, fault)
	})
}

// awaitMajority waits until the three have moved the server's keys.
func (s *stage) awaitMajority(f *fleet.Fleet, server string, fault time.Time) error {
	return fleet.Await(s.ctx, "the three move the keys of "+server, moved, func() bool {
		for _, at := range f.ChangedAt(server, false, fault)[2:] {
			if at.IsZero() {
				return false
			}
		}
		return true
	})
}

// heal ends the partition and waits until the two have followed.
func (s *stage) heal(f *fleet.Fleet, r *traffic.Running, cut *fleet.Partition, victim *fleet.Server, fault time.Time) error {
	var o outage
	o.add(r.Account(), fault)
	s.row("failed reads", "%s", &o.reads)
	s.row("failed writes", "%s", &o.writes)
	s.note("the cut is healed")
	healed := time.Now()
	if err := cut.Heal(); err != nil {
		return err
	}
	if err := s.awaitChange(f, victim.Name, false, fault, 2*time.Minute); err != nil {
		return err
	}
	s.within("one view after", time.Since(healed), 45*time.Second)
	return s.wait(3 * time.Second)
}
