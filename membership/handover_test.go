package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// namesOf returns the names of servers, each with what it may be asked for.
func namesOf(servers []Server) string {
	var all []string
	for _, s := range servers {
		name := strings.TrimPrefix(s.Name, "10.0.0.")
		if !s.Reads {
			name += "!"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// brief makes the hand-over last a minute.
func brief(c *Config) { c.Handover = time.Minute }

// TestBeforeAndAfter: while a drain is decided the placement to come is told, and then the
// one before, until the hand-over is over. A server that could not be reached for a moment
// may have missed what was to be deleted there, and is not asked again.
func TestBeforeAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(4)
		all := f.start(t, 3, brief)
		if !all[0].Drain(server0) {
			t.Fatal("not drained")
		}
		for _, c := range all {
			until(t, time.Second, "the placement to come", func() bool { return namesOf(c.View().After) == "1 2 3" })
			if s := c.View(); s.Before != nil || len(s.Placed()) != 4 {
				t.Errorf("before the change: %+v", s)
			}
		}
		for _, c := range all {
			until(t, 3*time.Second, "draining", is(c, server0, view.Draining))
			s := c.View()
			if got := namesOf(s.Before); got != "0 1 2 3" || s.After != nil || time.Until(s.Until).Round(time.Second) != time.Minute {
				t.Errorf("after the change: before %s, after %v, for %v", got, s.After, time.Until(s.Until))
			}
		}
		f.with(addr0, func(s *fakeServer) { s.stopped = true })
		traffic(all[0], server0, true)
		before := func() string { return namesOf(all[0].View().Before) }
		until(t, time.Second, "not asked any more", func() bool { return before() == "0! 1 2 3" })
		f.with(addr0, func(s *fakeServer) { s.stopped = false })
		until(t, 10*time.Second, "answers", func() bool { return find(t, all[0], server0).Health == health.SlowStart })
		if before() != "0! 1 2 3" || find(t, all[0], server0).Reads {
			t.Errorf("asked again: %s", before())
		}
		until(t, time.Minute, "the end", func() bool { return all[0].View().Before == nil })
	})
}

// TestHandoverEndsWhenARouterStarts: a router that started after the change does not know
// the placement before, so its writes leave alone what the others would read there.
func TestHandoverEndsWhenARouterStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(4)
		all := f.start(t, 2, brief)
		all[0].Drain(server0)
		for _, c := range all {
			until(t, 3*time.Second, "draining", is(c, server0, view.Draining))
			if c.View().Before == nil {
				t.Error("nothing is handed over")
			}
		}
		third := f.start(t, 2, func(c *Config) { brief(c); c.Router += "new" })
		for _, c := range slices.Concat(all, third) {
			if s := c.View(); s.Before != nil || len(s.Placed()) != 3 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// changing starts a router alone over a list that the test changes.
func changing(t *testing.T, f *fleet, list []discover.Server) (*settable, *Cluster) {
	t.Helper()
	source := &settable{servers: list}
	c := f.start(t, 1, func(c *Config) {
		brief(c)
		guard := discover.Guard{Trusted: true, MaxShrink: 1000}
		c.Sources = []*discover.Watcher{{Name: "changing", Source: source, Guard: guard, Every: 100 * time.Millisecond, Shortest: 100 * time.Millisecond, Log: c.Log}}
	})[0]
	return source, c
}

func listOf(numbers ...int) (l []discover.Server) {
	for _, i := range numbers {
		l = append(l, discover.Server{Name: fmt.Sprintf("10.0.0.%d", i), Address: fmt.Sprintf("10.0.0.%d:1", i), Weight: 1})
	}
	return l
}

// TestServerThatLeftIsAskedUntilItFails: a server that is on no list any more is watched by
// nobody, and still holds what it held.
func TestServerThatLeftIsAskedUntilItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(3)
		source, c := changing(t, f, listOf(0, 1, 2))
		source.set(listOf(1, 2))
		before := func() string { return namesOf(c.View().Before) }
		until(t, 3*time.Second, "handed over", func() bool { return before() == "0 1 2" })
		if s := c.View(); s.Before[0].Address != addr0 || len(s.Servers) != 2 {
			t.Errorf("%+v", s)
		}
		traffic(c, server0, false)
		if before() != "0 1 2" {
			t.Errorf("after it answered: %s", before())
		}
		traffic(c, server0, true)
		until(t, time.Second, "not asked any more", func() bool { return before() == "0! 1 2" })
	})
}

// TestOneServerForAnother: where a list replaces servers the placement changes once, when
// the new ones have answered, and does not wait for ever if they do not.
func TestOneServerForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(4)
		source, c := changing(t, f, listOf(0, 1))
		changes := c.Stats().View.Changes
		source.set(listOf(1, 2))
		until(t, 5*time.Second, "replaced", func() bool { return namesOf(c.View().Placed()) == "1 2" })
		if n := c.Stats().View.Changes - changes; n != 1 {
			t.Errorf("%d changes of the placement, want 1", n)
		}
		f.with("10.0.0.3:1", func(s *fakeServer) { s.down = true })
		source.set(listOf(1, 3))
		time.Sleep(3 * time.Second)
		if got := namesOf(c.View().Placed()); got != "1 2" {
			t.Errorf("placed %s while the new one is awaited", got)
		}
		until(t, 10*time.Second, "given up", func() bool { return namesOf(c.View().Placed()) == "1" })
	})
}

// TestOtherParameters: a router that places keys in another way has another list, and
// nothing to hand over.
func TestOtherParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(3)
		c := f.start(t, 1, brief)[0]
		old := c.View()
		c.SetParameters("ring")
		if s := c.View(); s.List == old.List || s.Digest == old.Digest || s.Before != nil || len(s.Placed()) != 3 {
			t.Errorf("%+v, before %+v", s, old)
		}
		c.SetParameters("")
		if s := c.View(); s.Digest != old.Digest {
			t.Errorf("digest %x, want %x again", s.Digest, old.Digest)
		}
	})
}
