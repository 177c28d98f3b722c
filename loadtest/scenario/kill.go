//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

const (
	moved    = 90 * time.Second  // is more than a change of placement takes on a machine that is busy with other things
	returned = 180 * time.Second // is more than it takes until a server is placed again
)

// kill kills servers: with one router, which decides alone, and with three, which have to agree.
func kill(s *stage) error {
	if err := s.killAt(1, s.repeats(1, 4)); err != nil {
		return err
	}
	return s.killAt(3, s.repeats(4, 20))
}

func (s *stage) killAt(routers, repeats int) error {
	var o outage
	var w switching
	for repeats > 0 {
		n := min(repeats, 2) // a fifth of the servers may be out, of ten two
		repeats -= n
		if err := s.killSome(routers, n, &o, &w); err != nil {
			return err
		}
	}
	who := "three routers: "
	if routers == 1 {
		who = "one router: "
	}
	s.row(who+"failed reads", "%s", &o.reads)
	s.row(who+"failed writes", "%s", &o.writes)
	s.atMost(who+"failed reads at a loop per kill", o.reads.most, 3)
	s.within(who+"reads fail", o.reads.last, 200*time.Millisecond)
	s.within(who+"writes fail", o.writes.last, 200*time.Millisecond)
	s.within(who+"keys are moved after, p50", w.quantile(0.5), 5500*time.Millisecond)
	s.within(who+"keys are moved after, p99", w.quantile(0.99), 7*time.Second)
	if routers > 1 {
		s.within(who+"from the first router to the last", w.spread, 100*time.Millisecond)
	}
	return nil
}

// killSome kills some servers of a new fleet, one after the other.
func (s *stage) killSome(routers, n int, o *outage, w *switching) error {
	return s.under(fleet.Config{Servers: 10, Routers: routers}, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		for _, victim := range f.Servers[:n] {
			if err := s.killOne(f, r, victim, o, w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *stage) killOne(f *fleet.Fleet, r *traffic.Running, victim *fleet.Server, o *outage, w *switching) error {
	s.note("kill %s", victim.Name)
	fault := time.Now()
	victim.Kill()
	if err := s.awaitChange(f, victim.Name, false, fault, moved); err != nil {
		return err
	}
	if err := w.add(f.ChangedAt(victim.Name, false, fault), fault); err != nil {
		return err
	}
	err := s.wait(3 * time.Second)
	o.add(r.Account(), fault)
	return err
}

// stop stops a server until its keys are moved, and lets it go on, with all it held.
func stop(s *stage) error {
	const timeout = 500 * time.Millisecond
	return s.under(fleet.Config{Servers: 10, Routers: 3, Timeout: timeout}, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		var o outage
		var w switching
		victim, fault := f.Servers[0], time.Now()
		s.note("stop %s", victim.Name)
		if err := victim.Pause(); err != nil {
			return err
		}
		if err := s.awaitChange(f, victim.Name, false, fault, moved); err != nil {
			return err
		}
		if err := w.add(f.ChangedAt(victim.Name, false, fault), fault); err != nil {
			return err
		}
		o.add(r.Account(), fault)
		s.row("failed reads", "%s", &o.reads)
		s.row("failed writes", "%s", &o.writes)
		s.within("reads fail", o.reads.last, timeout+200*time.Millisecond)
		s.within("writes fail", o.writes.last, timeout+200*time.Millisecond)
		s.within("keys are moved after, the last router", w.quantile(1), 7*time.Second)
		return s.goOn(f, r, victim)
	})
}

// goOn lets a server that was moved from go on, and waits until it is placed again.
func (s *stage) goOn(f *fleet.Fleet, r *traffic.Running, victim *fleet.Server) error {
	s.note("%s goes on", victim.Name)
	fault, stale := time.Now(), r.Account().Count(ledger.Stale)
	if err := victim.Resume(); err != nil {
		return err
	}
	if err := s.awaitChange(f, victim.Name, true, fault, returned); err != nil {
		return err
	}
	s.row("it is placed again after", "%v", time.Since(fault).Round(time.Second))
	err := s.wait(3 * time.Second)
	s.row("stale values since", "%d", r.Account().Count(ledger.Stale)-stale)
	return err
}
