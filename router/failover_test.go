package router_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

const (
	pass   = memcachedtest.Pass
	stall  = memcachedtest.Stall
	reset  = memcachedtest.Reset
	refuse = memcachedtest.Refuse
)

const unwritable = "SERVER_ERROR backend unreachable, and not yet given up"

var (
	// unreachable is how a server is used that only this router cannot reach.
	unreachable = router.Server{Reads: router.ReadNext, Writes: router.WriteNowhere}
	// away is how a server is used that no router can reach.
	away = router.Server{Reads: router.ReadNext, Writes: router.WriteNext}
	// returning is how a server is used that answers again, but may hold old items.
	returning = router.Server{Reads: router.ReadNext, Writes: router.WriteNext, Clean: true}
)

// While others may read from a server what this router cannot write there, its writes are
// refused.
func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{Pool: router.PoolConfig{FlushAll: true}})
	g.proxies[0].Set(refuse)
	g.use(g.with(unreachable))
	next := g.at(1)
	next.ask(set("k", "4"), "STORED\r\n")
	a, b := g.clients()
	for _, w := range anyWrites {
		if got := a.tell(strings.Replace(w.request, "CAS", "1", 1)); got != unwritable {
			t.Errorf("%q is answered %q", w.request, got)
		}
	}
	for _, request := range []string{"add none 0 0 1\r\n5\r\n", "gat 100 k\r\n", "gat 100 k none\r\n", "mg none N100\r\n", "flush_all\r\n"} {
		if got := b.tell(request); got != unwritable {
			t.Errorf("%q is answered %q", request, got)
		}
	}
	for _, c := range []*client{a, b} {
		c.ask("set k 0 0 1 noreply\r\n5\r\nget k\r\nget none\r\nget k none\r\n", hit("k", "4")+"END\r\nEND\r\n"+hit("k", "4")+"END\r\n")
		c.ask("mg k v\r\nmg none v k\r\n", "VA 1\r\n4\r\nEN knone\r\n")
	}
	if got := next.ttl("k"); got != -1 {
		t.Errorf("the item of the next candidate lives for %d", got)
	}
	next.none("none")
	if got := g.witness.heard(); len(got) > 0 {
		t.Errorf("writes that were refused are said to be missed: %q", got)
	}
	if n := g.total().Unwritable; n != uint64(len(anyWrites)+2+5+1) { // a gat of two is two
		t.Errorf("%d writes were refused", n)
	}
}

// What took the writes of a server while it was away is cleaned when that is out and others are
// the homes of its keys, if the table says that they may be.
func TestWrittenAstray(t *testing.T) {
	t.Parallel()
	for _, astray := range []bool{true, false} {
		g := newRig(t, 4, config{})
		g.proxies[0].Set(refuse)
		g.use(g.with(away))
		a, _ := g.clients()
		a.ask(set("k", "old"), "STORED\r\n")
		out := g.with(away)
		out.Picker, out.Astray = order{2, 1, 3}, astray
		g.use(out)
		a.ask(set("k", "new"), "STORED\r\n")
		if n := g.at(1); astray {
			n.none("k")
		} else {
			n.ask("get k\r\n", hit("k", "old")+"END\r\n")
		}
		a.ask("get k\r\n", hit("k", "new")+"END\r\n")
	}
}

