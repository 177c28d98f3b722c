package router_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// change gives a router other pools and routes, and returns when those before are gone.
func (r *running) change(c router.Change) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Change(ctx, c); err != nil {
		r.t.Fatal(err)
	}
	if err := ctx.Err(); err != nil {
		r.t.Fatalf("the change takes too long: %v", err)
	}
}

// newPool makes a pool, perhaps in the place of another one.
func (r *running) newPool(c router.PoolConfig, before *router.Pool) *router.Pool {
	r.t.Helper()
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	p, err := r.NewPool(c, before)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// A pool comes, routes lead to it, and it goes again: clients that are connected see no more of
// it than where their keys are, and its servers keep no connection.
func TestPoolsComeAndGo(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		p := startPools(t, cfg, memcachedtest.Steady...)
		more := memcachedtest.Start(t, memcachedtest.Steady...)
		c := dial(t, p.addr)
		c.ask(set("a:1", "A")+set("b:1", "B")+"get c:1\r\n", "STORED\r\nSTORED\r\n"+unrouted)
		ab := p.Pools()
		third := p.newPool(router.PoolConfig{Name: "c", Table: table(more.Addr())}, nil)
		p.change(router.Change{Pools: append(ab[:2:2], third), Routes: append(byLetter[:2:2], router.Route{Prefix: "c:", Pool: "c"})})
		c.ask(set("c:1", "C")+"get a:1 b:1 c:1\r\n", "STORED\r\n"+hit("a:1", "A")+hit("b:1", "B")+hit("c:1", "C")+"END\r\n")
		if got := p.total(); len(got.Pools) != 3 || got.Pools[2].Hits != 1 || got.Hits != 3 {
			t.Errorf("%d pools, %d hits", len(got.Pools), got.Hits)
		}
		p.change(router.Change{Pools: ab[:1], Routes: []router.Route{{Pool: "a"}}})
		c.ask("get a:1 b:1 c:1\r\n", hit("a:1", "A")+"END\r\n")
		if got := p.total(); len(got.Pools) != 1 || got.Hits != 4 {
			t.Errorf("%d pools, %d hits: those that are gone have been forgotten", len(got.Pools), got.Hits)
		}
		for _, s := range append(p.b, more) {
			within(t, "the connections of a pool that is gone end", func() bool { return s.Stat("curr_connections") == 1 }) // that asks
		}
	})
}

// within waits for a condition.
func within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-time.After(time.Until(deadline)):
			t.Fatalf("never: %s", what)
		}
	}
}

