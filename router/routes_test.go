package router_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// pools is a router of the pools a and b with two servers each, by the prefixes a: and b:.
// Other keys have none.
type pools struct {
	*running
	a, b []*memcachedtest.Server
}

var byLetter = []router.Route{{Prefix: "a:", Pool: "a"}, {Prefix: "b:", Pool: "b"}}

func startPools(t testing.TB, cfg config, args ...string) *pools {
	t.Helper()
	p := &pools{a: memcachedtest.StartN(t, 2, args...), b: memcachedtest.StartN(t, 2, args...)}
	for i, servers := range [][]*memcachedtest.Server{p.a, p.b} {
		pool := cfg.Pool
		pool.Name, pool.Table, pool.Timeout = string("ab"[i]), table(servers[0].Addr(), servers[1].Addr()), patience
		cfg.Pools = append(cfg.Pools, pool)
	}
	if cfg.Routes == nil {
		cfg.Routes = byLetter
	}
	p.running = launch(t, cfg, 0)
	return p
}

// has returns how many items the servers of a pool hold.
func has(servers []*memcachedtest.Server) (n int) {
	for _, s := range servers {
		n += s.Stat("curr_items")
	}
	return n
}

const unrouted = "SERVER_ERROR no route for key\r\n"

// Each key goes to its pool, and nowhere else.
func TestKeysGoToTheirPools(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		p := startPools(t, cfg)
		c := dial(t, p.addr)
		for i := range 30 {
			c.ask(set(fmt.Sprint("a:", i), "A"), "STORED\r\n")
			if i%3 == 0 {
				c.ask(set(fmt.Sprint("b:", i), "B"), "STORED\r\n")
			}
		}
		c.ask("get a:1\r\n", hit("a:1", "A")+"END\r\n")
		c.ask("mg b:3 v\r\n", "VA 1\r\nB\r\n")
		c.ask("mg Yjoz b v\r\n", "VA 1\r\nB\r\n") // b:3
		c.ask("md Yjoz b\r\n", "HD\r\n")
		if a, b := has(p.a), has(p.b); a != 30 || b != 9 {
			t.Errorf("the pools hold %d and %d items", a, b)
		}
		got := p.total()
		for i, want := range map[string]uint64{"a": 1, "b": 2} {
			for _, pool := range got.Pools {
				if pool.Name == i && pool.Hits != want {
					t.Errorf("pool %s has %d hits, want %d", i, pool.Hits, want)
				}
			}
		}
		if got.Hits != 3 || len(got.Servers) != 4 {
			t.Errorf("%d hits, %d servers in all", got.Hits, len(got.Servers))
		}
	})
}

// A multiget over pools has its values in the client's order.
func TestMultigetOverPools(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		p := startPools(t, cfg)
		c := dial(t, p.addr)
		var keys, want strings.Builder
		for i := range 300 {
			k := fmt.Sprintf("%c:%d", "ab"[i%2], i)
			keys.WriteString(" " + k)
			if i%7 != 0 {
				c.ask(set(k, k), "STORED\r\n")
				want.WriteString(hit(k, k))
			}
		}
		for range 2 {
			c.ask("get"+keys.String()+" a:2 b:3 a:2\r\n", want.String()+hit("a:2", "a:2")+hit("b:3", "b:3")+hit("a:2", "a:2")+"END\r\n")
		}
		c.ask("gat 100 a:2 b:3\r\nversion\r\n", hit("a:2", "a:2")+hit("b:3", "b:3")+"END\r\nVERSION 1.6.18\r\n")
	})
}

// Keys that no pool has are answered so, in their turn, and the connection goes on.
func TestKeysWithoutRoute(t *testing.T) {
	p := startPools(t, config{})
	c := dial(t, p.addr)
	c.ask(set("a:1", "A"), "STORED\r\n")
	for _, request := range []string{
		"get c\r\n", "gets c\r\n", "gat 1 c\r\n", "get a:1 c\r\n", "get c a:1 b:1\r\n", "mg c v\r\n", "md c q\r\n", "mg c v q\r\n",
		set("c", "x"), "delete c\r\n", "incr c 1\r\n", "touch c 1\r\n", "get a\r\n", "get A:1\r\n",
	} {
		c.ask(request+"get a:1\r\n", unrouted+hit("a:1", "A")+"END\r\n")
	}
	c.ask("set c 0 0 1 noreply\r\nx\r\nget a:1\r\n", hit("a:1", "A")+"END\r\n")
	if got := p.total(); got.Unrouted != 15 {
		t.Errorf("%d requests had no route", got.Unrouted)
	}
	if n := has(p.a) + has(p.b); n != 1 {
		t.Errorf("the pools hold %d items", n)
	}
}

