package router_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/memproto"
	"cacherouter/router"
)

// handedOver are requests on an item k with flags 7 and value 4 that lives for 300 s on
// the server where it was before, how they are answered and what is at home afterwards.
var handedOver = []struct{ request, reply, after string }{
	{"get k\r\n", value("k", 7, "4") + "END\r\n", "VA 1 f7\r\n4\r\n"},
	{"get none k nothing k\r\n", value("k", 7, "4") + value("k", 7, "4") + "END\r\n", "VA 1 f7\r\n4\r\n"},
	{"mg k v f k\r\n", "VA 1 f7 kk\r\n4\r\n", "VA 1 f7\r\n4\r\n"},
	{"mg k v f s Oa q\r\n", "VA 1 f7 s1 Oa\r\n4\r\n", "VA 1 f7\r\n4\r\n"},
	{"mg k v\r\n", "VA 1\r\n4\r\n", "VA 1 f7\r\n4\r\n"},
	{"mg k f\r\n", "HD f7\r\n", "VA 1 f7\r\n4\r\n"},
	{"incr k 1\r\n", "5\r\n", "VA 1 f7\r\n5\r\n"},
	{"decr k 1\r\n", "3\r\n", "VA 1 f7\r\n3\r\n"},
	{"ma k v\r\n", "VA 1\r\n5\r\n", "VA 1 f7\r\n5\r\n"},
	{"append k 0 0 1\r\n5\r\n", "STORED\r\n", "VA 2 f7\r\n45\r\n"},
	{"prepend k 0 0 1\r\n5\r\n", "STORED\r\n", "VA 2 f7\r\n54\r\n"},
	{"ms k 1 MA\r\n5\r\n", "HD\r\n", "VA 2 f7\r\n45\r\n"},
	{"ms k 1 MP\r\n5\r\n", "HD\r\n", "VA 2 f7\r\n54\r\n"},
	{"replace k 8 300 1\r\n5\r\n", "STORED\r\n", "VA 1 f8\r\n5\r\n"},
	{"ms k 1 MR F8 T300\r\n5\r\n", "HD\r\n", "VA 1 f8\r\n5\r\n"},
	{"add k 8 300 1\r\n5\r\n", "NOT_STORED\r\n", "VA 1 f7\r\n4\r\n"},
	{"ms k 1 ME F8 T300\r\n5\r\n", "NS\r\n", "VA 1 f7\r\n4\r\n"},
	{"touch k 300\r\n", "TOUCHED\r\n", "VA 1 f7\r\n4\r\n"},
	{"mg k v T300\r\n", "VA 1\r\n4\r\n", "VA 1 f7\r\n4\r\n"},
	{"gat 300 k\r\n", value("k", 7, "4") + "END\r\n", "VA 1 f7\r\n4\r\n"},
	{"gat 300 none k\r\n", value("k", 7, "4") + "END\r\n", "VA 1 f7\r\n4\r\n"},
	{"set k 8 300 1\r\n5\r\n", "STORED\r\n", "VA 1 f8\r\n5\r\n"},
	{"ms k 1 F8 T300\r\n5\r\n", "HD\r\n", "VA 1 f8\r\n5\r\n"},
}

// For a while after keys have moved an item that is not at home is asked for where it was,
// and used as if it had been at home, with the life it has left.
func TestHandOver(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	g.use(g.moved(time.Hour))
	home, old := g.at(0), g.at(1)
	a, b := g.clients()
	for i, h := range handedOver {
		c := []*client{a, b}[i%2]
		home.send("delete k\r\n")
		home.line()
		old.ask("set k 7 300 1\r\n4\r\n", "STORED\r\n")
		c.ask(h.request, h.reply)
		home.gains("k") // what a read has found is copied afterwards
		if got := home.ttl("k"); got < 290 || got > 300 {
			t.Errorf("after %q the item lives for %d s at home", h.request, got)
		}
		home.ask("mg k v f\r\n", h.after)
		c.ask("mg k v f\r\n", h.after)
		if h.after != "VA 1 f7\r\n4\r\n" { // what was replaced must not stay
			old.none("k")
		}
	}
	if got := g.witness.heard(); len(got) > 0 {
		t.Errorf("membership was told of %q", got)
	}
	g.at(2).none("k")
}

