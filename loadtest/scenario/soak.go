//go:build linux

package scenario

import (
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/traffic"
)

// soak loads with everything that may leave something behind: connections that come and go, misses, deletes,
// configurations that are read again. After a warm-up of a quarter of the time no router may have more than before.
func soak(s *stage) error {
	change := func(p *traffic.Plan) {
		p.Zipf, p.Deletes, p.Churn, p.Failover = 0.9, 20, 20, true
	}
	return s.under(fleet.Config{Servers: 10, Routers: 3}, change, func(f *fleet.Fleet, r *traffic.Running) error {
		begin, length := time.Now(), s.lasting(2*time.Minute, 30*time.Minute)
		s.note("for %v", length)
		if err := s.reloading(f, length/4); err != nil {
			return err
		}
		held := make([]holding, len(f.Routers))
		for i := range held {
			held[i] = newHolding()
		}
		if err := s.watchHoldings(f, held, length-length/4); err != nil {
			return err
		}
		s.judgeHoldings(f, held)
		_, failed := r.Account().Done()
		s.atMost("failed requests", failed, 0)
		s.atMost("changes of placement", f.MostChanges(begin), 0)
		return nil
	})
}

// holding is what a router has, over time.
type holding struct {
	memory, descriptors, threads trend // MiB, numbers
}

// newHolding allows for memory what the runtime gives back late, or takes in one go, and for numbers less than one.
func newHolding() holding {
	return holding{memory: trend{grain: 2}, descriptors: trend{grain: 0.9}, threads: trend{grain: 0.9}}
}

// reloadEach is how often configurations are read again.
const reloadEach = 10 * time.Second

// reloading lets time pass, in which configurations are read again.
func (s *stage) reloading(f *fleet.Fleet, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := f.Reload(); err != nil {
			return err
		}
		if err := s.wait(min(reloadEach, time.Until(end))); err != nil {
			return err
		}
	}
	return nil
}

// watchHoldings looks at all routers some 200 times in the given time.
func (s *stage) watchHoldings(f *fleet.Fleet, held []holding, d time.Duration) error {
	begin, reloaded := time.Now(), time.Now()
	for time.Since(begin) < d {
		if err := s.wait(d / 200); err != nil {
			return err
		}
		for i, router := range f.Routers {
			u, err := router.Usage()
			if err != nil {
				return err
			}
			at := time.Since(begin).Seconds()
			held[i].memory.add(at, float64(u.Resident)/(1<<20))
			held[i].descriptors.add(at, float64(u.Descriptors))
			held[i].threads.add(at, float64(u.Threads))
		}
		if time.Since(reloaded) > reloadEach {
			reloaded = time.Now()
			if err := f.Reload(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) judgeHoldings(f *fleet.Fleet, held []holding) {
	grown := map[string]int{}
	for i, router := range f.Routers {
		for _, t := range []struct {
			what string
			*trend
		}{{"MiB of memory", &held[i].memory}, {"descriptors", &held[i].descriptors}, {"threads", &held[i].threads}} {
			s.row(router.Name+", "+t.what, "%s", t.trend)
			if t.grows() {
				grown[t.what]++
			}
		}
	}
	for _, what := range []string{"MiB of memory", "descriptors", "threads"} {
		s.atMost("routers that have ever more "+what, grown[what], 0)
	}
}