// A change that cannot be changes nothing.
func TestChangesRefused(t *testing.T) {
	p := startPools(t, config{})
	f := func(c router.Change) {
		t.Helper()
		if err := p.Change(t.Context(), c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	ab := p.Pools()
	f(router.Change{})
	f(router.Change{Pools: append(ab[:2:2], ab[0]), Routes: byLetter})
	f(router.Change{Pools: ab[:1], Routes: byLetter})
	f(router.Change{Pools: ab, Routes: byLetter, Listeners: map[string][]router.Route{"": {{Pool: "c"}}}})
	dial(t, p.addr).ask(set("b:1", "B"), "STORED\r\n")
	still, err := router.New(router.Config{Pools: []router.PoolConfig{{Table: table(p.a[0].Addr())}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := still.Change(t.Context(), router.Change{Pools: still.Pools()}); err == nil {
		t.Error("a router that does not run is changed")
	}
}

// What a client has outstanding when routes change is answered by the pool that it was asked of,
// what it asks later waits for that: its requests keep their order.
func TestChangeBetweenRequests(t *testing.T) {
	slow := memcachedtest.Start(t, memcachedtest.Steady...)
	other := memcachedtest.Start(t, memcachedtest.Steady...)
	cfg := config{}
	cfg.Pools = []router.PoolConfig{{Name: "a", Table: table(slow.Addr()), Timeout: patience}, {Name: "b", Table: table(other.Addr()), Timeout: patience}}
	cfg.Routes = []router.Route{{Pool: "a"}}
	p := launch(t, cfg, 0)
	c := dial(t, p.addr)
	c.ask(set("k", "A"), "STORED\r\n")
	slow.Pause()
	c.send("get k\r\n")
	p.until("the get waits", func(s router.Snapshot) bool { return s.Waiting == 1 })
	changed := make(chan error, 1)
	go func() {
		changed <- p.Change(context.Background(), router.Change{Pools: p.Pools()[1:], Routes: []router.Route{{Pool: "b"}}})
	}()
	within(t, "the pools are others", func() bool { return len(p.Pools()) == 1 })
	c.send(set("k", "B") + "get k\r\n")
	d := dial(t, p.addr) // a client that is owed nothing need not wait
	d.ask("get k\r\n", "END\r\n")
	select {
	case err := <-changed:
		t.Fatalf("the change is over while a client waits for a pool that is no more: %v", err)
	default:
	}
	slow.Resume()
	c.want(hit("k", "A") + "END\r\nSTORED\r\n" + hit("k", "B") + "END\r\n")
	if err := <-changed; err != nil {
		t.Error(err)
	}
}

// A client that does not take its replies holds up a change for so long and no longer.
func TestChangeClosesWhoTakesNothing(t *testing.T) {
	s := memcachedtest.Start(t, memcachedtest.Steady...)
	cfg := config{}
	cfg.Pools = []router.PoolConfig{{Name: "a", Table: table(s.Addr()), Timeout: patience}}
	cfg.Routes = []router.Route{{Pool: "a"}}
	p := launch(t, cfg, 0)
	c := dial(t, p.addr)
	s.Pause()
	defer s.Resume()
	c.send("get k\r\n")
	p.until("the get waits", func(s router.Snapshot) bool { return s.Waiting == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan error, 1)
	next := p.newPool(router.PoolConfig{Name: "a"}, p.Pools()[0])
	go func() {
		changed <- p.Change(ctx, router.Change{Pools: []*router.Pool{next}, Routes: cfg.Routes})
	}()
	within(t, "the pool is another", func() bool { return p.Pools()[0] == next })
	cancel()
	p.until("the client is closed", func(s router.Snapshot) bool { return s.ClosedSlow == 1 })
	s.Resume()
	if err := <-changed; err != nil {
		t.Error(err)
	}
}

// A pool takes another one's place under load: no request fails, a client reads what it has
// written, and the figures go on. Near caches are the hardest: what one pool keeps the other's
// writes must end.
func TestPoolTakesThePlaceOfAnother(t *testing.T) {
	cfg := config{Pool: router.PoolConfig{
		Name: "a", Coalesce: &coalesce.Config{Mode: coalesce.Inflight},
		HotKeys: &hotkey.Config{Servers: 1, Hot: 0.01, Severe: 0.02, MinShare: 0.0001, MinRate: 1, MinBytes: 1 << 20},
		Near:    &hotkey.NearConfig{Bytes: 1 << 20, TTL: time.Second},
	}}
	cfg.Loops = 2
	p := start(t, cfg, addresses(t, 2)...)
	var stop atomic.Bool
	var working sync.WaitGroup
	var counted [4]atomic.Int64
	for i := range counted {
		c := dial(t, p.addr)
		working.Go(func() {
			for n := 0; !stop.Load(); n++ {
				value := fmt.Sprintf("%d-%d", i, n)
				c.ask(set(fmt.Sprint("own", i), value)+fmt.Sprintf("get own%d\r\n", i), "STORED\r\n"+hit(fmt.Sprint("own", i), value)+"END\r\n")
				counted[i].Add(1)
			}
		})
	}
	writer, reader := dial(t, p.addr), dial(t, p.addr)
	working.Go(func() { // one that writes, and one that reads by another loop what the first one was told is stored
		for n := 0; !stop.Load(); n++ {
			value := fmt.Sprint("v", n)
			writer.ask(set("shared", value), "STORED\r\n")
			reader.ask("get shared\r\n", hit("shared", value)+"END\r\n")
			reader.ask("get shared\r\n", hit("shared", value)+"END\r\n")
		}
	})
	before := uint64(0)
	for i := range 20 {
		c := cfg.Pool
		c.Timeout = patience + time.Duration(i)*time.Millisecond
		if i%4 == 3 {
			c.Near = nil
		}
		next := p.newPool(c, p.Pools()[0])
		p.change(router.Change{Pools: []*router.Pool{next}})
		now := p.total()
		if now.Hits < before || now.Pools[0].Hits < before {
			t.Errorf("%d hits after %d", now.Hits, before)
		}
		before = now.Hits
		within(t, "some requests", func() bool { return counted[0].Load() > int64(i) })
		if i < 2 {
			near := now.Near.Hits
			p.until("hot keys are kept", func(s router.Snapshot) bool { return s.Near.Hits > near })
		}
	}
	stop.Store(true)
	working.Wait()
	if got := p.total(); got.Failed+got.Malformed() > 0 || got.Near.Hits == 0 {
		t.Errorf("%d requests have failed, %d were answered by near caches", got.Failed, got.Near.Hits)
	}
}