// What asks for the time that is left, or for the cas, is told those of the item at home.
func TestHandOverOfDetails(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	g.use(g.moved(time.Hour))
	home, old := g.at(0), g.at(1)
	a, b := g.clients()
	for _, key := range []string{"a", "b", "c"} {
		old.ask("set "+key+" 7 300 1\r\n4\r\n", "STORED\r\n")
	}
	if got := a.tell("mg a t f\r\n"); got < "HD t290" || got > "HD t300 f7" || !strings.HasSuffix(got, " f7") {
		t.Errorf("the time that is left is %q", got)
	}
	for i, key := range []string{"b", "c"} {
		a.send([]string{"gets b\r\n", "gets none c\r\n"}[i])
		_, cas, _ := strings.Cut(a.line(), "VALUE "+key+" 7 1 ")
		a.want("4\r\nEND\r\n")
		b.ask("cas "+key+" 8 300 1 "+cas+"\r\n5\r\n", "STORED\r\n")
		home.ask("get "+key+"\r\n", value(key, 8, "5")+"END\r\n")
		old.none(key)
	}
	old.ask("set d 7 300 1\r\n4\r\n", "STORED\r\n")
	b.ask("cas d 0 0 1 1\r\n5\r\n", "EXISTS\r\n") // it is there, but not that one
	b.ask("add new 0 0 1\r\n5\r\nms newer 1 ME\r\n5\r\n", "STORED\r\nHD\r\n")
	home.ask("get new newer\r\n", hit("new", "5")+hit("newer", "5")+"END\r\n")
	b.ask("me none\r\nincr none 1\r\nappend none 0 0 1\r\nx\r\ntouch none 1\r\n", "EN\r\nNOT_FOUND\r\nNOT_STORED\r\nNOT_FOUND\r\n")
	b.ask("gets none\r\ncas none 0 0 1 1\r\n5\r\ngat 1 none nothing\r\nmg none k t O1\r\n", "END\r\nNOT_FOUND\r\nEND\r\nEN knone O1\r\n")
}

// Items of any key and size are handed over; those without end stay so, those that are
// stale do not come back to life.
func TestHandOverOfOddItems(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	g.use(g.moved(time.Hour))
	home, old := g.at(0), g.at(1)
	a, b := g.clients()
	big := strings.Repeat("v", 200_000)
	old.ask("ms AAEg/w== 3 b F9 T300\r\n\r\n\x00\r\n", "HD\r\n")
	old.ask(set("big", big)+set("bigger", big)+set("ever", "x"), "STORED\r\nSTORED\r\nSTORED\r\n")
	a.ask("mg AAEg/w== b v f k\r\n", "VA 3 f9 kAAEg/w== b\r\n\r\n\x00\r\n")
	home.gains("AAEg/w== b")
	home.ask("mg AAEg/w== b v f\r\n", "VA 3 f9\r\n\r\n\x00\r\n")
	old.ask("ms AAEi 1 b F9\r\n1\r\n", "HD\r\n")
	b.ask("ma AAEi b v\r\n", "VA 1\r\n2\r\n")
	home.ask("mg AAEi b f t\r\n", "HD f9 t-1\r\n")
	old.ask("mg AAEi b\r\n", "EN\r\n")
	a.ask("get big\r\nget big\r\nappend bigger 0 0 1\r\n!\r\n", strings.Repeat(hit("big", big)+"END\r\n", 2)+"STORED\r\n")
	home.ask("get bigger\r\n", hit("bigger", big+"!")+"END\r\n")
	b.ask("mg ever t v\r\n", "VA 1 t-1\r\nx\r\n")
	old.ask("set stale 0 0 1\r\nx\r\nmd stale I T300\r\nset stale2 0 0 1\r\nx\r\nmd stale2 I T300\r\n", "STORED\r\nHD\r\nSTORED\r\nHD\r\n")
	a.ask("append stale 0 0 1\r\ny\r\n", "NOT_STORED\r\n")
	if got := a.tell("mg stale2 v f\r\n"); !strings.HasPrefix(got, "VA 1 f0 ") || !strings.Contains(got, "X") {
		t.Errorf("a stale item is told as %q", got)
	}
	a.want("x\r\n")
	home.none("stale")
	a.ask("get sync\r\n", "END\r\n") // a copy would be there by now
	home.none("stale2")
}

// Where a key lived before may be another hash's matter: all that asks and cleans there goes by
// that one.
func TestMovedByAnotherHash(t *testing.T) {
	t.Parallel()
	g := newRig(t, 4, config{})
	table := g.well()
	last := router.Placement{Picker: modulo(4), Hash: func(key []byte) uint64 { return uint64(key[0] - '0') }}
	table.Before, table.Until, table.After = last, time.Now().Add(time.Hour), []router.Placement{last}
	g.use(table)
	c, _ := g.clients()
	for i := 1; i < 4; i++ {
		k := fmt.Sprint(i)
		old := dial(t, g.addrs[i])
		for _, f := range []struct{ request, reply string }{
			{"get " + k + "\r\n", hit(k, "7") + "END\r\n"},
			{"get " + k + " x\r\n", hit(k, "7") + "END\r\n"},
			{"mg " + k + " v t\r\n", "VA 1 t-1\r\n7\r\n"},
			{"incr " + k + " 1\r\n", "8\r\n"},
			{"add " + k + " 0 0 1\r\n1\r\n", "NOT_STORED\r\n"},
			{set(k, "8"), "STORED\r\n"},
		} {
			c.ask("delete "+k+"\r\n", map[bool]string{true: "NOT_FOUND\r\n", false: "DELETED\r\n"}[f.request == "get "+k+"\r\n"])
			old.ask(set(k, "7"), "STORED\r\n")
			c.ask(f.request, f.reply)
		}
		old.none(k)
	}
}

