package router_test

import (
	"strings"
	"testing"
	"time"

	"cacherouter/router"
)

// readNext is how a server is used that should get no reads.
var readNext = router.Server{Reads: router.ReadNext}

// A read that a copy can answer goes to the next candidate. What is not there comes from
// home, and is copied for a short time.
func TestReadsOfCopies(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	g.use(g.with(readNext))
	home, next := g.at(0), g.at(1)
	a, b := g.clients()
	for i, ttl := range []string{"0", "100", "5"} {
		key := "k" + ttl
		home.ask("set "+key+" 7 "+ttl+" 1\r\nx\r\n", "STORED\r\n")
		a.ask("get "+key+"\r\n", value(key, 7, "x")+"END\r\n")
		next.gains(key)
		if got := next.ttl(key); got < 0 || got > 10 || ttl == "5" && got > 5 {
			t.Errorf("the copy of an item that lives for %s s lives for %d", ttl, got)
		}
		home.ask("set "+key+" 8 0 1\r\ny\r\n", "STORED\r\n") // behind the router's back
		for _, c := range []*client{a, b} {
			c.ask("get "+key+"\r\n", value(key, 7, "x")+"END\r\n")
			c.ask("get "+key+" none "+key+"\r\n", value(key, 7, "x")+value(key, 7, "x")+"END\r\n")
			c.ask("mg "+key+" v f\r\n", "VA 1 f7\r\nx\r\n")
			c.ask("mg "+key+" v\r\n", "VA 1\r\ny\r\n") // a miss would not tell all that a copy needs
			c.ask("mg "+key+" f t\r\n", "HD f8 t-1\r\n")
			if got := c.tell("gets " + key + "\r\n"); !strings.HasPrefix(got, "VALUE "+key+" 8 1 ") {
				t.Errorf("gets is answered %q, not from home", got)
			}
			c.want("y\r\nEND\r\n")
			c.send("gets none " + key + "\r\n")
			if got := c.line(); !strings.HasPrefix(got, "VALUE "+key+" 8 1 ") {
				t.Errorf("gets of two is answered %q, not from home", got)
			}
			c.want("y\r\nEND\r\n")
		}
		if n := g.total().Copied; n != uint64(i+1) {
			t.Errorf("%d items were copied, want %d", n, i+1)
		}
	}
	a.ask("get none\r\nmg none v f k\r\nget none nothing\r\n", "END\r\nEN knone\r\nEND\r\n")
	g.at(2).none("k100") // the second candidate has no need of one
	if st := g.total(); st.Hits != 3+3*2*8 || st.Misses != 3*2*2+4 {
		t.Errorf("%d hits and %d misses were counted", st.Hits, st.Misses)
	}
}

// Every write removes the copies before it is answered, on whichever loop they were made.
func TestWritesRemoveCopies(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	g.use(g.with(readNext))
	home, next := g.at(0), g.at(1)
	a, b := g.clients()
	for _, w := range anyWrites {
		b.ask("set k 7 500 1\r\n4\r\n", "STORED\r\n") // while it is on its way nothing is copied
		b.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
		next.gains("k")
		a.send("gets k\r\n")
		_, cas, _ := strings.Cut(a.line(), "VALUE k 7 1 ")
		a.want("4\r\nEND\r\n")
		if got := a.tell(strings.Replace(w.request, "CAS", cas, 1)); got != w.reply {
			t.Errorf("%q is answered %q", w.request, got)
		}
		next.none("k")
	}
	b.ask("set k 7 500 1\r\n4\r\n", "STORED\r\n")
	b.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
	next.gains("k")
	a.ask("gat 100 k\r\n", value("k", 7, "4")+"END\r\n")
	next.none("k")
	b.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
	next.gains("k")
	// What changes nothing lets the copy be.
	a.ask("add k 0 0 1\r\n5\r\ncas k 0 0 1 1\r\n5\r\nincr k x\r\n", "NOT_STORED\r\nEXISTS\r\nCLIENT_ERROR invalid numeric delta argument\r\n")
	next.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
	home.ask("get k\r\n", value("k", 7, "4")+"END\r\n")
	// Copies outlive the state that they were made in, and are removed all the same.
	g.use(g.well())
	a.ask(set("k", "5"), "STORED\r\n")
	next.none("k")
}

// A write whose copies cannot be removed is answered when that is known, and the copies on
// that server are not read until they have expired.
func TestCopiesOnHangingServer(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{Pool: router.PoolConfig{Timeout: shortTimeout}})
	g.use(g.with(readNext))
	next := g.at(1)
	a, b := g.clients()
	a.ask(set("k", "4"), "STORED\r\n")
	a.ask("get k\r\n", hit("k", "4")+"END\r\n")
	next.gains("k")
	g.proxies[1].Set(stall)
	sent := time.Now()
	a.ask(set("k", "5"), "STORED\r\n")
	answered := time.Now()
	if took := answered.Sub(sent); took < shortTimeout {
		t.Errorf("the write was answered after %v, before the timeout", took)
	}
	g.proxies[1].Set(pass)
	next.ask(set("k", "4"), "STORED\r\n") // as if the deletion had not arrived
	calls := g.calls(1)
	for _, c := range []*client{a, b} {
		c.ask("get k\r\nget k k\r\n", hit("k", "5")+"END\r\n"+hit("k", "5")+hit("k", "5")+"END\r\n")
	}
	if n := g.calls(1) - calls; n > 0 {
		t.Errorf("%d requests went to the server that may hold an old copy", n)
	}
	if got := g.witness.heard(); len(got) == 0 || got[0] != "n1 k" {
		t.Errorf("membership was told of %q", got)
	}
	g.until("copies are read from it again", func(router.Snapshot) bool {
		a.ask("get other\r\n", "END\r\n")
		return g.calls(1) > calls
	})
	if took := time.Since(answered); took < 10*time.Second {
		t.Errorf("copies are read again after %v, when older ones may still be there", took)
	}
}

// A server in probation is read from as membership admits.
func TestReadOne(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	g.use(g.with(router.Server{Reads: router.ReadOne}))
	g.at(0).ask(set("k", "home"), "STORED\r\n")
	g.at(1).ask(set("k", "copy"), "STORED\r\n")
	a, _ := g.clients()
	a.ask("get k\r\n", hit("k", "copy")+"END\r\n")
	g.witness.mu.Lock()
	g.witness.admits = true
	g.witness.mu.Unlock()
	a.ask("get k\r\nget k k\r\n", hit("k", "home")+"END\r\n"+hit("k", "home")+hit("k", "home")+"END\r\n")
	a.ask(set("k", "new")+"get k\r\n", "STORED\r\n"+hit("k", "new")+"END\r\n")
	g.at(1).none("k")
}
