package membership

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
)

const (
	addr0   = "10.0.0.0:1"
	server0 = "10.0.0.0"
)

// until waits, in the time of the bubble, until a condition holds.
func until(t *testing.T, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !cond() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(began)
}

func find(t *testing.T, c *Cluster, server string) Server {
	t.Helper()
	s, ok := c.View().Find(server)
	if !ok {
		t.Fatalf("%s is not listed", server)
	}
	return s
}

func is(c *Cluster, server string, want view.Status) func() bool {
	return func() bool { s, _ := c.View().Find(server); return s.Status == want }
}

// TestLifeOfAFailure follows a server through a failure at a router alone: three failed
// requests, failing over at once, moving the keys, and back.
func TestLifeOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		c := f.start(t, 1, nil)[0]
		if s := find(t, c, server0); !s.Reads || s.Writes != Home || s.Share != 1000 {
			t.Fatalf("at the start: %+v", s)
		}
		f.with(addr0, func(s *fakeServer) { s.down = true })
		began := time.Now()
		traffic(c, server0, true)
		if s := find(t, c, server0); s.Reads || s.Writes != Failover || s.Status != view.Away {
			t.Errorf("after three failures: %+v", s)
		}
		until(t, 7*time.Second, "keys moved", is(c, server0, view.Out))
		t.Logf("keys moved %v after the kill", time.Since(began))
		if n := len(c.View().Placed()); n != 4 {
			t.Errorf("%d servers placed", n)
		}
		f.with(addr0, func(s *fakeServer) { s.down, s.process = false, journal.Process{PID: 1, Started: time.Now()} })
		until(t, 30*time.Second, "back", is(c, server0, view.In))
		if s := find(t, c, server0); s.Health != health.SlowStart || s.Share > 500 || s.Share < 100 {
			t.Errorf("just back: %+v", s)
		}
		f.with(addr0, func(s *fakeServer) {
			if s.flushes > 0 {
				t.Error("a new process was emptied")
			}
		})
		until(t, 2*time.Minute, "warm", func() bool { return find(t, c, server0).Share == 1000 })
	})
}

// TestBlipLeavesNothingBehind: what a server missed during a blip is deleted from it
// before it serves again, and nothing is moved.
func TestBlipLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		all := f.start(t, 3, nil)
		digest := all[0].View().Digest
		f.with(addr0, func(s *fakeServer) { s.stopped = true })
		for _, c := range all {
			traffic(c, server0, true)
			if s := find(t, c, server0); s.Reads || s.Writes != Refuse {
				t.Errorf("before the routers agree: %+v", s)
			}
		}
		for _, c := range all {
			until(t, time.Second, "agreed", is(c, server0, view.Away))
			if s := find(t, c, server0); s.Writes != Failover {
				t.Errorf("when the routers agree: %+v", s)
			}
		}
		all[0].Missed(server0, 1, []byte("one"))
		all[1].Missed(server0, 2, []byte("two"))
		if got := all[0].Stats().Journals[server0]; got != 1 {
			t.Errorf("%d keys in the journal", got)
		}
		time.Sleep(time.Second)
		f.with(addr0, func(s *fakeServer) { s.stopped = false })
		until(t, 2*time.Second, "cleaning", func() bool { return find(t, all[0], server0).Clean })
		for _, c := range all {
			until(t, 3*time.Second, "back", is(c, server0, view.In))
			if s := find(t, c, server0); !s.Reads || s.Writes != Home || c.View().Digest != digest {
				t.Errorf("back: %+v", s)
			}
			if st := c.Stats(); st.View.Changes != 0 {
				t.Errorf("%d changes of placement", st.View.Changes)
			}
		}
		f.with(addr0, func(s *fakeServer) {
			if s.flushes > 0 || len(s.deleted) != 2 {
				t.Errorf("flushed %d times, deleted %v", s.flushes, s.deleted)
			}
		})
	})
}

