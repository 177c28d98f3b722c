package router_test

import (
	"strings"
	"testing"

	"cacherouter/coalesce"
	"cacherouter/memproto"
	"cacherouter/quota"
	"cacherouter/router"
)

const overloaded = "SERVER_ERROR pool is overloaded\r\n"

// ranked are routes of all priorities, by prefix.
var ranked = []router.Route{{Prefix: "low:", Priority: router.Low}, {Prefix: "high:", Priority: router.High}, {}}

// shedding bounds what a server may have when requests of low and normal priority come.
var shedding = [router.NumPriorities]int{router.Low: 10, router.Normal: 20}

// brimRig is a rig whose first server is the home of all keys, and may have units that come
// from nowhere.
func brimRig(t *testing.T, spill router.Spill, pool router.PoolConfig) (g *rig, load func(server, units int)) {
	t.Helper()
	cfg := config{Pool: pool}
	cfg.Routes, cfg.Pool.Shed = ranked, shedding
	g, b := newBoundRig(t, 2, spill, cfg)
	return g, func(server, units int) {
		b.Add(server, units)
		t.Cleanup(func() { b.Release(server, units) })
	}
}

// While a server has more than it may, requests of low priority are refused first, and those of
// high priority last; what is refused is not done.
func TestShedding(t *testing.T) {
	g, load := brimRig(t, router.SpillNone, router.PoolConfig{})
	c, d := g.clients()
	requests := func(prefix string) []string {
		return []string{"get " + prefix + "k\r\n", "get high:x " + prefix + "k\r\n", set(prefix+"k", "5"), "mg " + prefix + "k v\r\n", "gat 0 " + prefix + "k\r\n"}
	}
	refuses := func(prefix string, refused bool) {
		t.Helper()
		for _, request := range requests(prefix) {
			for _, c := range []*client{c, d} {
				switch got := c.tell(request); {
				case refused != (got+"\r\n" == overloaded):
					t.Errorf("%q is answered %q", request, got)
				case strings.HasPrefix(got, "VALUE"), strings.HasPrefix(got, "VA "):
					c.line()
					if !strings.HasPrefix(request, "mg") {
						c.want("END\r\n")
					}
				}
			}
		}
	}
	for _, s := range []struct {
		units             int
		low, normal, high bool
	}{{0, false, false, false}, {9, false, false, false}, {1, true, false, false}, {10, true, true, false}, {100, true, true, false}} {
		load(0, s.units)
		refuses("low:", s.low)
		refuses("", s.normal)
		refuses("high:", s.high)
	}
	if shed := g.total().Shed; shed[router.Low] != 30 || shed[router.Normal] != 20 || shed[router.High] != 0 {
		t.Errorf("shed: %v", shed)
	}
	c.ask("set low:k 0 0 1 noreply\r\n6\r\nmn\r\n", "MN\r\n")
	g.at(0).ask("get low:k\r\n", hit("low:k", "5")+"END\r\n")
	b := dial(t, g.addr)
	b.send(packet(memproto.OpGet, 0, "low:k", "") + packet(memproto.OpNoop, 0, "", ""))
	if got := (form{binary: true}).answer(b); !strings.Contains(got, "pool is overloaded") || !strings.HasPrefix(got, "81000000000000860000") {
		t.Errorf("a binary get is answered %s, want a temporary failure", got)
	}
}

// Where failures are misses, gets that are shed are, too.
func TestSheddingAsMisses(t *testing.T) {
	g, load := brimRig(t, router.SpillNone, router.PoolConfig{MissOnFailure: true})
	c, _ := g.clients()
	c.ask(set("low:k", "v")+set("high:k", "v"), "STORED\r\nSTORED\r\n")
	load(0, 10)
	c.ask("get low:k\r\nmg low:k v\r\ngat 0 low:k\r\n", "END\r\nEN\r\nEND\r\n")
	c.ask("get low:k high:k low:j\r\n", hit("high:k", "v")+"END\r\n")
	c.ask(set("low:k", "w"), overloaded)
	if n := g.total().Shed[router.Low]; n != 6 {
		t.Errorf("%d were shed, want 6", n)
	}
}