// The writes of a server that is away go to the next candidate, where what they leave
// does not live long, and the server is known to have missed them.
func TestServerAway(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{Pool: router.PoolConfig{FailoverTTL: 30 * time.Second}})
	g.proxies[0].Set(refuse)
	g.use(g.with(away))
	next := g.at(1)
	a, b := g.clients()
	f := func(request, reply string) {
		t.Helper()
		next.send("delete k\r\n")
		next.line()
		next.ask("set k 0 20 1\r\n4\r\n", "STORED\r\n")
		a.ask(request, reply)
		if got := next.tell("mg k t\r\n"); got != "EN" {
			if left := next.ttl("k"); left < 0 || left > 30 {
				t.Errorf("after %q k lives for %d", request, left)
			}
		}
		if got := g.witness.heard(); len(got) == 0 || got[len(got)-1] != "n0 k" {
			t.Errorf("after %q membership was told of %q", request, got)
		}
		g.witness.mu.Lock()
		g.witness.missed = nil
		g.witness.mu.Unlock()
	}
	for _, w := range anyWrites {
		if !strings.Contains(w.request, "CAS") {
			f(w.request, w.reply+"\r\n")
		}
	}
	for _, exptime := range []string{"0", "100", "2000000000"} {
		f("set k 0 "+exptime+" 1\r\n5\r\n", "STORED\r\n")
		f("touch k "+exptime+"\r\n", "TOUCHED\r\n")
		f("gat "+exptime+" k\r\n", hit("k", "4")+"END\r\n")
		f("gat "+exptime+" k none k\r\n", hit("k", "4")+hit("k", "4")+"END\r\n")
		f("ms k 1 T"+exptime+"\r\n5\r\n", "HD\r\n")
		f("mg k v T"+exptime+"\r\n", "VA 1\r\n4\r\n")
		f("ma k T"+exptime+"\r\n", "HD\r\n")
		f("md k I T"+exptime+"\r\n", "HD\r\n")
	}
	f("set k 0 0 1\r\n5\r\n", "STORED\r\n")
	b.ask("get k\r\nget k k\r\nmg k v\r\n", hit("k", "5")+"END\r\n"+hit("k", "5")+hit("k", "5")+"END\r\nVA 1\r\n5\r\n")
	b.send("gets k\r\n")
	_, cas, _ := strings.Cut(b.line(), "VALUE k 0 1 ")
	b.want("5\r\nEND\r\n")
	a.ask("cas k 0 0 1 "+cas+"\r\n6\r\n", "STORED\r\n")
	if left := next.ttl("k"); left < 0 || left > 30 {
		t.Errorf("after cas k lives for %d", left)
	}
	g.at(0).none("k")
	g.at(2).none("k")
	// When the server is back and was cleaned, a write also removes what was left elsewhere.
	g.proxies[0].Set(pass)
	g.use(g.well())
	g.until("it can be reached", func(router.Snapshot) bool { return a.tell(set("k", "7")) == "STORED" })
	next.none("k")
}

// Membership knows what a server missed before the next candidate gets it.
func TestMissedIsToldFirst(t *testing.T) {
	t.Parallel()
	g := newRig(t, 1, config{})
	next := listen(t)
	g.addrs = append(g.addrs, next.addr())
	g.use(g.with(away))
	ours, other := next.accept(), next.accept()
	a, _ := g.clients()
	a.send(set("k", "5"))
	got := make(chan string, 1)
	for _, p := range []*client{ours, other} {
		go func() {
			if line, err := p.r.ReadString('\n'); err == nil {
				got <- line
				p.r.ReadString('\n')
				p.nc.Write([]byte("STORED\r\n"))
			}
		}()
	}
	if line := <-got; line != "set k 0 60 1\r\n" {
		t.Errorf("the next candidate gets %q", line)
	}
	if heard := g.witness.heard(); !slices.Equal(heard, []string{"n0 k"}) {
		t.Errorf("membership was told of %q", heard)
	}
	a.want("STORED\r\n")
}

// A server that was away when a write was sent, and serves again when it is answered, is
// made to forget the key first.
func TestServerReturnsUnderWrite(t *testing.T) {
	t.Parallel()
	g := newRig(t, 1, config{})
	g.at(0).ask(set("k", "old"), "STORED\r\n")
	next := listen(t)
	g.addrs = append(g.addrs, next.addr())
	g.use(g.with(away))
	ours, other := next.accept(), next.accept()
	a, b := g.clients()
	a.send(set("k", "5"))
	got := make(chan *client, 1)
	for _, p := range []*client{ours, other} {
		go func() {
			if _, err := p.r.ReadString('\n'); err == nil {
				p.r.ReadString('\n')
				got <- p
			}
		}()
	}
	p := <-got // the next candidate has the write, and no answer was given
	g.use(g.well())
	p.nc.Write([]byte("STORED\r\n"))
	a.want("STORED\r\n")
	g.at(0).none("k")
	b.none("k")
}