// TestMissedAfterCleaning: what a server misses after it was cleaned, while another router
// still holds it back, is made good too.
func TestMissedAfterCleaning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		all := f.start(t, 3, nil)
		f.with(addr0, func(s *fakeServer) { s.stopped = true })
		for _, c := range all {
			traffic(c, server0, true)
		}
		until(t, time.Second, "failed over", is(all[0], server0, view.Away))
		f.mu.Lock()
		f.servers[addr0].stopped, f.cut2["r1>"+addr0] = false, true
		f.mu.Unlock()
		until(t, 4*time.Second, "cleaned by the first router", func() bool { return all[0].find(server0).clean.Load() })
		all[0].Missed(server0, 1, []byte("late"))
		f.mu.Lock()
		delete(f.cut2, "r1>"+addr0)
		f.mu.Unlock()
		until(t, 10*time.Second, "back", is(all[0], server0, view.In))
		f.with(addr0, func(s *fakeServer) {
			if len(s.deleted) != 1 || s.flushes > 0 {
				t.Errorf("deleted %v, emptied %d times", s.deleted, s.flushes)
			}
		})
	})
}

// TestMemoryKeptTooLong: a server that kept its memory while its keys were elsewhere is
// emptied, or stays out, by option.
func TestMemoryKeptTooLong(t *testing.T) {
	outage := func(t *testing.T, change func(*Config), server func(*fakeServer)) (*fleet, *Cluster) {
		f := newFleet(5)
		c := f.start(t, 1, change)[0]
		f.with(addr0, func(s *fakeServer) { s.stopped = true; server(s) })
		until(t, 10*time.Second, "keys moved", is(c, server0, view.Out))
		time.Sleep(20 * time.Second)
		f.with(addr0, func(s *fakeServer) { s.stopped = false })
		return f, c
	}
	synctest.Test(t, func(t *testing.T) {
		f, c := outage(t, nil, func(*fakeServer) {})
		until(t, 20*time.Second, "back", is(c, server0, view.In))
		f.with(addr0, func(s *fakeServer) {
			if s.flushes != 1 {
				t.Errorf("emptied %d times", s.flushes)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		f, c := outage(t, func(c *Config) { c.Readmit.Quarantine = true }, func(*fakeServer) {})
		time.Sleep(10 * time.Minute)
		if !is(c, server0, view.Out)() {
			t.Error("a server in quarantine came back")
		}
		f.with(addr0, func(s *fakeServer) { s.process = journal.Process{PID: 2, Started: time.Now()} })
		until(t, time.Minute, "back as a new process", is(c, server0, view.In))
	})
	synctest.Test(t, func(t *testing.T) {
		_, c := outage(t, nil, func(s *fakeServer) { s.deaf = true })
		time.Sleep(10 * time.Minute)
		if !is(c, server0, view.Out)() {
			t.Error("a server that cannot be emptied came back")
		}
	})
}

// TestJournalOverflow: what was missed is not known any more, so the server is emptied.
func TestJournalOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		c := f.start(t, 1, func(c *Config) { c.Journal.MaxKeys = 2 })[0]
		f.with(addr0, func(s *fakeServer) { s.stopped = true })
		traffic(c, server0, true)
		for i := range uint64(3) {
			c.Missed(server0, i, []byte{'k', byte('0' + i)})
		}
		c.Missed("nobody", 1, []byte("k"))
		f.with(addr0, func(s *fakeServer) { s.stopped = false })
		until(t, 5*time.Second, "back", is(c, server0, view.In))
		f.with(addr0, func(s *fakeServer) {
			if s.flushes != 1 {
				t.Errorf("emptied %d times", s.flushes)
			}
		})
	})
}