// Writes remove what is left where the key was, and also where it will be.
func TestWritesAroundMoves(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	table := g.moved(time.Hour)
	table.After = after(order{2})
	g.use(table)
	a, b := g.clients()
	for _, w := range []struct{ request, reply, after string }{
		{set("k", "5"), "STORED\r\n", hit("k", "5") + "END\r\n"},
		{"delete k\r\n", "DELETED\r\n", "END\r\n"},
		{"delete k\r\n", "NOT_FOUND\r\n", "END\r\n"},
		{"set k 0 -1 1\r\n5\r\n", "STORED\r\n", "END\r\n"},
		{set("k", "5"), "STORED\r\n", hit("k", "5") + "END\r\n"},
		{"md k\r\n", "HD\r\n", "END\r\n"},
		{"md k\r\n", "NF\r\n", "END\r\n"},
		{"ms k 1\r\n5\r\n", "HD\r\n", hit("k", "5") + "END\r\n"},
		{"incr k 1\r\n", "6\r\n", hit("k", "6") + "END\r\n"},
	} {
		g.at(1).ask(set("k", "old"), "STORED\r\n")
		g.at(2).ask(set("k", "old"), "STORED\r\n")
		a.ask(w.request, w.reply)
		g.at(1).none("k")
		g.at(2).none("k")
		b.ask("get k\r\n", w.after)
	}
}

// A server that cannot be reached is not asked for what it had: that is a miss. Writes do
// not wait for it, and it has missed them.
func TestHandOverFromServerDown(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	g.at(1).ask(set("k", "old"), "STORED\r\n")
	g.proxies[1].Set(refuse)
	g.use(g.moved(time.Hour))
	a, b := g.clients()
	for _, c := range []*client{a, b} {
		c.ask("get k\r\nget k none\r\ngets k\r\nincr k 1\r\nmg k v k\r\n", "END\r\nEND\r\nEND\r\nNOT_FOUND\r\nEN kk\r\n")
	}
	a.ask("set k2 0 0 1\r\n5\r\nget k2\r\n", "STORED\r\n"+hit("k2", "5")+"END\r\n")
	if got := g.witness.heard(); !slices.Equal(got, []string{"n1 k2"}) {
		t.Errorf("membership was told of %q", got)
	}
	g.proxies[1].Set(pass)
	g.until("the server is back", func(s router.Snapshot) bool { return s.Servers[g.addrs[1]].Up == 2 })
	b.ask("get k\r\nget k2\r\n", "END\r\n"+hit("k2", "5")+"END\r\n") // it is not trusted while keys are handed over
}

// The hand-over ends by itself.
func TestHandOverEnds(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	old := g.at(1)
	old.ask(set("first", "x")+set("last", "x"), "STORED\r\nSTORED\r\n")
	until := time.Now().Add(3 * time.Second)
	table := g.moved(0)
	table.Until = until
	g.use(table)
	a, _ := g.clients()
	a.ask("get first\r\n", hit("first", "x")+"END\r\n")
	for time.Now().Before(until) {
		a.ask("get none\r\n", "END\r\n")
	}
	a.ask("get last\r\ngets last\r\ntouch last 0\r\nget last none\r\n", "END\r\nEND\r\nNOT_FOUND\r\nEND\r\n")
	a.ask(set("last", "y"), "STORED\r\n")
	old.ask("get last\r\n", hit("last", "x")+"END\r\n") // it is left alone now
}

