package membership

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/membership/damping"
	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/probe"
	"cacherouter/membership/view"
)

// meshed are the clusters of a router, by pool.
type meshed map[string]*Cluster

// heard collects hints.
type heard struct {
	mu    sync.Mutex
	hints []string // guarded by mu
}

func (h *heard) hint(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints = append(h.hints, string(b))
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.hints)
}

// startMeshed starts a router whose pools list some servers each, all by the names m0, m1
// and so on. With one pool it does as a router that knows of no other.
func startMeshed(t *testing.T, i int, join []string, pools map[string][]*memcachedtest.Server, hints map[string]*heard) meshed {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	gc := gossip.Config{Name: fmt.Sprint("r", i), Bind: fmt.Sprintf("127.0.0.%d:0", i+1), Join: join, Log: log}
	var names []string
	for name := range pools {
		names = append(names, name)
	}
	mesh := NewMesh(gc, names...)
	out := meshed{}
	var mu sync.Mutex
	var starting sync.WaitGroup
	for name, servers := range pools {
		c := Config{Router: gc.Name, Prober: probe.TCP{}, Mesh: mesh, Pool: name, Log: log, View: view.Config{Settle: time.Second, Damping: damping.Config{Hold: time.Second}}}
		if len(pools) == 1 {
			c.Mesh, c.Gossip = nil, &gc
		}
		var list discover.Static
		for i, s := range servers {
			list = append(list, discover.Server{Name: fmt.Sprint("m", i), Address: s.Addr(), Weight: 1})
		}
		c.Sources = []*discover.Watcher{{Name: "static", Source: list, Log: log}}
		if name == "found" {
			c.Announced = &discover.Announced{Prober: probe.TCP{}}
			c.Sources = []*discover.Watcher{{Name: "announced", Source: c.Announced, Every: 100 * time.Millisecond, Shortest: 100 * time.Millisecond, Log: log}}
		}
		if h := hints[name]; h != nil {
			c.OnHint = h.hint
		}
		starting.Go(func() {
			cl, err := Start(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[name] = cl
		})
	}
	starting.Wait()
	for _, cl := range out {
		closing(t, cl)
	}
	if t.Failed() {
		t.FailNow()
	}
	return out
}

func (m meshed) address(pool string) string {
	return m[pool].link.(meshLink).Address()
}

// TestMesh: two routers with three pools and one with the default pool alone share a gossip.
// What is said of one pool concerns no other, though their servers have the same names.
func TestMesh(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 5)
	pools := map[string][]*memcachedtest.Server{DefaultPool: servers[:2], "b": servers[2:4], "found": nil}
	hints := map[string]*heard{DefaultPool: {}, "b": {}}

	plain := startMeshed(t, 0, nil, map[string][]*memcachedtest.Server{DefaultPool: servers[:2]}, nil)
	join := []string{plain.address(DefaultPool)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var agent sync.WaitGroup
	agent.Go(func() {
		a := Agent{Pool: "found", Servers: []discover.Server{{Name: "m0", Address: servers[4].Addr(), Weight: 1}}}
		a.Gossip = gossip.Config{Name: "agent", Bind: "127.0.0.9:0", Join: join, Log: slog.New(slog.DiscardHandler)}
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer agent.Wait()
	defer cancel()
	one := startMeshed(t, 1, join, pools, nil)
	two := startMeshed(t, 2, join, pools, hints)

	within(t, time.Minute, "all that have a pool vote on it", func() bool {
		return one[DefaultPool].Stats().View.Voters == 3 && plain[DefaultPool].Stats().View.Voters == 3 &&
			two["b"].Stats().View.Voters == 2 && two["found"].Stats().View.Voters == 2
	})
	if got := one["found"].View().Servers; len(got) != 1 || got[0].Address != servers[4].Addr() {
		t.Errorf("announced were %v", got)
	}
	one["b"].SendHint([]byte("of b"))
	one[DefaultPool].SendHint([]byte("of default"))
	within(t, time.Minute, "hints", func() bool { return len(hints["b"].all())+len(hints[DefaultPool].all()) == 2 })
	if got := fmt.Sprint(hints["b"].all(), hints[DefaultPool].all()); got != "[of b] [of default]" {
		t.Errorf("heard %s", got)
	}
	servers[2].Stop()
	if !plain[DefaultPool].Drain("m1") {
		t.Fatal("cannot drain")
	}
	ofB, ofDefault := []*Cluster{one["b"], two["b"]}, []*Cluster{plain[DefaultPool], one[DefaultPool], two[DefaultPool]}
	within(t, time.Minute, "m0 of pool b is given up", func() bool {
		return !slices.ContainsFunc(ofB, func(c *Cluster) bool { return is(c, "m0", view.In)() })
	})
	within(t, time.Minute, "m1 of the default pool drains", everywhere(ofDefault, "m1", view.Draining))
	if !everywhere(ofB, "m1", view.In)() || !everywhere(ofDefault, "m0", view.In)() {
		t.Error("what was said of one pool was done in another")
	}
	for _, c := range append(ofB, ofDefault...) {
		if n := c.Stats().BadMessages; n > 0 {
			t.Errorf("%d messages were bad", n)
		}
	}
}

// A mesh ends with its last pool, and does not begin where one is missing.
func TestMeshWaitsForAll(t *testing.T) {
	s := memcachedtest.Start(t)
	mesh := NewMesh(gossip.Config{Name: "r", Bind: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	c := Config{
		Router: "r", Prober: probe.TCP{}, Mesh: mesh, Pool: "a", Log: slog.New(slog.DiscardHandler),
		Sources: []*discover.Watcher{{Name: "static", Source: discover.Static{{Name: "m", Address: s.Addr(), Weight: 1}}}},
	}
	ended := make(chan error, 1)
	go func() { _, err := Start(ctx, c); ended <- err }()
	cancel()
	if err := <-ended; err == nil {
		t.Error("a pool starts without the others")
	}
	c.Pool = "c"
	if _, err := Start(t.Context(), c); err == nil {
		t.Error("a pool starts that nobody waits for")
	}
}

// What says which pool it is about arrives there, and bytes that make no sense nowhere.
func TestEnclosed(t *testing.T) {
	m := NewMesh(gossip.Config{Log: slog.New(slog.DiscardHandler)}, DefaultPool, "b")
	got := map[gossip.Handler]string{}
	for _, p := range m.pools {
		m.members[p] = handler{new(Cluster)}
	}
	f := func(b []byte, toDefault, toB string) {
		t.Helper()
		clear(got)
		m.deliver(b, func(h gossip.Handler, message []byte) { got[h] += string(message) + ";" })
		if a, b := got[m.members[DefaultPool]], got[m.members["b"]]; a != toDefault || b != toB {
			t.Errorf("%q: default got %q, b %q", b, a, b)
		}
	}
	f([]byte("x"), "x;", "")
	f(nil, ";", "")
	f(enclose(DefaultPool, []byte("x")), "x;", "")
	f(enclose("b", []byte("x")), "", "x;")
	f(enclose("c", []byte("x")), "", "")
	f(appendPart(appendPart([]byte{enclosed}, DefaultPool, []byte("x")), "b", []byte("y")), "x;", "y;")
	whole := enclose("b", []byte("xyz"))
	for n := 2; n < len(whole); n++ {
		f(whole[:n], "\xff;", "")
	}
}

// A pool may come and go while the gossip goes on. One that comes knows at once what the other
// routers have decided of its servers.
func TestMeshChangesPools(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	one := startMeshed(t, 0, nil, map[string][]*memcachedtest.Server{"a": servers[:1], "b": servers[1:]}, nil)
	servers[2].Stop()
	two := startMeshed(t, 1, []string{one.address("a")}, map[string][]*memcachedtest.Server{"a": servers[:1], DefaultPool: servers[:1]}, nil)
	away := func(c *Cluster) bool { return !is(c, "m1", view.In)() }
	within(t, time.Minute, "m1 of pool b is given up", func() bool { return away(one["b"]) })

	mesh := two["a"].link.(meshLink).m
	mesh.Add("b")
	late := startMeshedPool(t, mesh, "b", servers[1:])
	if !away(late) {
		t.Error("a pool that comes later takes a server for well that the others have given up")
	}
	within(t, time.Minute, "both routers vote on b", func() bool { return one["b"].Stats().View.Voters == 2 })
	if err := late.Close(t.Context()); err != nil {
		t.Error(err)
	}
	within(t, time.Minute, "the one that is left votes alone", func() bool { return one["b"].Stats().View.Voters == 1 })
	if got := two["a"].Stats().View.Voters; got != 2 {
		t.Errorf("%d routers vote on the pool that has stayed", got)
	}
	mesh.Add("b") // once more
	closing(t, startMeshedPool(t, mesh, "b", servers[1:]))
}

// startMeshedPool starts one more pool of the second router.
func startMeshedPool(t *testing.T, mesh *Mesh, pool string, servers []*memcachedtest.Server) *Cluster {
	t.Helper()
	var list discover.Static
	for i, s := range servers {
		list = append(list, discover.Server{Name: fmt.Sprint("m", i), Address: s.Addr(), Weight: 1})
	}
	log := slog.New(slog.DiscardHandler)
	c, err := Start(t.Context(), Config{
		Router: "r1", Prober: probe.TCP{}, Mesh: mesh, Pool: pool, Log: log, View: view.Config{Settle: time.Second, Damping: damping.Config{Hold: time.Second}},
		Sources: []*discover.Watcher{{Name: "static", Source: list, Log: log}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
