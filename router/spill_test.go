package router_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/bounded"
	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// floor is what every server of these tests may have in flight.
const floor = 8

// ones are the weights of n equal servers.
func ones(n int) []int {
	w := make([]int, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

func newConfig(servers int) bounded.Config {
	return bounded.Config{Weights: ones(servers), PerMille: 1250, Floor: floor, Depth: min(2, servers-1)}
}

func newBound(t testing.TB, servers int) *bounded.Bound {
	t.Helper()
	b, err := bounded.New(newConfig(servers))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newBoundRig is a rig whose servers have a bound.
func newBoundRig(t testing.TB, n int, s router.Spill, cfg config) (*rig, *bounded.Bound) {
	t.Helper()
	g := newRig(t, n, cfg)
	table := g.well()
	table.Bound, table.Spill = newBound(t, n), s
	g.use(table)
	return g, table.Bound
}

// brim makes servers look full until emptied.
func brim(b *bounded.Bound, servers ...int) (empty func()) {
	for _, s := range servers {
		b.Add(s, 100)
	}
	return func() {
		for _, s := range servers {
			b.Release(s, 100)
		}
	}
}

// flights waits until a server has n units in flight.
func (g *rig) flights(b *bounded.Bound, server, n int) {
	g.t.Helper()
	g.until(fmt.Sprintf("%d units are in flight at server %d", n, server), func(router.Snapshot) bool { return b.InFlight(server) == n })
}

// idle waits until nothing is in flight any more.
func (g *rig) idle(b *bounded.Bound) {
	g.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); b.Total() > 0; {
		if time.Now().After(deadline) {
			g.t.Errorf("%d units stay in flight", b.Total())
			break
		}
		<-time.After(time.Millisecond)
	}
	for i := range b.Servers() {
		if n := b.InFlight(i); n != 0 {
			g.t.Errorf("%d units stay at server %d", n, i)
		}
	}
}

// Reads beyond what their home may have go to the next candidate, then to the one after
// that, and home when all are full.
func TestReadsBeyondTheBound(t *testing.T) {
	t.Parallel()
	g, b := newBoundRig(t, 4, router.SpillAny, config{})
	for i, v := range []string{"home", "1", "2", "3"} {
		g.at(i).ask(set("k", v), "STORED\r\n")
		g.proxies[i].Set(memcachedtest.Stall)
	}
	var clients []*client
	for server, want := range []int{floor, floor, floor, 0} {
		for n := range want {
			c := dial(t, g.addr)
			c.send("get k\r\n")
			clients = append(clients, c)
			g.flights(b, server, n+1) // reads that come together may keep each other from the last place
		}
		if got := b.Cap(server); got != floor {
			t.Errorf("server %d may have %d units in flight, want %d", server, got, floor)
		}
	}
	last := dial(t, g.addr)
	last.send("get k\r\n")
	g.flights(b, 0, floor+1)
	if st := b.Stats(); st.Spilled[1] != floor || st.Spilled[2] != floor || st.Forced != 1 || g.total().Spilled != 2*floor {
		t.Errorf("spilled %v, forced %d; the router counts %d", st.Spilled[:4], st.Forced, g.total().Spilled)
	}
	for _, p := range g.proxies {
		p.Set(memcachedtest.Pass)
	}
	for i, c := range append(clients, last) {
		c.ask("", hit("k", []string{"home", "1", "2", "home"}[i/floor])+"END\r\n")
	}
	g.idle(b)
}

// A slow home never has more in flight than it may. What is looked at may be two more, one
// for each loop that tries whether there is room.
func TestBoundHoldsForSlowHome(t *testing.T) {
	t.Parallel()
	g, b := newBoundRig(t, 4, router.SpillAny, config{})
	for i := range g.servers {
		g.at(i).ask(set("k", "v"), "STORED\r\n")
	}
	g.proxies[0].Set(memcachedtest.Delay)
	const clients, each = 24, 10
	var wg sync.WaitGroup
	for range clients {
		c := dial(t, g.addr)
		wg.Go(func() {
			for range each {
				c.send("get k\r\n")
				if _, err := c.r.Discard(len(hit("k", "v") + "END\r\n")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	// With all 24 in flight the bound is still the floor.
	most, samples := 0, 0
	for running := true; running; samples++ {
		select {
		case <-done:
			running = false
		case <-time.After(100 * time.Microsecond):
		}
		most = max(most, b.InFlight(0))
	}
	st := b.Stats()
	if most > floor+2 || most < floor-1 || st.Forced > 0 {
		t.Errorf("up to %d units were in flight at the slow server, which may have %d; %d reads were forced on a full one", most, floor, st.Forced)
	}
	t.Logf("%d samples; of %d reads %d and %d went to the next two", samples, clients*each, st.Spilled[1], st.Spilled[2])
	g.idle(b)
}

// What a spilled read misses comes from home and is shown; the copy lives shortly, keeps
// the flags, and serves the next read.
func TestSpilledReadIsWarm(t *testing.T) {
	t.Parallel()
	g, b := newBoundRig(t, 3, router.SpillAny, config{})
	home, next, after := g.at(0), g.at(1), g.at(2)
	x, y := g.clients()
	for _, ttl := range []string{"0", "100", "5"} {
		key := "k" + ttl
		home.ask("set "+key+" 7 "+ttl+" 3\r\nold\r\n", "STORED\r\n")
		empty := brim(b, 0)
		x.ask("get "+key+"\r\n", value(key, 7, "old")+"END\r\n")
		next.gains(key)
		if got := next.ttl(key); got < 1 || got > 10 || ttl == "5" && got > 5 {
			t.Errorf("the copy of an item that lives for %s s lives for %d", ttl, got)
		}
		home.ask("set "+key+" 8 0 3\r\nnew\r\n", "STORED\r\n") // behind the router's back
		for _, c := range []*client{x, y} {
			c.ask("get "+key+"\r\n", value(key, 7, "old")+"END\r\n")
			c.ask("mg "+key+" v f\r\n", "VA 3 f7\r\nold\r\n")
			c.ask("get none "+key+" "+key+"\r\n", value(key, 7, "old")+value(key, 7, "old")+"END\r\n")
			// What a copy cannot tell is asked at home.
			c.ask("mg "+key+" f t\r\n", "HD f8 t-1\r\n")
			if got := c.tell("gets " + key + "\r\n"); !strings.HasPrefix(got, "VALUE "+key+" 8 3 ") {
				t.Errorf("gets is answered %q, not from home", got)
			}
			c.want("new\r\nEND\r\n")
		}
		emptyNext := brim(b, 1)
		x.ask("get "+key+"\r\n", value(key, 8, "new")+"END\r\n")
		after.gains(key)
		emptyNext()
		empty()
		x.ask("get "+key+"\r\n", value(key, 8, "new")+"END\r\n")
	}
	empty := brim(b, 0)
	x.ask("get none\r\nmg none v f k\r\n", "END\r\nEN knone\r\n")
	empty()
	g.idle(b)
}

// Every write removes the copies before it is answered, on whichever loop they were made
// and on whichever servers.
func TestWritesRemoveSpilledCopies(t *testing.T) {
	t.Parallel()
	g, b := newBoundRig(t, 4, router.SpillAny, config{})
	x, y := g.clients()
	spill := func() {
		t.Helper()
		x.ask("set k 7 500 1\r\n4\r\n", "STORED\r\n")
		empty := brim(b, 0)
		y.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
		g.at(1).gains("k")
		emptyNext := brim(b, 1)
		y.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
		g.at(2).gains("k")
		emptyNext()
		empty()
	}
	for _, w := range anyWrites {
		spill()
		x.send("gets k\r\n")
		_, cas, _ := strings.Cut(x.line(), "VALUE k 7 1 ")
		x.want("4\r\nEND\r\n")
		if got := x.tell(strings.Replace(w.request, "CAS", cas, 1)); got != w.reply {
			t.Errorf("%q is answered %q", w.request, got)
		}
		g.at(1).none("k")
		g.at(2).none("k")
	}
	spill()
	x.ask("gat 100 k\r\n", value("k", 7, "4")+"END\r\n")
	g.at(1).none("k")
	spill()
	x.ask("set k 0 0 1 noreply\r\n5\r\nmn\r\n", "MN\r\n")
	x.ask(set("k", "6"), "STORED\r\n") // in its turn: what came before is over
	g.at(1).none("k")
	g.at(2).none("k")
	// Copies that nobody can have made are not looked for.
	calls := g.calls(1)
	x.ask(set("other", "1"), "STORED\r\n")
	if n := g.calls(1) - calls; n != 0 {
		t.Errorf("%d requests for a write of a key without copies", n)
	}
	g.idle(b)
}

// However many ask at once for what a spilled read misses, home is asked by few.
func TestSpilledMissIsShared(t *testing.T) {
	t.Parallel()
	g, b := newBoundRig(t, 3, router.SpillAny, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}})
	g.at(0).ask(set("k", "v"), "STORED\r\n")
	g.proxies[1].Set(memcachedtest.Stall)
	empty := brim(b, 0)
	const n = 40
	var clients []*client
	for range n {
		c := dial(t, g.addr)
		c.send("get k\r\n")
		clients = append(clients, c)
	}
	g.until("all have been heard", func(s router.Snapshot) bool { return s.Flights.Led+s.Flights.Joined+s.Flights.Waited >= n })
	calls := g.calls(0)
	g.proxies[1].Set(memcachedtest.Pass)
	for _, c := range clients {
		c.want(hit("k", "v") + "END\r\n")
	}
	g.at(1).gains("k")
	// Each loop has two flights at most, and each asks for the item and its time.
	if got := g.calls(0) - calls; got < 1 || got > 8 {
		t.Errorf("home was asked %d times for %d reads", got, n)
	}
	empty()
	g.idle(b)
}

// Only hot keys leave a full home.
func TestOnlyHotKeysSpill(t *testing.T) {
	t.Parallel()
	hot := &hotkey.Config{Hot: 0.5, MinRate: 50, EnterTicks: 1, Smooth: 100 * time.Millisecond, LeaveAfter: time.Hour}
	g, b := newBoundRig(t, 3, router.SpillHot, config{Pool: router.PoolConfig{HotKeys: hot}})
	for i, v := range []string{"home", "copy"} {
		g.at(i).ask(set("hot", v)+set("cold", v), "STORED\r\nSTORED\r\n")
	}
	c, _ := g.clients()
	c.ask("get cold\r\n", hit("cold", "home")+"END\r\n")
	asked := strings.Repeat("get hot\r\n", floor) // for which home has room
	answers := strings.Repeat(hit("hot", "home")+"END\r\n", floor)
	g.until("the key is hot", func(router.Snapshot) bool {
		c.ask(asked, answers)
		return g.HotKeys(1).Hot == 1
	})
	defer brim(b, 0)()
	spilled := uint64(0)
	g.until("the loops know it", func(router.Snapshot) bool {
		if c.item("hot") == "VALUE hot 0 4\ncopy" {
			spilled++
		}
		return spilled > 0
	})
	c.ask("get cold\r\n", hit("cold", "home")+"END\r\n")
	c.ask("get hot cold\r\n", hit("hot", "copy")+hit("cold", "home")+"END\r\n")
	if n := g.total().Spilled; n != 2 {
		t.Errorf("%d reads left a full home, want one and one of a multiget", n)
	}
}

// A router that was just started does not know what copies it has made before, and so reads
// none.
func TestYoungRouterDoesNotSpill(t *testing.T) {
	t.Parallel()
	addrs := addresses(t, 2)
	dial(t, addrs[0]).ask(set("k", "new"), "STORED\r\n")
	dial(t, addrs[1]).ask("set k 0 10 3\r\nold\r\n", "STORED\r\n") // of a former life
	f := func(age time.Duration, want string) {
		t.Helper()
		table := table(addrs...)
		table.Picker, table.Bound, table.Spill = order{0, 1}, newBound(t, 2), router.SpillAny
		r := launch(t, config{Pool: router.PoolConfig{Table: table}}, age)
		defer brim(table.Bound, 0)()
		dial(t, r.addr).ask("get k\r\nget k none\r\n", hit("k", want)+"END\r\n"+hit("k", want)+"END\r\n")
	}
	// Copies live for 10 s, and may be stored as late as two calls may last, which are long
	// here, and 2 s.
	safe := 10*time.Second + 2*patience + 2*time.Second
	f(0, "new")
	f(safe-patience, "new")
	f(safe, "old")
}

// A server too old to tell how long an item has left does no harm.
func TestSpillFromOldServer(t *testing.T) {
	t.Parallel()
	home, next := listen(t), memcachedtest.Start(t)
	table := table(home.addr(), next.Addr())
	table.Picker, table.Bound, table.Spill = order{0, 1}, newBound(t, 2), router.SpillAny
	r := launch(t, config{Pool: router.PoolConfig{Table: table}}, time.Hour)
	defer brim(table.Bound, 0)()
	c, s := dial(t, r.addr), home.accept()
	c.send("get k\r\n")
	s.want("mg k t\r\nget k\r\n")
	s.send("ERROR\r\n" + value("k", 7, "v") + "END\r\n")
	c.want(value("k", 7, "v") + "END\r\n")
	copies := dial(t, next.Addr())
	copies.gains("k")
	if got := copies.ttl("k"); got < 1 || got > 10 {
		t.Errorf("the copy lives for %d s", got)
	}
	c.ask("get k\r\n", value("k", 7, "v")+"END\r\n")
}
