//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

// staleGoal is how many operations the long form makes, with one router and with five.
const staleGoal = 1_000_000

// failoverTTL is how long, by the contract, a router may read what another one replaced once there
// is failing over: what is written in place of a server lives so long.
const failoverTTL = time.Minute

// trouble is something that brings old values back if it is not handled.
type trouble struct {
	name    string
	make    func(*stage, *fleet.Fleet) error
	several bool // it takes several routers
}

var troubles = []trouble{
	{"a server is killed and started again", killAndStart, false},
	{"a server is stopped for 3 s and goes on", stopShortly, false},
	{"a server is stopped until its keys are moved, and goes on with what it held", stopLong, false},
	{"a router cannot reach a server for 6 s", cutOne, false},
	{"routers are cut off from each other while a server is stopped", stopDuringCut, true},
	{"a router is killed and started again while a server is stopped", stopDuringRouterRestart, true},
	{"a server is replaced by a new process with the old one's memory", replaceAfterOutage, false},
}

// stale makes all troubles, one after the other, under a load that writes and deletes much.
func stale(s *stage) error {
	if err := s.staleWith(1); err != nil {
		return err
	}
	return s.staleWith(5)
}

func (s *stage) staleWith(routers int) error {
	c := fleet.Config{Servers: 10, Routers: routers, Timeout: 500 * time.Millisecond, Keep: true}
	change := func(p *traffic.Plan) {
		p.Ledger, p.Writes, p.Deletes, p.Refill = ledger.New(5000, 100), 250, 50, false
		if s.Long {
			p.Rate = 4000
		}
	}
	return s.under(c, change, func(f *fleet.Fleet, r *traffic.Running) error {
		s.row("routers", "%d", routers)
		for done := 0; done == 0 || s.Long && done < staleGoal; done, _ = r.Account().Done() {
			if err := s.troubles(f, r); err != nil {
				return err
			}
		}
		if done, _ := r.Account().Done(); s.Long {
			s.yes("a million operations were made", done >= staleGoal)
		}
		if routers > 1 {
			s.within("the stalest value was out of date for", r.Account().Oldest(), failoverTTL)
		}
		return nil
	})
}

// troubles makes all that the fleet is large enough for.
func (s *stage) troubles(f *fleet.Fleet, r *traffic.Running) error {
	for _, t := range troubles {
		if t.several && len(f.Routers) == 1 {
			continue
		}
		if err := s.trouble(f, r, t); err != nil {
			return err
		}
	}
	return nil
}

// trouble makes one and says what was seen meanwhile, and for a while after it.
func (s *stage) trouble(f *fleet.Fleet, r *traffic.Running, t trouble) error {
	s.note("%s", t.name)
	a := r.Account()
	before, lost := a.Count(ledger.Stale), a.Count(ledger.Lost)
	_, failed := a.Done()
	begin := time.Now()
	if err := t.make(s, f); err != nil {
		return err
	}
	if err := s.wait(4 * time.Second); err != nil {
		return err
	}
	_, failedNow := a.Done()
	s.row(t.name, "%d stale, %d lost, %d failed, in %v", a.Count(ledger.Stale)-before, a.Count(ledger.Lost)-lost,
		failedNow-failed, time.Since(begin).Round(time.Second))
	return nil
}

func killAndStart(s *stage, f *fleet.Fleet) error {
	victim, fault := f.Servers[0], time.Now()
	victim.Kill()
	if err := s.awaitChange(f, victim.Name, false, fault, moved); err != nil {
		return err
	}
	again := time.Now()
	if err := victim.Start(s.ctx); err != nil {
		return err
	}
	return s.awaitChange(f, victim.Name, true, again, returned)
}

func stopShortly(s *stage, f *fleet.Fleet) error { return s.away(f.Servers[1], 3*time.Second) }

func stopLong(s *stage, f *fleet.Fleet) error {
	return s.outOf(f, f.Servers[2], func() error { return nil })
}

// outOf stops a server until its keys are moved, does something, lets it go on, and waits until it is
// placed again.
func (s *stage) outOf(f *fleet.Fleet, victim *fleet.Server, meanwhile func() error) error {
	fault := time.Now()
	if err := victim.Pause(); err != nil {
		return err
	}
	if err := s.awaitChange(f, victim.Name, false, fault, moved); err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	again := time.Now()
	if err := victim.Resume(); err != nil {
		return err
	}
	return s.awaitChange(f, victim.Name, true, again, returned)
}

func stopDuringCut(s *stage, f *fleet.Fleet) error {
	cut, err := f.Cut(s.ctx, 2)
	if err != nil {
		return err
	}
	defer cut.Heal()
	if err := s.wait(7 * time.Second); err != nil {
		return err
	}
	victim, fault := f.Servers[3], time.Now()
	if err := victim.Pause(); err != nil {
		return err
	}
	if err := s.awaitMajority(f, victim.Name, fault); err != nil {
		return err
	}
	if err := cut.Heal(); err != nil {
		return err
	}
	again := time.Now()
	if err := victim.Resume(); err != nil {
		return err
	}
	return s.awaitAllPlaced(f, again)
}

// awaitAllPlaced waits until no router has a server out.
func (s *stage) awaitAllPlaced(f *fleet.Fleet, since time.Time) error {
	return fleet.Await(s.ctx, "all servers are placed at all routers", 2*returned, func() bool {
		for _, r := range f.Routers {
			if len(r.Out()) > 0 || time.Since(since) < 10*time.Second {
				return false
			}
		}
		return true
	})
}

func stopDuringRouterRestart(s *stage, f *fleet.Fleet) error {
	return s.outOf(f, f.Servers[4], func() error {
		f.Routers[4].Kill()
		return f.Routers[4].Start(s.ctx)
	})
}

// cutOne makes one router read elsewhere what the others go on writing to its home. It is the home
// that was killed before, so that its keys have been on other servers once.
func cutOne(s *stage, f *fleet.Fleet) error {
	cut, err := f.CutServer(s.ctx, f.Routers[0], f.Servers[0])
	if err != nil {
		return err
	}
	defer cut.Heal()
	begin := time.Now()
	if err := s.wait(6 * time.Second); err != nil {
		return err
	}
	if err := cut.Heal(); err != nil {
		return err
	}
	if len(f.Routers) > 1 {
		s.atMost("changes of placement as one router cannot reach a server", f.MostChanges(begin), 0)
		return nil
	}
	return s.awaitAllPlaced(f, time.Now()) // alone, it has decided
}

// replaceAfterOutage is about a process that is new and yet not empty.
func replaceAfterOutage(s *stage, f *fleet.Fleet) error {
	return s.outOf(f, f.Servers[5], func() error {
		if err := f.Servers[5].Resume(); err != nil {
			return err
		}
		return f.Servers[5].Replace(s.ctx)
	})
}