// A server that answers again is made to forget a key before its write is answered.
func TestReturningServer(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	g.use(g.with(returning))
	home, next := g.at(0), g.at(1)
	a, b := g.clients()
	home.ask("ms YSBi 1 b\r\n1\r\n", "HD\r\n")
	a.ask("ms YSBi 1 b\r\n5\r\n", "HD\r\n") // a key with a space in it
	home.ask("mg YSBi b\r\n", "EN\r\n")
	for _, c := range []*client{a, b} {
		home.ask(set("k", "old"), "STORED\r\n")
		next.ask(set("k", "4"), "STORED\r\n")
		c.ask("get k\r\n", hit("k", "4")+"END\r\n")
		c.ask("incr k 1\r\n", "5\r\n")
		home.none("k")
		next.ask("get k\r\n", hit("k", "5")+"END\r\n")
		home.ask(set("k", "old"), "STORED\r\n")
		c.ask("delete k\r\n", "DELETED\r\n")
		home.none("k")
		home.ask(set("k", "old"), "STORED\r\n")
		c.ask("delete k\r\n", "NOT_FOUND\r\n") // at the next candidate
		home.none("k")
	}
	if got := g.witness.heard(); len(got) > 0 {
		t.Errorf("what the server was told is said to be missed: %q", got)
	}
	g.proxies[0].Set(refuse)
	a.ask(set("k", "6"), "SERVER_ERROR backend not cleaned\r\n")
	if got := g.witness.heard(); !slices.Contains(got, "n0 k") {
		t.Errorf("membership was told of %q", got)
	}
	next.ask("get k\r\n", hit("k", "6")+"END\r\n") // the write itself was done
	a.ask("get k\r\n", hit("k", "6")+"END\r\n")
}

// A server that could not be reached is connected to when it is known to answer again, not when the
// next attempt is due: its first cleaning waits for that.
func TestReturningServerIsConnected(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	g.proxies[0].Set(refuse)
	g.use(g.with(away))
	for g.total().Servers[g.addrs[0]].Connects < 10 { // by two loops: the next are half a second away
		time.Sleep(time.Millisecond) // between two looks
	}
	g.proxies[0].Set(pass)
	g.use(g.with(returning))
	a, b := g.clients()
	a.ask(set("k", "1"), "STORED\r\n")
	b.ask(set("k", "2"), "STORED\r\n")
}

// Writes to a server whose keys were on others for a while remove what is left there.
func TestMovedServer(t *testing.T) {
	t.Parallel()
	g := newRig(t, 4, config{})
	g.use(g.with(router.Server{Moved: true}))
	a, b := g.clients()
	for _, w := range anyWrites {
		g.at(0).ask("set k 0 0 1\r\n4\r\n", "STORED\r\n")
		for i := range 3 {
			g.at(i+1).ask(set("k", "old"), "STORED\r\n")
		}
		a.send("gets k\r\n")
		_, cas, _ := strings.Cut(a.line(), "VALUE k 0 1 ")
		a.want("4\r\nEND\r\n")
		if got := b.tell(strings.Replace(w.request, "CAS", cas, 1)); got != w.reply {
			t.Errorf("%q is answered %q", w.request, got)
		}
		g.at(1).none("k")
		g.at(2).none("k")
		g.at(3).ask("get k\r\n", hit("k", "old")+"END\r\n")
	}
	// One that cannot be reached holds nothing up, and has missed it.
	g.proxies[1].Set(refuse)
	a.ask(set("k", "5"), "STORED\r\n")
	if got := g.witness.heard(); !slices.Contains(got, "n1 k") {
		t.Errorf("membership was told of %q", got)
	}
}
