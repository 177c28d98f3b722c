//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/traffic"
)

// reload has routers read their configuration again while they serve: the same one, a wrong one, and one with
// another server.
func reload(s *stage) error {
	c := fleet.Config{Servers: 11, Listed: 10, Routers: 3, Handover: 10 * time.Second}
	return s.under(c, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		begin, times := time.Now(), s.repeats(10, 100)
		steady := r.Account().HitRatio(begin.Add(-time.Second), begin)
		s.note("the same configuration, %d times", times)
		if err := s.reloads(f, times, f.Reload); err != nil {
			return err
		}
		s.note("a wrong configuration, %d times", times)
		if err := s.reloads(f, times, func() error { return spoil(f) }); err != nil {
			return err
		}
		s.atMost("changes of placement", f.MostChanges(begin), 0)
		s.yes("each wrong configuration was refused, by each router", atEach(f, "reload refused", begin) == times)
		if err := s.listed(f, 11); err != nil {
			return err
		}
		if err := s.listed(f, 10); err != nil {
			return err
		}
		s.yes("each right configuration was taken over, by each router", atEach(f, "reloaded", begin) == times+2)
		s.unharmed("", r.Account(), begin, steady)
		return nil
	})
}

// reloads does something that has routers read their configuration, and waits each time until all have.
func (s *stage) reloads(f *fleet.Fleet, times int, do func() error) error {
	for range times {
		begin := time.Now().Truncate(time.Millisecond) // as routers log
		if err := do(); err != nil {
			return err
		}
		err := fleet.Await(s.ctx, "all routers have read their configuration", 30*time.Second, func() bool {
			for _, r := range f.Routers {
				if len(r.Events("reloaded", begin))+len(r.Events("reload refused", begin)) == 0 {
					return false
				}
			}
			return true
		})
		if err != nil {
			return err
		}
		if err := s.wait(100 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// listed has the routers take so many servers as their list, and waits until the hand-over is over.
func (s *stage) listed(f *fleet.Fleet, n int) error {
	s.note("%d servers are listed", n)
	if err := s.reloads(f, 1, func() error { return f.List(n) }); err != nil {
		return err
	}
	return s.wait(14 * time.Second)
}

func spoil(f *fleet.Fleet) error {
	for _, r := range f.Routers {
		if err := r.Spoil(); err != nil {
			return err
		}
	}
	return nil
}

// atEach is how many events with the message each router has had since, -1 if they differ.
func atEach(f *fleet.Fleet, message string, since time.Time) int {
	n := len(f.Routers[0].Events(message, since))
	for _, r := range f.Routers {
		if len(r.Events(message, since)) != n {
			return -1
		}
	}
	return n
}