// Requests of one client on one key are done in their order, though the first has to ask
// more than one server.
func TestOrderOfPipelinedRequests(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	home, next := g.at(0), g.at(1)
	a, b := g.clients()
	const all = "get k\r\nset k 0 0 1\r\n2\r\nget k\r\nappend k 0 0 1\r\n3\r\nget k k\r\ndelete k\r\nget k\r\ngets k\r\nincr k 1\r\n"
	answers := func(first string) string {
		return first + "STORED\r\n" + hit("k", "2") + "END\r\nSTORED\r\n" + hit("k", "23") + hit("k", "23") + "END\r\nDELETED\r\nEND\r\nEND\r\nNOT_FOUND\r\n"
	}
	for i, c := range []*client{a, b, a, b} {
		g.use(g.moved(time.Hour))
		next.ask(set("k", "1"), "STORED\r\n")
		c.ask(all, answers(hit("k", "1")+"END\r\n"))
		home.none("k")
		next.none("k")

		g.use(g.with(readNext))
		home.ask(set("k", "1"), "STORED\r\n")
		if i > 1 {
			next.ask(set("k", "1"), "STORED\r\n") // with a copy, and without
		}
		c.ask(all, answers(hit("k", "1")+"END\r\n"))
		home.none("k")
		next.none("k")

		g.use(g.with([]router.Server{away, returning, away, returning}[i]))
		home.ask(set("k", "old"), "STORED\r\n")
		next.ask(set("k", "1"), "STORED\r\n")
		c.ask(all, answers(hit("k", "1")+"END\r\n"))
		next.none("k")
		home.send("delete k\r\n")
		home.line()
	}
}

// Clients of the binary protocol are served alike.
func TestBinaryAroundFailures(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	home, next := g.at(0), g.at(1)
	a, _ := g.clients()
	// answers reads one answer and returns its status and value.
	answer := func(request string) (status int, data string) {
		t.Helper()
		a.send(request)
		head := make([]byte, 24)
		for i := range head {
			b, err := a.r.ReadByte()
			if err != nil {
				t.Fatal(err)
			}
			head[i] = b
		}
		body := make([]byte, int(head[10])<<8|int(head[11]))
		for i := range body {
			body[i], _ = a.r.ReadByte()
		}
		return int(head[7]), string(body[int(head[4])+int(head[3]):])
	}
	f := func(request string, status int, data string) {
		t.Helper()
		if s, d := answer(request); s != status || d != data {
			t.Errorf("%q is answered status %d and %q, want %d and %q", request, s, d, status, data)
		}
	}
	extras := func(op memproto.Opcode, extras, key, data string) string {
		p := []byte(packet(op, len(extras), key, data))
		copy(p[24:], extras)
		return string(p)
	}
	g.use(g.moved(time.Hour))
	for _, key := range []string{"get", "append", "touch", "gat", "a key"} {
		wire := key
		if key == "a key" {
			wire = "YSBrZXk="
			next.ask("ms "+wire+" 1 b F7 T300\r\n4\r\n", "HD\r\n")
			continue
		}
		next.ask("set "+key+" 7 300 1\r\n4\r\n", "STORED\r\n")
	}
	next.ask("set incr 7 300 1\r\n4\r\n", "STORED\r\n")
	f(packet(memproto.OpGet, 0, "get", ""), 0, "4")
	f(packet(memproto.OpGet, 0, "a key", ""), 0, "4")
	f(packet(memproto.OpAppend, 0, "append", "5"), 0, "")
	f(extras(memproto.OpIncrement, "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff", "incr", ""), 0, "\x00\x00\x00\x00\x00\x00\x00\x05")
	f(extras(memproto.OpTouch, "\x00\x00\x01\x00", "touch", ""), 0, "")
	f(extras(memproto.OpGetAndTouch, "\x00\x00\x01\x00", "gat", ""), 0, "4")
	home.ask("get get append incr touch gat\r\n",
		value("get", 7, "4")+value("append", 7, "45")+value("incr", 7, "5")+value("touch", 7, "4")+value("gat", 7, "4")+"END\r\n")
	f(packet(memproto.OpSet, 8, "get", "6"), 0, "")
	next.none("get")
	f(packet(memproto.OpDelete, 0, "a key", ""), 0, "")
	next.ask("mg YSBrZXk= b\r\n", "EN\r\n")

	g.use(g.with(away))
	f(extras(memproto.OpSet, "\x00\x00\x00\x07\x00\x00\x00\x00", "k", "5"), 0, "")
	if left := next.ttl("k"); left < 1 || left > 60 {
		t.Errorf("what was set in place of a server that is away lives for %d s", left)
	}
	f(packet(memproto.OpGet, 0, "k", ""), 0, "5")
	if got := g.witness.heard(); !slices.Equal(got, []string{"n0 k"}) {
		t.Errorf("membership was told of %q", got)
	}
	g.use(g.with(unreachable))
	if status, data := answer(packet(memproto.OpSet, 8, "k", "6")); status == 0 {
		t.Errorf("a write that must not be done is answered status %d, %q", status, data)
	}
	f(packet(memproto.OpGet, 0, "k", ""), 0, "5")
}
