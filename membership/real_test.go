package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/membership/damping"
	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/probe"
	"cacherouter/membership/view"
	"github.com/bradfitz/gomemcache/memcache"
)

// within waits for a condition in real time, and returns how long it took.
func within(t *testing.T, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

func closing(t *testing.T, c *Cluster) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// realFleet starts routers that gossip over 127.0.0.x in front of real memcached servers
// named m0, m1 and so on.
func realFleet(t *testing.T, routers int, servers []*memcachedtest.Server, change func(*Config)) []*Cluster {
	t.Helper()
	var list discover.Static
	for i, s := range servers {
		list = append(list, discover.Server{Name: fmt.Sprint("m", i), Address: s.Addr(), Weight: 1})
	}
	var all []*Cluster
	var join []string
	for i := range routers {
		log := slog.New(slog.DiscardHandler)
		c := Config{
			Router: fmt.Sprint("r", i), Prober: probe.TCP{}, Log: log,
			Sources: []*discover.Watcher{{Name: "static", Source: list, Log: log}},
			Gossip:  &gossip.Config{Bind: fmt.Sprintf("127.0.0.%d:0", i+1), Join: join, Keys: [][]byte{slices.Repeat([]byte{7}, 32)}},
			View:    view.Config{Settle: time.Second, Steady: time.Second, Damping: damping.Config{Hold: time.Second}},
		}
		if change != nil {
			change(&c)
		}
		cl, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, cl)
		all = append(all, cl)
		join = append(join, cl.link.(meshLink).Address())
	}
	within(t, time.Minute, "all routers vote", func() bool {
		return !slices.ContainsFunc(all, func(c *Cluster) bool { return c.Stats().View.Voters != routers })
	})
	return all
}

func everywhere(all []*Cluster, server string, want view.Status) func() bool {
	return func() bool {
		return !slices.ContainsFunc(all, func(c *Cluster) bool { return !is(c, server, want)() })
	}
}

// TestRealKill: three routers, four real servers, one of which is killed and comes back
// as a new process.
func TestRealKill(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 4)
	all := realFleet(t, 3, servers, nil)
	identified(t, all, "m0")
	servers[0].Stop()
	failed := within(t, time.Minute, "failed over", everywhere(all, "m0", view.Away))
	var spread time.Duration
	moved := failed + within(t, time.Minute, "moved at one", func() bool {
		return slices.ContainsFunc(all, func(c *Cluster) bool { return is(c, "m0", view.Out)() })
	})
	spread = within(t, time.Minute, "moved at all", everywhere(all, "m0", view.Out))
	t.Logf("without any traffic: failed over after %v, keys moved after %v, routers %v apart", failed, moved, spread)
	for _, c := range all {
		if c.View().Digest != all[0].View().Digest || c.View().Version != all[0].View().Version {
			t.Error("the routers do not agree")
		}
	}
	servers[0].Restart()
	within(t, time.Minute, "back", everywhere(all, "m0", view.In))
	if n := servers[0].Stat("cmd_flush"); n != 0 {
		t.Errorf("a new process was emptied %d times", n)
	}
	if st := all[0].Stats(); st.Gossip.Dropped > 0 || st.BadMessages > 0 {
		t.Errorf("%+v", st)
	}
}

// TestRealReturn: a real server is stopped and goes on with all it held. What it missed is
// gone when it serves again: one key after a short outage, everything after one in which its
// keys were moved.
func TestRealReturn(t *testing.T) {
	f := func(name string, away view.Status, kept bool, dead time.Duration) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := memcachedtest.StartN(t, 4)
			client := memcache.New(servers[0].Addr())
			client.Timeout = 10 * time.Second
			defer client.Close()
			has := func(key string, want bool) {
				t.Helper()
				_, err := client.Get(key)
				if err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
					t.Fatal(err)
				}
				if got := err == nil; got != want {
					t.Errorf("%s is there: %v, want %v", key, got, want)
				}
			}
			all := realFleet(t, 3, servers, func(c *Config) { c.Health.Dead = dead })
			identified(t, all, "m0")
			for _, k := range []string{"kept", "missed"} {
				if err := client.Set(&memcache.Item{Key: k, Value: []byte("old")}); err != nil {
					t.Fatal(err)
				}
			}
			servers[0].Pause()
			within(t, time.Minute, "failed over, or moved", everywhere(all, "m0", away))
			all[1].Missed("m0", 42, []byte("missed"))
			servers[0].Resume()
			within(t, time.Minute, "back", everywhere(all, "m0", view.In))
			has("missed", false)
			has("kept", kept)
		})
	}
	f("short", view.Away, true, time.Hour) // so that the keys are not moved, however slow the machine is
	f("long", view.Out, false, 0)
}

// identified waits until all routers know which process a server is.
func identified(t *testing.T, all []*Cluster, server string) {
	t.Helper()
	for _, c := range all {
		within(t, time.Minute, "server identified", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.watched[server].process.PID > 0
		})
	}
}

// TestAgent: a router that knows no server waits for an agent to announce one, and places
// it when it has answered.
func TestAgent(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t)
	nobody := memcachedtest.Reserve(t)
	log := slog.New(slog.DiscardHandler)
	reserved := memcachedtest.Reserve(t) // for gossip
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		g := gossip.Config{Name: "agent", Bind: "127.0.0.2:0", Join: []string{reserved}, Rejoin: 100 * time.Millisecond, Log: log}
		done <- Agent{Gossip: g, Servers: []discover.Server{{Name: "real", Address: server.Addr(), Weight: 2}, {Name: "fake", Address: nobody, Weight: 1}}}.Run(ctx)
	}()
	announced := &discover.Announced{Prober: probe.TCP{}}
	c, err := Start(ctx, Config{
		Router: "r0", Prober: probe.TCP{}, Log: log, Announced: announced,
		Sources: []*discover.Watcher{{Name: "announced", Source: announced, Log: log}},
		Gossip:  &gossip.Config{Bind: reserved},
	})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, c)
	if s := c.View().Servers; len(s) != 1 || s[0].Name != "real" || s[0].Weight != 2 {
		t.Errorf("servers %+v", s)
	}
	if st := c.Stats(); st.View.Known != 1 || st.BadMessages > 0 {
		t.Errorf("an agent counts as a router, or a bad one: %+v", st)
	}
	if r := c.Routers(); len(r) != 2 || r[0].Name != "agent" {
		t.Errorf("there are %+v", r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
