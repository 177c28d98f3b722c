package router_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cacherouter/router"
)

// staged is a router whose first server does what the test says, and whose second is a
// memcached. Connections and clients are of the same loops.
type staged struct {
	*rig
	home, otherHome *client // of the loops of a and b
	old             *client // leads to the memcached directly
	a, b            *client
}

func stage(t *testing.T, cfg config, use func(g *rig) *router.Table) *staged {
	t.Helper()
	g := &staged{rig: newRig(t, 2, cfg)}
	f := listen(t)
	g.addrs[0] = f.addr()
	g.use(g.well())
	g.old = g.at(1)
	g.home, g.otherHome = f.accept(), f.accept()
	g.a, g.b = g.clients()
	heard := make(chan *client, 2)
	for _, p := range []*client{g.home, g.otherHome} {
		go func() {
			if _, err := p.r.Peek(1); err == nil {
				heard <- p
			}
		}()
	}
	g.a.send("get who\r\n")
	if <-heard != g.home {
		g.home, g.otherHome = g.otherHome, g.home
	}
	g.b.send("get who\r\n")
	<-heard
	for i, p := range []*client{g.home, g.otherHome} {
		p.want("get who\r\n")
		p.send("END\r\n")
		[]*client{g.a, g.b}[i].want("END\r\n")
	}
	g.use(use(g.rig))
	return g
}

// stageFill is stage for keys that have moved, with a copy of an old item on its way to
// the new home.
func stageFill(t *testing.T) *staged {
	t.Helper()
	g := stage(t, config{}, func(g *rig) *router.Table { return g.moved(time.Hour) })
	g.old.ask("set k 7 0 3\r\nold\r\n", "STORED\r\n")
	g.a.send("get k\r\n")
	g.home.want("get k\r\n")
	g.home.send("END\r\n")
	g.a.want(value("k", 7, "old") + "END\r\n")
	g.home.want("add k 7 0 3\r\nold\r\n")
	return g
}

// quiet wants nothing to have been sent, when all loops have done what they could.
func (g *staged) quiet(c *client) {
	g.t.Helper()
	for range 3 {
		g.total()
	}
	c.nc.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
	if b, err := c.r.Peek(1); err == nil {
		rest, _ := c.r.Peek(c.r.Buffered())
		g.t.Errorf("too early came %q %q", b, rest)
	}
	c.nc.SetReadDeadline(time.Now().Add(patience))
}

// A deletion is not undone by a copy that was on its way to the home of its key, in
// whichever order the home and the loops hear of the two.
func TestDeletionOvertakesCopy(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"delete k\r\n", "md k\r\n"} {
		g := stageFill(t)
		done, gone := "DELETED\r\n", "NOT_FOUND\r\n"
		if verb == "md k\r\n" {
			done, gone = "HD\r\n", "NF\r\n"
		}
		g.b.send(verb)
		g.otherHome.want(verb)
		g.otherHome.send(gone)
		g.quiet(g.b) // the copy may come yet
		g.home.send("STORED\r\n")
		g.otherHome.want("delete k\r\n")
		g.otherHome.send("DELETED\r\n")
		g.b.want(gone)
		g.old.none("k")

		// The home did the deletion first, and the router hears of the copy first.
		g = stageFill(t)
		g.b.send(verb)
		g.otherHome.want(verb)
		g.home.send("STORED\r\n")
		g.until("the loop has heard of the copy", func(s router.Snapshot) bool { return s.Copied == 1 })
		g.otherHome.send(done)
		g.otherHome.want("delete k\r\n")
		g.quiet(g.b)
		g.otherHome.send("DELETED\r\n")
		g.b.want(done)
		g.old.none("k")
	}
}

// What was stored is not taken for a copy that was on its way.
func TestStoreOvertakesCopy(t *testing.T) {
	t.Parallel()
	for _, heardFirst := range []bool{false, true} {
		g := stageFill(t)
		g.b.send(set("k", "new"))
		g.otherHome.want(set("k", "new"))
		if heardFirst {
			g.home.send("NOT_STORED\r\n")
			g.quiet(g.otherHome)
		}
		g.otherHome.send("STORED\r\n")
		if !heardFirst {
			g.quiet(g.b)
			g.home.send("NOT_STORED\r\n")
		}
		g.b.want("STORED\r\n")
		g.old.none("k")
		g.b.send("get k\r\n")
		g.otherHome.want("get k\r\n") // and not a deletion before it
		g.otherHome.send(hit("k", "new") + "END\r\n")
		g.b.want(hit("k", "new") + "END\r\n")
	}
}

// A store that leaves nothing, as it is over at once or has failed, is a deletion.
func TestStoreOfNothingOvertakesCopy(t *testing.T) {
	t.Parallel()
	for _, w := range []struct{ request, reply string }{
		{"set k 0 -1 1\r\nx\r\n", "STORED\r\n"},
		{"ms k 1 T-1\r\nx\r\n", "HD\r\n"},
		{set("k", "x"), "SERVER_ERROR out of memory storing object\r\n"},
	} {
		g := stageFill(t)
		g.b.send(w.request)
		g.otherHome.want(w.request)
		g.otherHome.send(w.reply)
		g.quiet(g.b)
		g.home.send("STORED\r\n")
		g.otherHome.want("delete k\r\n")
		g.otherHome.send("DELETED\r\n")
		g.b.want(w.reply)
	}
}

