//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

// several has clients know all routers, each with one that it asks first.
func several(p *traffic.Plan) { p.Failover = true }

// routerKill kills routers, and starts them again.
func routerKill(s *stage) error {
	return s.under(fleet.Config{Servers: 10, Routers: 3}, several, func(f *fleet.Fleet, r *traffic.Running) error {
		begin, repeats := time.Now(), s.repeats(3, 20)
		for i := range repeats {
			victim := f.Routers[i%len(f.Routers)]
			s.note("kill %s", victim.Name)
			victim.Kill()
			if err := s.wait(4 * time.Second); err != nil {
				return err
			}
			if err := victim.Start(s.ctx); err != nil {
				return err
			}
			if err := s.wait(settle); err != nil { // until then it decides nothing
				return err
			}
		}
		s.row("kills", "%d", repeats)
		s.unseen(f, r, begin)
		return nil
	})
}

// rollRouters restarts each router in order, as a new version would be brought out.
func rollRouters(s *stage) error {
	return s.under(fleet.Config{Servers: 10, Routers: 3}, several, func(f *fleet.Fleet, r *traffic.Running) error {
		begin, longest := time.Now(), time.Duration(0)
		for range s.repeats(1, 5) {
			for _, router := range f.Routers {
				s.note("restart %s", router.Name)
				stopping := time.Now()
				router.Stop()
				longest = max(longest, time.Since(stopping))
				if err := router.Start(s.ctx); err != nil {
					return err
				}
				if err := s.wait(settle); err != nil {
					return err
				}
			}
		}
		s.within("a router ends after", longest, 2*time.Second)
		s.unseen(f, r, begin)
		return nil
	})
}

// unseen holds what clients and placements noticed against nothing.
func (s *stage) unseen(f *fleet.Fleet, r *traffic.Running, begin time.Time) {
	a := r.Account()
	var o outage
	o.add(a, begin)
	s.row("failed reads", "%s", &o.reads)
	s.row("failed writes", "%s", &o.writes)
	s.row("requests that another router was asked again", "%d", a.Again())
	s.atMost("failed requests", o.reads.failed+o.writes.failed, 0)
	s.atMost("values lost", a.Count(ledger.Lost), 0)
	s.atMost("changes of placement", f.MostChanges(begin), 0)
}

// rollServers restarts all servers: first at once, as after a crash, then some as an administrator would.
func rollServers(s *stage) error {
	c := fleet.Config{Servers: 10, Routers: 3, Timeout: 500 * time.Millisecond, Handover: 10 * time.Second}
	few := func(p *traffic.Plan) { p.Ledger = ledger.New(5000, 100) } // each is asked for within the hand-over
	return s.under(c, few, func(f *fleet.Fleet, r *traffic.Running) error {
		if err := s.restartAtOnce(f, r); err != nil {
			return err
		}
		return s.restartDrained(f, r)
	})
}

// restartAtOnce has servers lose what they hold, which is placed on them as before.
func (s *stage) restartAtOnce(f *fleet.Fleet, r *traffic.Running) error {
	var o outage
	begin := time.Now()
	for _, server := range f.Servers {
		s.note("restart %s", server.Name)
		fault := time.Now()
		server.Kill()
		if err := server.Start(s.ctx); err != nil {
			return err
		}
		if err := s.wait(4 * time.Second); err != nil {
			return err
		}
		o.add(r.Account(), fault)
	}
	s.row("restarted at once: failed reads", "%s", &o.reads)
	s.row("restarted at once: failed writes", "%s", &o.writes)
	s.row("restarted at once: worst second's hits", "%.3f", r.Account().WorstHitRatio(begin, time.Now(), time.Second))
	s.atMost("restarted at once: failed reads at a loop per restart", o.reads.most, 3)
	s.within("restarted at once: writes fail", o.writes.last, 2*time.Second) // until it is cleaned of what it may have missed
	s.atMost("restarted at once: changes of placement", f.MostChanges(begin), 0)
	return s.wait(10 * time.Second) // what was lost is there again
}

// restartDrained moves a server's keys away before, and back.
func (s *stage) restartDrained(f *fleet.Fleet, r *traffic.Running) error {
	begin := time.Now()
	steady := r.Account().HitRatio(begin.Add(-time.Second), begin)
	for _, server := range f.Servers[:s.repeats(2, 10)] {
		s.note("drain %s", server.Name)
		if err := f.Routers[0].Drain(s.ctx, server); err != nil {
			return err
		}
		s.note("restart %s", server.Name)
		server.Kill()
		if err := server.Start(s.ctx); err != nil {
			return err
		}
		again := time.Now()
		if err := f.Routers[0].Undrain(s.ctx, server); err != nil {
			return err
		}
		if err := s.awaitChange(f, server.Name, true, again, returned); err != nil {
			return err
		}
		s.row("drained: it is placed again after", "%v", time.Since(again).Round(100*time.Millisecond))
		if err := s.wait(12 * time.Second); err != nil { // the hand-over is over
			return err
		}
	}
	s.unharmed("drained: ", r.Account(), begin, steady)
	return nil
}