// What goes to all servers goes to those of all pools, once each.
func TestAllPoolsAreFlushedAndCounted(t *testing.T) {
	p := startPools(t, config{Pool: router.PoolConfig{FlushAll: true}})
	c := dial(t, p.addr)
	for i := range 10 {
		c.ask(set(fmt.Sprint("a:", i), "A")+set(fmt.Sprint("b:", i), "B"), "STORED\r\nSTORED\r\n")
	}
	got := stats(c, "")
	if number(t, got, "cmd_set") != 20 || number(t, got, "curr_items") != 20 || number(t, got, "router_servers") != 4 {
		t.Errorf("%s sets, %s items, %s servers", got["cmd_set"], got["curr_items"], got["router_servers"])
	}
	c.ask("flush_all\r\n", "OK\r\n")
	c.ask("get a:1 b:1\r\n", "END\r\n")
	for _, s := range append(p.a, p.b...) {
		if n := s.Stat("cmd_flush"); n != 1 {
			t.Errorf("a server was flushed %d times", n)
		}
	}
}

// A server in two pools is counted once.
func TestServerInTwoPools(t *testing.T) {
	s := memcachedtest.Start(t)
	var cfg config
	cfg.Routes = byLetter
	for _, name := range []string{"a", "b"} {
		cfg.Pools = append(cfg.Pools, router.PoolConfig{Name: name, Table: table(s.Addr()), Timeout: patience})
	}
	c := dial(t, launch(t, cfg, 0).addr)
	c.ask(set("a:1", "A")+set("b:1", "B"), "STORED\r\nSTORED\r\n")
	if n := number(t, stats(c, ""), "cmd_set"); n != 2 {
		t.Errorf("%d sets", n)
	}
}

// A pool that does not let itself be flushed keeps all from that.
func TestOnePoolForbidsFlush(t *testing.T) {
	addrs := addresses(t, 2)
	var cfg config
	cfg.Routes = byLetter
	cfg.Pools = []router.PoolConfig{{Name: "a", Table: table(addrs[0]), FlushAll: true}, {Name: "b", Table: table(addrs[1])}}
	c := dial(t, launch(t, cfg, 0).addr)
	c.ask(set("a:1", "A"), "STORED\r\n")
	c.ask("flush_all\r\nget a:1\r\n", "CLIENT_ERROR flush_all not allowed\r\n"+hit("a:1", "A")+"END\r\n")
}

// Each pool has its own longest value, and a value that is too large leaves none behind.
func TestValueTooLargeForItsPool(t *testing.T) {
	addrs := addresses(t, 2)
	var cfg config
	cfg.Routes = byLetter
	cfg.Pools = []router.PoolConfig{{Name: "a", Table: table(addrs[0]), MaxValue: 10}, {Name: "b", Table: table(addrs[1]), MaxValue: 20}}
	r := launch(t, cfg, 0)
	c := dial(t, r.addr)
	c.ask(set("a:1", "old")+set("b:1", "old"), "STORED\r\nSTORED\r\n")
	fits, long := strings.Repeat("v", 10), strings.Repeat("v", 11)
	c.ask(set("a:1", fits), "STORED\r\n")
	c.ask(set("b:1", long), "STORED\r\n")
	const tooLarge = "SERVER_ERROR object too large for cache\r\n"
	c.ask(set("a:1", long)+"get a:1 b:1\r\n", tooLarge+hit("b:1", long)+"END\r\n")
	c.ask(set("b:1", strings.Repeat("v", 21))+"get b:1\r\n", tooLarge+"END\r\n")
	if got := r.total(); got.Malformed() != 2 {
		t.Errorf("%d were refused", got.Malformed())
	}
}

// One pool without servers that answer leaves the others as they are.
func TestPoolThatFails(t *testing.T) {
	for name, misses := range map[string]bool{"error": false, "miss": true} {
		t.Run(name, func(t *testing.T) {
			var cfg config
			cfg.Routes = byLetter
			cfg.Pools = []router.PoolConfig{
				{Name: "a", Table: table(memcachedtest.Start(t).Addr())},
				{Name: "b", Table: table(memcachedtest.Reserve(t)), MissOnFailure: misses},
			}
			c := dial(t, launch(t, cfg, 0).addr)
			c.ask(set("a:1", "A"), "STORED\r\n")
			alone, both := "END\r\n", hit("a:1", "A")+"END\r\n"
			if !misses {
				alone, both = "SERVER_ERROR backend ", "SERVER_ERROR backend "
			}
			c.send("get b:1\r\n")
			c.want(alone)
			if !misses {
				c.line()
			}
			c.send("get a:1 b:1\r\n")
			c.want(both)
			if !misses {
				c.line()
			}
			c.ask("get a:1\r\n", hit("a:1", "A")+"END\r\n")
		})
	}
}

