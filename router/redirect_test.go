package router_test

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// A read that fails fast is asked of the next candidate at once, be it one of many.
func TestReadsOfServerDown(t *testing.T) {
	t.Parallel()
	for _, fault := range []memcachedtest.Fault{refuse, reset} {
		g := newRig(t, 3, config{})
		for i := range 3 {
			g.at(i).ask(set("k", fmt.Sprint(i)), "STORED\r\n")
		}
		a, b := g.clients()
		a.ask("get k\r\nget k k\r\n", hit("k", "0")+"END\r\n"+hit("k", "0")+hit("k", "0")+"END\r\n")
		g.proxies[0].Set(fault)
		for _, c := range []*client{a, b} {
			c.ask("get k\r\n", hit("k", "1")+"END\r\n")
			c.ask("get none k\r\n", hit("k", "1")+"END\r\n")
			c.ask("mg k v\r\nget none\r\nmg none v k\r\n", "VA 1\r\n1\r\nEND\r\nEN knone\r\n")
			for _, gets := range []string{"gets k\r\n", "gets k k\r\n"} { // another's token would be the home's for a different item
				if got := c.tell(gets); !strings.HasPrefix(got, "SERVER_ERROR backend ") {
					t.Errorf("%q is answered %q", gets, got)
				}
			}
		}
		if got := a.tell(set("k", "5")); !strings.HasPrefix(got, "SERVER_ERROR backend ") {
			t.Errorf("a write is answered %q", got)
		}
		if n := g.total().Redirected; n != 2*(1+2+3) {
			t.Errorf("%d reads were redirected, want %d", n, 2*(1+2+3))
		}
		g.at(1).ask("get k none\r\n", hit("k", "1")+"END\r\n") // it has become no copy
	}
}

// A read is not asked of a candidate that may hold an old copy, nor while it is not known
// what has become of a write.
func TestReadsThatMustNotBeRedirected(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	g.use(g.with(readNext))
	next := g.at(1)
	a, b := g.clients()
	a.ask(set("k", "old"), "STORED\r\n")
	a.ask("get k\r\n", hit("k", "old")+"END\r\n")
	next.gains("k")
	g.proxies[1].Set(refuse)
	a.ask(set("k", "new"), "STORED\r\n")
	next.ask("get k\r\n", hit("k", "old")+"END\r\n") // it could not be removed
	g.use(g.well())
	g.proxies[1].Set(pass)
	g.until("the next candidate is back", func(s router.Snapshot) bool { return s.Servers[g.addrs[1]].Up == 2 })
	g.proxies[0].Set(refuse)
	for _, c := range []*client{a, b} {
		for _, request := range []string{"get k\r\n", "get k k\r\n", "gets k\r\n", "mg k v\r\n"} {
			if got := c.tell(request); !strings.HasPrefix(got, "SERVER_ERROR backend ") {
				t.Errorf("%q is answered %q", request, got)
			}
		}
	}
	if n := g.total().Redirected; n != 0 {
		t.Errorf("%d reads were redirected", n)
	}
}

func TestReadsAfterWriteInDoubt(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{Pool: router.PoolConfig{Timeout: shortTimeout}})
	g.at(1).ask(set("k", "old"), "STORED\r\n")
	a, b := g.clients()
	a.ask(set("k", "4"), "STORED\r\n")
	g.proxies[0].Set(stall) // done, and not told
	a.ask(set("k", "5"), "SERVER_ERROR backend timeout\r\n")
	g.proxies[0].Set(refuse)
	for _, c := range []*client{a, b} {
		for _, request := range []string{"get k\r\n", "get k k\r\n"} {
			if got := c.tell(request); !strings.HasPrefix(got, "SERVER_ERROR backend ") {
				t.Errorf("%q is answered %q, when some may have read what was written since", request, got)
			}
		}
		c.ask("get other\r\n", "END\r\n")
	}
}

// Without a membership nobody knows which servers may be read from.
func TestReadsOfServerDownWithoutMembership(t *testing.T) {
	t.Parallel()
	r := start(t, config{}, memcachedtest.Reserve(t), memcachedtest.Start(t).Addr())
	c := dial(t, r.addr)
	k := keyFor(0, 2, 0)
	c.ask("get "+k+"\r\nget "+k+" "+keyFor(1, 2, 0)+"\r\n", "SERVER_ERROR backend connection refused\r\nSERVER_ERROR backend connection refused\r\n")
}

// A flush is done by the servers that are there; one that is away is told when it returns.
func TestFlushOfServerAway(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{Pool: router.PoolConfig{FlushAll: true}})
	a, b := g.clients()
	fill := func() {
		for i := range 3 {
			g.at(i).ask(set("k", "1"), "STORED\r\n")
		}
	}
	left := func(want string) {
		t.Helper()
		var got strings.Builder
		for i := range 3 {
			if g.at(i).tell("mg k\r\n") != "EN" {
				fmt.Fprint(&got, i)
			}
		}
		if got.String() != want {
			t.Errorf("k is left on %q, want %q", got.String(), want)
		}
	}
	missed := func(want ...string) {
		t.Helper()
		g.witness.mu.Lock()
		defer g.witness.mu.Unlock()
		if fmt.Sprint(g.witness.missedAll) != fmt.Sprint(want) {
			t.Errorf("%q have missed a flush, want %q", g.witness.missedAll, want)
		}
		g.witness.missedAll = nil
	}
	fill()
	g.use(g.with(away))
	a.ask("flush_all\r\nget k\r\n", "OK\r\nEND\r\n")
	left("0")
	missed("n0")
	fill()
	g.use(g.with(returning))
	a.ask("flush_all\r\n", "OK\r\n")
	left("")
	missed()
	fill()
	g.use(g.with(unreachable))
	b.ask("flush_all\r\nget k\r\n", unwritable+"\r\n"+hit("k", "1")+"END\r\n")
	left("012")
	missed()
	g.use(g.well())
	g.proxies[2].Set(refuse)
	if got := b.tell("flush_all\r\n"); !strings.HasPrefix(got, "SERVER_ERROR backend ") {
		t.Errorf("a flush that one server has not done is answered %q", got)
	}
	left("2")
	missed("n2")
}