// Whoever finds that a key was written after it was asked for makes no copy of what it got.
func TestWriteBeforeCopy(t *testing.T) {
	t.Parallel()
	g := stage(t, config{}, func(g *rig) *router.Table { return g.moved(time.Hour) })
	g.old.ask("set k 7 0 3\r\nold\r\n", "STORED\r\n")
	g.a.send("get k\r\n")
	g.home.want("get k\r\n")
	g.b.send("delete k\r\n")
	g.otherHome.want("delete k\r\n")
	g.home.send("END\r\n")
	g.a.want(value("k", 7, "old") + "END\r\n") // it was not deleted yet
	g.otherHome.send("NOT_FOUND\r\n")
	g.b.want("NOT_FOUND\r\n")
	g.old.none("k")
	g.a.send("get k\r\n")
	g.home.want("get k\r\n") // with no add before it
	g.home.send("END\r\n")
	g.a.want("END\r\n")
	if n := g.total().Overtaken; n != 1 {
		t.Errorf("%d copies were overtaken", n)
	}
}

// A client that deletes a key and asks for it in one packet does not get what it has
// deleted, though that cannot be removed before a copy has arrived.
func TestGetBehindDeletionThatWaits(t *testing.T) {
	t.Parallel()
	g := stageFill(t)
	g.b.send("delete k\r\nget k\r\nget k k\r\n")
	g.otherHome.want("delete k\r\nget k\r\n")
	g.otherHome.send("NOT_FOUND\r\nEND\r\n")
	g.quiet(g.b)
	g.home.send("STORED\r\n")
	go func() { // the rest may come in any order
		for line, err := g.otherHome.r.ReadString('\n'); err == nil; line, err = g.otherHome.r.ReadString('\n') {
			reply := "END\r\n"
			if strings.HasPrefix(line, "delete") {
				reply = "DELETED\r\n"
			}
			g.otherHome.nc.Write([]byte(reply))
		}
	}()
	g.b.want("NOT_FOUND\r\nEND\r\nEND\r\n")
}

// A copy on its way to the next candidate is removed when it has arrived.
func TestWriteWaitsForCopy(t *testing.T) {
	t.Parallel()
	g := stage(t, config{}, func(g *rig) *router.Table {
		t := g.well()
		t.Picker = order{1, 0} // the real one is the home
		t.Servers[1].Reads = router.ReadNext
		return t
	})
	next, otherNext := g.home, g.otherHome
	g.old.ask(set("k", "old"), "STORED\r\n")
	g.a.send("get k\r\n")
	next.want("get k\r\n")
	next.send("END\r\n")
	g.a.want(hit("k", "old") + "END\r\n")
	next.want("add k 0 10 3\r\nold\r\n")
	g.b.send(set("k", "new"))
	g.quiet(g.b)
	g.old.ask("get k\r\n", hit("k", "new")+"END\r\n")
	next.send("STORED\r\n")
	otherNext.want("delete k\r\n")
	g.quiet(g.b)
	otherNext.send("DELETED\r\n")
	g.b.want("STORED\r\n")
}

// A flush waits for copies that are on their way.
func TestFlushWaitsForCopy(t *testing.T) {
	t.Parallel()
	g := stage(t, config{Pool: router.PoolConfig{FlushAll: true}}, func(g *rig) *router.Table { return g.moved(time.Hour) })
	g.old.ask("set k 7 0 3\r\nold\r\n", "STORED\r\n")
	g.a.send("get k\r\n")
	g.home.want("get k\r\n")
	g.home.send("END\r\n")
	g.a.want(value("k", 7, "old") + "END\r\n")
	g.home.want("add k 7 0 3\r\nold\r\n")
	g.b.send("flush_all\r\n")
	g.quiet(g.otherHome)
	g.home.send("STORED\r\n")
	g.otherHome.want("flush_all\r\n")
	g.quiet(g.b)
	g.otherHome.send("OK\r\n")
	g.b.want("OK\r\n")
	g.old.none("k")
}

// While a write's fate is unknown no copy of its key is read or made, for as long as one
// could be out of date.
func TestUnknownFate(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{Pool: router.PoolConfig{Timeout: shortTimeout}})
	g.use(g.with(readNext))
	next := g.at(1)
	a, b := g.clients()
	a.ask(set("k", "4"), "STORED\r\n")
	a.ask("get k\r\n", hit("k", "4")+"END\r\n")
	g.until("the copy is there", func(s router.Snapshot) bool { return s.Copied == 1 })
	g.servers[0].Pause()
	a.ask(set("k", "5"), "SERVER_ERROR backend timeout\r\n")
	failed := time.Now()
	next.none("k")
	if got := g.witness.heard(); fmt.Sprint(got) != "[n0 k]" {
		t.Errorf("membership was told of %q", got)
	}
	g.servers[0].Resume()
	home := g.at(0)
	next.ask(set("k", "6"), "STORED\r\n") // would show if it were read
	var got string
	g.until("the home is asked again", func(router.Snapshot) bool {
		got = b.tell("get k\r\n")
		return !strings.HasPrefix(got, "SERVER_ERROR")
	})
	data := b.line()
	b.want("END\r\n")
	if got != "VALUE k 0 1" || data != "4" && data != "5" {
		t.Errorf("get is answered %q, %q", got, data)
	}
	next.ask("delete k\r\n", "DELETED\r\n")
	home.ask(set("k", "7"), "STORED\r\n")
	copied := g.total().Copied
	g.until("copies are made again", func(s router.Snapshot) bool {
		for _, c := range []*client{a, b} {
			c.ask("get k\r\n", hit("k", "7")+"END\r\n")
		}
		return s.Copied > copied
	})
	if took := time.Since(failed); took < 10*time.Second {
		t.Errorf("copies are made %v after a write of unknown fate", took)
	}
	if st := g.total(); st.Copied != copied+1 {
		t.Errorf("%d copies were made", st.Copied-copied)
	}
}