// A listener may have routes of its own.
func TestRoutesOfListeners(t *testing.T) {
	p := startPools(t, config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(ln, router.Listen{Routes: []router.Route{{Pool: "b"}}}); err != nil {
		t.Fatal(err)
	}
	c := dial(t, ln.Addr().String())
	c.ask(set("a:1", "x")+set("z", "x"), "STORED\r\nSTORED\r\n")
	if a, b := has(p.a), has(p.b); a != 0 || b != 2 {
		t.Errorf("the pools hold %d and %d items", a, b)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := p.Serve(other, router.Listen{Routes: []router.Route{{Pool: "nowhere"}}}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a route to nowhere: %v", err)
	}
}

// A share of a route's keys goes to another pool, the same ones as it grows, and evenly over
// that pool's servers.
func TestSplitRoutes(t *testing.T) {
	const keys = 2000
	at := func(share float64) map[int]int { // the server, of the four, of each key
		t.Helper()
		cfg := config{}
		cfg.Routes = []router.Route{{Pool: "a", Split: router.Split{Pool: "b", Share: share}}}
		p := startPools(t, cfg, memcachedtest.Steady...)
		c := dial(t, p.addr)
		for i := range keys {
			c.send(set(fmt.Sprint("key", i), "v"))
			c.want("STORED\r\n")
		}
		homes := make(map[int]int)
		for s, server := range append(p.a, p.b...) {
			d := dial(t, server.Addr())
			for i := range keys {
				if d.tell(fmt.Sprintf("mg key%d\r\n", i)) == "HD" {
					homes[i] = s
				}
			}
		}
		return homes
	}
	none, some, more := at(0), at(0.1), at(0.4)
	moved, further, first := 0, 0, 0
	for i := range keys {
		if none[i] > 1 {
			t.Fatalf("key%d is in pool b though nothing is split", i)
		}
		if some[i] > 1 {
			moved++
			if some[i] == 2 {
				first++
			}
			if more[i] <= 1 {
				t.Errorf("key%d comes back when the share grows", i)
			}
		}
		if more[i] > 1 {
			further++
		}
	}
	t.Logf("%d and %d of %d keys are in pool b, %d of the former on its first server", moved, further, keys, first)
	if moved < 140 || moved > 260 || further < 700 || further > 900 || first < moved/3 || first > moved*2/3 {
		t.Error("that is not a tenth and two fifths, evenly spread")
	}
}

func TestBadRoutes(t *testing.T) {
	f := func(want string, routes ...router.Route) {
		t.Helper()
		cfg := config{}
		cfg.Routes = routes
		cfg.Pools = []router.PoolConfig{{Name: "a", Table: table("127.0.0.1:1")}, {Name: "b", Table: table("127.0.0.1:1")}}
		if _, err := cfg.router(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", routes, err, want)
		}
	}
	f(`no pool "c"`, router.Route{Pool: "c"})
	f(`two routes for prefix "x"`, router.Route{Prefix: "x", Pool: "a"}, router.Route{Prefix: "y", Pool: "a"}, router.Route{Prefix: "x", Pool: "b"})
	f("two routes for the rest", router.Route{Pool: "a"}, router.Route{Pool: "b"})
	f("longer than a key", router.Route{Prefix: strings.Repeat("x", 251), Pool: "a"})
}

// With routes, too, requests allocate nothing.
func TestHotPathWithRoutesDoesNotAllocate(t *testing.T) {
	cfg := config{}
	addrs := addresses(t, 2)
	cfg.Pools = []router.PoolConfig{{Name: "rest", Table: table(addrs[0])}, {Name: "users", Table: table(addrs[1])}}
	cfg.Routes = []router.Route{{Prefix: "user:", Pool: "users"}, {Pool: "rest"}}
	for i := range 500 {
		cfg.Routes = append(cfg.Routes, router.Route{Prefix: fmt.Sprint("other:", i, ":"), Pool: "rest"})
	}
	c := dial(t, launch(t, cfg, 0).addr)
	fillHot(c)
	for _, h := range hotPaths() {
		wantAllocations(t, c, h, 400, 4)
	}
}
