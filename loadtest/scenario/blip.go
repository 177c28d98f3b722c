//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/traffic"
)

// blip takes servers away for less than it takes to place their keys anew.
func blip(s *stage) error {
	c := fleet.Config{Servers: 10, Routers: 3, Timeout: 500 * time.Millisecond}
	return s.under(c, nil, func(f *fleet.Fleet, _ *traffic.Running) error {
		begin, repeats := time.Now(), s.repeats(4, 20)
		for i := range repeats {
			if err := s.blip(f.Servers[i%len(f.Servers)], i%2 == 0); err != nil {
				return err
			}
		}
		err := s.wait(5 * time.Second)
		s.row("blips", "%d, of 2 s (killed and started again) and of 3 s (stopped)", repeats)
		s.atMost("changes of placement", f.MostChanges(begin), 0)
		return err
	})
}

func (s *stage) blip(victim *fleet.Server, killed bool) error {
	if killed {
		s.note("%s is killed for 2 s", victim.Name)
		victim.Kill()
		if err := s.wait(2 * time.Second); err != nil {
			return err
		}
		if err := victim.Start(s.ctx); err != nil {
			return err
		}
	} else {
		s.note("%s is stopped for 3 s", victim.Name)
		if err := s.away(victim, 3*time.Second); err != nil {
			return err
		}
	}
	return s.wait(4 * time.Second)
}

// away stops a server for a while.
func (s *stage) away(victim *fleet.Server, d time.Duration) error {
	if err := victim.Pause(); err != nil {
		return err
	}
	if err := s.wait(d); err != nil {
		return err
	}
	return victim.Resume()
}

// router takes the processor from a router: one that sees nothing, or everything late, must not
// make the others move keys.
func router(s *stage) error {
	others := func(p *traffic.Plan) { p.Targets = p.Targets[1:] } // the first is the victim
	return s.under(fleet.Config{Servers: 10, Routers: 3}, others, func(f *fleet.Fleet, r *traffic.Running) error {
		victim, begin := f.Routers[0], time.Now()
		if err := s.stand(victim); err != nil {
			return err
		}
		s.atMost("changes of placement while one router stood still", f.MostChanges(begin), 0)
		starved := time.Now()
		if err := s.starve(victim); err != nil {
			return err
		}
		s.atMost("changes of placement while one router got little processor time", f.MostChanges(starved), 0)
		var o outage
		o.add(r.Account(), begin)
		s.row("failed reads at the others", "%s", &o.reads)
		s.row("failed writes at the others", "%s", &o.writes)
		s.atMost("requests that failed at the other routers", o.reads.failed+o.writes.failed, 0)
		return nil
	})
}

// aftermath is how long to look for what a fault of a router has done.
const aftermath = 8 * time.Second

// stand stops a router for 10 s.
func (s *stage) stand(victim *fleet.Router) error {
	s.note("%s is stopped for 10 s", victim.Name)
	if err := victim.Pause(); err != nil {
		return err
	}
	if err := s.wait(10 * time.Second); err != nil {
		return err
	}
	if err := victim.Resume(); err != nil {
		return err
	}
	return s.wait(aftermath)
}

// starve lets a router run for a tenth of the time only, for 10 s, as if others had its processor:
// everything it sees is late. Only it is slowed down, not the machine.
func (s *stage) starve(victim *fleet.Router) error {
	s.note("%s gets a tenth of the processor time for 10 s", victim.Name)
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		if err := victim.Pause(); err != nil {
			return err
		}
		if err := s.wait(180 * time.Millisecond); err != nil {
			return err
		}
		if err := victim.Resume(); err != nil {
			return err
		}
		if err := s.wait(20 * time.Millisecond); err != nil {
			return err
		}
	}
	return s.wait(aftermath)
}