// A get is not shed while another server may take it, a write is.
func TestSheddingLooksAtAllWhoMayServe(t *testing.T) {
	g, load := brimRig(t, router.SpillAny, router.PoolConfig{})
	c, _ := g.clients()
	load(0, 30)
	c.ask("get low:k\r\nget low:k low:j\r\n", "END\r\nEND\r\n")
	c.ask("gets low:k\r\n"+set("low:k", "v"), overloaded+overloaded)
	load(1, 30)
	c.ask("get low:k\r\nget low:k low:j\r\nget high:k\r\n", overloaded+overloaded+"END\r\n")
}

// Reads are asked again no more often than the budget says.
func TestRetryBudget(t *testing.T) {
	const asked = 40
	for name, budget := range map[string]*quota.Retries{"none": nil, "half": {Share: 0.5}, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, 2, config{Pool: router.PoolConfig{Retries: budget}})
			g.at(1).ask(set("k", "v"), "STORED\r\n")
			g.proxies[0].Set(refuse)
			c, _ := g.clients()
			served := uint64(0)
			for range asked / 2 {
				for _, request := range []string{"get k\r\n", "get k j\r\n"} {
					switch got := c.tell(request); {
					case strings.HasPrefix(got, "VALUE"):
						c.want("v\r\nEND\r\n")
						served++
					case !strings.HasPrefix(got, "SERVER_ERROR backend "):
						t.Errorf("%q is answered %q", request, got)
					}
				}
			}
			s := g.total()
			switch {
			case name == "none" && (served != asked || s.Unretried != 0),
				name == "nothing" && (served != 0 || s.Retried != 0 || s.Unretried < asked),
				name == "half" && (served == 0 || served == asked || s.Retried > asked*3/4 || s.Unretried == 0):
				t.Errorf("%d of %d are served; %d were asked again, %d not", served, asked, s.Retried, s.Unretried)
			}
		})
	}
}

// Gets that share flights do not fly once more beyond the budget either.
func TestRetryBudgetOfFlights(t *testing.T) {
	for _, budget := range []*quota.Retries{nil, {}} {
		f := listen(t)
		r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Retries: budget}}, f.addr())
		s := f.accept()
		c := dial(t, r.addr)
		c.send("get a\r\n")
		s.want("get a\r\n")
		f.ln.Close()
		s.nc.Close()
		if got := c.line(); !strings.HasPrefix(got, "SERVER_ERROR backend ") {
			t.Errorf("answered %q", got)
		}
		if got := r.total(); budget != nil && (got.Retried != 0 || got.Unretried != 2) || budget == nil && (got.Retried < 2 || got.Unretried != 0) {
			t.Errorf("%d were asked again, %d not", got.Retried, got.Unretried)
		}
	}
}

// What was under way on a connection that is lost is sent again within the budget, too.
func TestRetryBudgetOfLostConnections(t *testing.T) {
	f := listen(t)
	r := start(t, config{Pool: router.PoolConfig{Retries: &quota.Retries{Share: 0.5}}}, f.addr())
	s := f.accept()
	c := dial(t, r.addr)
	c.send("get a\r\nget b\r\nget c\r\nget d\r\n")
	s.want("get a\r\nget b\r\nget c\r\nget d\r\n")
	s.nc.Close()
	s = f.accept()
	s.want("get a\r\nget b\r\n")
	s.send("END\r\nEND\r\n")
	c.want("END\r\nEND\r\n" + strings.Repeat("SERVER_ERROR backend connection lost\r\n", 2))
	if got := r.total(); got.Retried != 2 || got.Unretried != 2 {
		t.Errorf("%d were asked again, %d not", got.Retried, got.Unretried)
	}
}
