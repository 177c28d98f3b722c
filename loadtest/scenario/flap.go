//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/traffic"
)

// flap takes a server away again and again. The short form is of two seconds; the long one of ten is
// about keys that are moved each time if nothing is damped.
func flap(s *stage) error {
	phase, length, goal, late := 2*time.Second, time.Minute, 1, 1
	if s.Long {
		phase, length, goal, late = 10*time.Second, 10*time.Minute, 12, 3
	}
	c := fleet.Config{Servers: 10, Routers: 3, Timeout: 500 * time.Millisecond}
	return s.under(c, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		begin, victim := time.Now(), f.Servers[0]
		steady := r.Account().HitRatio(begin.Add(-time.Second), begin)
		s.note("%s is stopped for %v, goes on for %v, and so on for %v", victim.Name, phase, phase, length)
		if err := s.flapping(victim, phase, length); err != nil {
			return err
		}
		end := time.Now()
		s.row("changes at each router", "%s", changesOf(f, begin))
		s.atMost("changes of placement", f.MostChanges(begin), goal)
		s.atMost("of them in the second half", f.MostChanges(begin.Add(end.Sub(begin)/2)), late)
		s.hitsAfterFirst(f, r, begin, end, steady)
		return nil
	})
}

// flapping lasts the given length, and a while in which the last change shows its effect.
func (s *stage) flapping(victim *fleet.Server, phase, length time.Duration) error {
	for begin := time.Now(); time.Since(begin) < length; {
		if err := s.away(victim, phase); err != nil {
			return err
		}
		if err := s.wait(phase); err != nil {
			return err
		}
	}
	return s.wait(5 * time.Second)
}

// hitsAfterFirst compares the worst second after the first change of placement with what was
// before, or after the first fault if nothing was changed.
func (s *stage) hitsAfterFirst(f *fleet.Fleet, r *traffic.Running, begin, end time.Time, steady float64) {
	first := begin
	for _, router := range f.Routers {
		for _, c := range router.Changes(begin) {
			if first == begin || c.At.Before(first) {
				first = c.At
			}
		}
	}
	worst := r.Account().WorstHitRatio(first, end, time.Second)
	s.row("hit ratio", "%.3f before; the worst second %.3f, %.3f after the first change", steady,
		r.Account().WorstHitRatio(begin, end, time.Second), worst)
	s.ratioAtLeast("worst second after the first change, to before", worst/steady, 0.9)
}

// changesOf lists the changes at each router by the second.
func changesOf(f *fleet.Fleet, begin time.Time) (text string) {
	for i, r := range f.Routers {
		if i > 0 {
			text += "; "
		}
		text += r.Name + ":"
		for _, c := range r.Changes(begin) {
			how := " out "
			if c.Placed {
				how = " in "
			}
			text += how + c.At.Sub(begin).Round(time.Second).String()
		}
	}
	return text
}

// comeBack kills a server, and starts it again, empty, when its keys are placed elsewhere.
func comeBack(s *stage) error {
	return s.under(fleet.Config{Servers: 10, Routers: 3}, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		begin, victim := time.Now(), f.Servers[0]
		steady := r.Account().HitRatio(begin.Add(-time.Second), begin)
		s.note("kill %s", victim.Name)
		victim.Kill()
		if err := s.awaitChange(f, victim.Name, false, begin, moved); err != nil {
			return err
		}
		if err := s.wait(3 * time.Second); err != nil {
			return err
		}
		s.note("start %s again", victim.Name)
		again := time.Now()
		if err := victim.Start(s.ctx); err != nil {
			return err
		}
		if err := s.awaitChange(f, victim.Name, true, again, returned); err != nil {
			return err
		}
		s.row("it is placed again after", "%v", time.Since(again).Round(time.Second))
		err := s.wait(8 * time.Second)
		s.hitsAfterFirst(f, r, begin, time.Now(), steady)
		return err
	})
}
