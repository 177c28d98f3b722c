package membership

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/view"
	"github.com/google/go-cmp/cmp"
)

// settable is a source whose answer the test changes.
type settable struct {
	mu      sync.Mutex
	servers []discover.Server // guarded by mu
}

func (s *settable) set(servers []discover.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = servers
}

func (s *settable) Look(context.Context) (discover.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return discover.Answer{Servers: s.servers}, nil
}

// TestRoutersDoNotProbeTogether: of fifty routers that start at one moment, and of which
// all see a server fail and return at one moment, no more than a few probe it at a time.
func TestRoutersDoNotProbeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(1)
		var mu sync.Mutex
		var probes []time.Time
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				c := Config{Router: fmt.Sprint("r", i), Log: slog.New(slog.DiscardHandler)}
				c.Sources = []*discover.Watcher{{Name: "static", Source: f.list(), Log: c.Log}}
				c.Prober = counting{prober{f, c.Router}, func() {
					mu.Lock()
					defer mu.Unlock()
					probes = append(probes, time.Now())
				}}
				cl, err := Start(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { cl.Close(context.Background()) })
			})
		}
		all.Wait()
		most := func(what string, d time.Duration) {
			t.Helper()
			mu.Lock()
			probes = nil
			mu.Unlock()
			time.Sleep(d)
			mu.Lock()
			defer mu.Unlock()
			worst := 0
			for i := range probes {
				n := 0
				for _, p := range probes[i:] {
					if p.Sub(probes[i]) < 10*time.Millisecond {
						n++
					}
				}
				worst = max(worst, n)
			}
			if len(probes) < 50 || worst > 12 {
				t.Errorf("%s: of %d probes %d within 10 ms, want a few", what, len(probes), worst)
			}
		}
		most("after starting together", 5*time.Second)
		f.with(addr0, func(s *fakeServer) { s.down = true })
		most("after a server has failed", 5*time.Second)
		f.with(addr0, func(s *fakeServer) { s.down = false })
		most("after it has returned", 5*time.Second)
	})
}

// counting tells of each probe.
type counting struct {
	prober
	probed func()
}

func (c counting) Probe(ctx context.Context, addr string) error {
	c.probed()
	return c.prober.Probe(ctx, addr)
}

// TestNewServers: a new server is placed when it has answered, one that comes back to the
// list after it has been emptied, and a name may change its address.
func TestNewServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		full := f.list()
		fifth := full[4]
		src := &settable{servers: full[:4]}
		c := f.start(t, 1, func(c *Config) {
			c.Sources = []*discover.Watcher{{Name: "test", Source: src, Guard: discover.Guard{Trusted: true}, Log: c.Log}}
		})[0]
		listed := func() bool { _, ok := c.View().Find(fifth.Name); return ok }
		f.with(fifth.Address, func(s *fakeServer) { s.down = true })
		src.set(full)
		time.Sleep(time.Minute)
		if listed() {
			t.Fatal("a server was placed that has never answered")
		}
		f.with(fifth.Address, func(s *fakeServer) { s.down = false })
		until(t, 5*time.Second, "placed", listed)
		if n := len(c.View().Placed()); n != 5 {
			t.Errorf("%d servers", n)
		}
		src.set(full[:4])
		until(t, 20*time.Second, "removed", func() bool { return !listed() })
		time.Sleep(time.Second)
		src.set(full)
		until(t, 20*time.Second, "placed again", listed)
		f.with(fifth.Address, func(s *fakeServer) {
			if s.flushes != 1 {
				t.Errorf("emptied %d times when it came back to the list", s.flushes)
			}
		})
		digest := c.View().Digest
		moved := append(discover.Static{}, full...)
		moved[0].Address = "10.0.0.99:1"
		f.mu.Lock()
		f.servers["10.0.0.99:1"] = f.servers[full[0].Address]
		f.mu.Unlock()
		src.set(moved)
		until(t, 20*time.Second, "new address", func() bool { return find(t, c, full[0].Name).Address == "10.0.0.99:1" })
		if c.View().Digest != digest {
			t.Error("a change of address moved keys")
		}
	})
}

// TestAnnouncedServers: servers known only from announcements are placed when they have
// answered; an address that is no memcached never is.
func TestAnnouncedServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(2)
		announced := &discover.Announced{Prober: prober{f, "r0"}}
		f.start(t, 2, func(c *Config) {
			if c.Router == "r0" {
				c.Announced = announced
				c.Announce = []discover.Server{{Name: "liar", Address: "10.9.9.9:1", Weight: 1}}
				c.Sources = append(c.Sources, &discover.Watcher{Name: "announced", Source: announced, Log: c.Log})
				return
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.servers["10.1.1.1:1"] = &fakeServer{}
			c.Announce = []discover.Server{{Name: "new", Address: "10.1.1.1:1", Weight: 1}}
		})
		time.Sleep(30 * time.Second)
		a, err := announced.Look(t.Context())
		if diff := cmp.Diff([]discover.Server{{Name: "new", Address: "10.1.1.1:1", Weight: 1}}, a.Servers); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// TestAnnouncementsFitIntoPackets: many servers are announced in few messages, each of
// which fits into a packet, and none is left out.
func TestAnnouncementsFitIntoPackets(t *testing.T) {
	f := func(n, messages int) {
		t.Helper()
		var servers []discover.Server
		for i := range n {
			servers = append(servers, discover.Server{Name: fmt.Sprintf("server-%05d", i), Address: "10.0.0.1:11211", Weight: 1})
		}
		a := &discover.Announced{Max: n}
		h, sent := handler{&Cluster{cfg: Config{Announced: a}}}, 0
		announce("agent", servers, func(b []byte) {
			if sent++; len(b) > announcementSize {
				t.Errorf("a message of %d bytes", len(b))
			}
			h.Announce(b)
		})
		if sent != messages || a.Rejected() > 0 {
			t.Errorf("%d servers: %d messages, want %d; %d servers rejected", n, sent, messages, a.Rejected())
		}
		if a.Announce("agent", discover.Server{Name: "more", Address: "h:1", Weight: 1}, time.Now()) {
			t.Errorf("of %d servers not all arrived", n)
		}
	}
	f(1, 1)
	f(10_000, 278)
}

// TestFirstStateIsTheOthers: a router that starts while a server is away begins with that.
func TestFirstStateIsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(5)
		all := f.start(t, 3, nil)
		f.with(addr0, func(s *fakeServer) { s.stopped = true })
		for _, c := range all {
			traffic(c, server0, true)
		}
		until(t, time.Second, "failed over", is(all[0], server0, view.Away))
		c := Config{Router: "late", Prober: prober{f, "late"}, Log: slog.New(slog.DiscardHandler), link: f.link}
		c.Sources = []*discover.Watcher{{Name: "static", Source: f.list(), Log: c.Log}}
		late, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close(t.Context())
		if s := find(t, late, server0); s.Status != view.Away || s.Reads {
			t.Errorf("the first state of a router that came late: %+v", s)
		}
	})
}