// TestAloneAgainstTheOthers: a router that alone cannot reach a server refuses writes, or
// fails them over by option, and then deletes what the server missed before it reads from
// it again.
func TestAloneAgainstTheOthers(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(5)
			c := f.start(t, 3, func(c *Config) { c.FailoverAtOnce = atOnce })[0]
			f.mu.Lock()
			f.cut2["r0>"+addr0] = true
			f.mu.Unlock()
			traffic(c, server0, true)
			time.Sleep(20 * time.Second)
			want := map[bool]Writes{false: Refuse, true: Failover}[atOnce]
			if s := find(t, c, server0); s.Reads || s.Writes != want || s.Status != view.In {
				t.Errorf("a server that only we cannot reach: %+v", s)
			}
			if atOnce {
				c.Missed(server0, 1, []byte("k"))
			}
			f.mu.Lock()
			f.cut2["r0>"+addr0] = false
			f.mu.Unlock()
			until(t, 10*time.Second, "used again", func() bool {
				s := find(t, c, server0)
				return s.Reads && s.Writes == Home
			})
			f.with(addr0, func(s *fakeServer) {
				if atOnce != (len(s.deleted) == 1) {
					t.Errorf("deleted %v", s.deleted)
				}
			})
		})
	}
}

// TestReturnUnheard: a router that cannot hear the others reads nothing from a server that
// comes back before they have emptied it, and uses it later.
func TestReturnUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		all := f.start(t, 5, nil)
		lonely := all[4]
		f.mu.Lock()
		f.cut[4] = true
		f.mu.Unlock()
		until(t, 30*time.Second, "too few are heard", func() bool { return lonely.Stats().View.Frozen })
		f.with(addr0, func(s *fakeServer) { s.stopped = true })
		for _, c := range all {
			traffic(c, server0, true)
		}
		until(t, 10*time.Second, "keys moved by the others", is(all[0], server0, view.Out))
		f.with(addr0, func(s *fakeServer) { s.stopped = false })
		emptied := func() (yes bool) {
			f.with(addr0, func(s *fakeServer) { yes = s.flushes > 0 })
			return yes
		}
		until(t, 10*time.Second, "emptied", func() bool {
			if s := find(t, lonely, server0); s.Reads || s.Writes != Refuse {
				t.Fatalf("used before it was emptied: %+v", s)
			}
			return emptied()
		})
		took := until(t, 2*unheard, "used again", func() bool { return find(t, lonely, server0).Reads })
		t.Logf("used %v after it was emptied", took)
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(4)
		all := f.start(t, 3, nil)
		if all[0].Drain("nobody") || !all[0].Drain(server0) {
			t.Fatal("draining")
		}
		for _, c := range all {
			until(t, 3*time.Second, "drained", is(c, server0, view.Draining))
		}
		if !all[1].Undrain(server0) {
			t.Fatal("undraining")
		}
		for _, c := range all {
			until(t, 20*time.Second, "back", is(c, server0, view.In))
		}
	})
}

// TestChangedIsALevel: however many changes there were, there is one token, and the state
// is the last one.
func TestChangedIsALevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		c := f.start(t, 1, nil)[0]
		for range 5 {
			traffic(c, server0, true)
			time.Sleep(10 * time.Second)
		}
		<-c.Changed()
		select {
		case <-c.Changed():
			t.Error("a second token")
		default:
		}
	})
}

// TestLogsChangesOnce: an outage of half an hour is logged in a few lines.
func TestLogsChangesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFleet(5)
		c := f.start(t, 1, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })[0]
		f.with(addr0, func(s *fakeServer) { s.down = true })
		time.Sleep(30 * time.Minute)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "\n"); n < 3 || n > 5 {
			t.Errorf("%d lines:\n%s", n, &log)
		}
	})
}

func TestStartRefusals(t *testing.T) {
	f := newFleet(1)
	ok := Config{Router: "r", Prober: prober{f, "r"}, Log: slog.New(slog.DiscardHandler)}
	ok.Sources = []*discover.Watcher{{Source: f.list(), Log: ok.Log}}
	empty := &discover.Watcher{Source: discover.Static{}, Log: ok.Log}
	for name, change := range map[string]func(*Config){
		"no router":  func(c *Config) { c.Router = "" },
		"no sources": func(c *Config) { c.Sources = nil },
		"no prober":  func(c *Config) { c.Prober = nil },
		"no servers": func(c *Config) { c.Sources = []*discover.Watcher{empty} },
	} {
		c := ok
		change(&c)
		if _, err := Start(t.Context(), c); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}
