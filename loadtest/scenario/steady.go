//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

// steady is what all others are to be compared with.
func steady(s *stage) error {
	return s.under(fleet.Config{Servers: 10, Routers: 3}, nil, func(f *fleet.Fleet, r *traffic.Running) error {
		begin := time.Now()
		if err := s.wait(s.lasting(20*time.Second, 5*time.Minute)); err != nil {
			return err
		}
		a := r.Account()
		_, failed := a.Done()
		s.atMost("failed requests", failed, 0)
		s.atMost("values lost", a.Count(ledger.Lost), 0)
		s.atMost("changes of placement", f.MostChanges(begin), 0)
		return nil
	})
}
