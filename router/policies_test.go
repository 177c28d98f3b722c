package router_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/internal/memcachedtest"
	"cacherouter/memproto"
	"cacherouter/router"
)

// routed is a router of one pool with one server, with routes.
type routed struct {
	*running
	client *client
	server *client // the server itself
}

func startRouted(t testing.TB, cfg config, routes ...router.Route) *routed {
	t.Helper()
	s := memcachedtest.Start(t, memcachedtest.Steady...)
	cfg.Routes = routes
	for i := range cfg.Routes {
		if !cfg.Routes[i].Deny {
			cfg.Routes[i].Pool = "p"
		}
	}
	cfg.Pool.Name, cfg.Pool.Table, cfg.Pool.MaxValue = "p", table(s.Addr()), 100_000
	r := launch(t, cfg, time.Hour)
	return &routed{r, dial(t, r.addr), dial(t, s.Addr())}
}

func TestDenied(t *testing.T) {
	r := startRouted(t, config{}, router.Route{}, router.Route{Prefix: "secret:", Deny: true})
	c := r.client
	c.ask(set("open", "1"), "STORED\r\n")
	const no = "SERVER_ERROR route denies key\r\n"
	for _, request := range []string{"get secret:1\r\n", "get open secret:1\r\n", set("secret:1", "x"), "mg secret:1 v q\r\n", "gat 1 secret:1\r\n", "delete secret:1\r\n"} {
		c.ask(request+"get open\r\n", no+hit("open", "1")+"END\r\n")
	}
	c.ask("set secret:1 0 0 1 noreply\r\nx\r\nget open\r\n", hit("open", "1")+"END\r\n")
	r.server.none("secret:1")
	if n := r.total().Denied; n != 7 {
		t.Errorf("%d requests were denied", n)
	}
}

func TestReadOnly(t *testing.T) {
	r := startRouted(t, config{}, router.Route{ReadOnly: true}, router.Route{Prefix: "w:"})
	r.server.ask(set("k", "4"), "STORED\r\n")
	c := r.client
	const no = "SERVER_ERROR route is read only\r\n"
	for _, w := range anyWrites {
		c.ask(strings.ReplaceAll(w.request, "CAS", "1"), no)
	}
	for _, request := range []string{"gat 1 k\r\n", "gats 1 k k\r\n", "mg k N30 v\r\n", "md k I\r\n", "set k 0 0 1\r\nx\r\n"} {
		c.ask(request, no)
	}
	c.ask("get k\r\nmg k v\r\nget k none\r\n", hit("k", "4")+"END\r\nVA 1\r\n4\r\n"+hit("k", "4")+"END\r\n")
	c.ask(set("w:1", "x"), "STORED\r\n")
	c.ask(set("k", strings.Repeat("x", 200_000)), "SERVER_ERROR object too large for cache\r\n")
	r.server.ask("get k\r\n", hit("k", "4")+"END\r\n") // not even dropped for a value that is too large
}

func TestLifeIsBounded(t *testing.T) {
	r := startRouted(t, config{}, router.Route{MaxTTL: time.Minute}, router.Route{Prefix: "long:"})
	c := r.client
	f := func(request, reply, key string, least, most int) {
		t.Helper()
		c.ask(request, reply)
		if left := r.server.ttl(key); left < least || left > most {
			t.Errorf("%q leaves %s %d s", request, key, left)
		}
	}
	f(set("k", "v"), "STORED\r\n", "k", 30, 60)
	f("set k 0 10 1\r\nv\r\n", "STORED\r\n", "k", 1, 10)
	f("set k 0 100000 1 noreply\r\nv\r\nmn\r\n", "MN\r\n", "k", 30, 60)
	f("touch k 0\r\n", "TOUCHED\r\n", "k", 30, 60)
	f("gat 1000 k\r\n", hit("k", "v")+"END\r\n", "k", 30, 60)
	f("gat 1000 k k\r\n", hit("k", "v")+hit("k", "v")+"END\r\n", "k", 30, 60)
	f("ms k 1\r\nx\r\n", "HD\r\n", "k", 30, 60)
	f("mg k T9999\r\n", "HD\r\n", "k", 30, 60)
	f(set("long:k", "v"), "STORED\r\n", "long:k", -1, -1)
}

// What servers call another name comes back under the client's.
func TestRenamed(t *testing.T) {
	for name, cfg := range map[string]config{"alone": {}, "sharing": {Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}} {
		t.Run(name, func(t *testing.T) {
			r := startRouted(t, cfg, router.Route{}, router.Route{Prefix: "old:", Strip: true}, router.Route{Prefix: "new:", Add: "v2:"}, router.Route{Prefix: "swap:", Strip: true, Add: "for:"})
			c, s := r.client, r.server
			for own, theirs := range map[string]string{"old:k": "k", "new:k": "v2:new:k", "swap:k": "for:k"} {
				c.ask(set(own, "val"), "STORED\r\n")
				s.ask("get "+theirs+"\r\n", hit(theirs, "val")+"END\r\n")
				c.ask("get "+own+"\r\n", hit(own, "val")+"END\r\n")
				c.ask("get none "+own+" "+own+"\r\n", hit(own, "val")+hit(own, "val")+"END\r\n")
				c.ask("mg "+own+" v k\r\n", "VA 3 k"+own+"\r\nval\r\n")
				c.ask("append "+own+" 0 0 1 noreply\r\n!\r\nmg "+own+" v Okk q\r\n", "VA 4 Okk\r\nval!\r\n")
				c.ask("gat 100 "+own+"\r\n", hit(own, "val!")+"END\r\n")
				if left := s.ttl(theirs); left < 50 {
					t.Errorf("%s has %d s left", theirs, left)
				}
				if got := c.tell("me " + own + "\r\n"); !strings.HasPrefix(got, "ME "+own+" exp=") {
					t.Errorf("me tells %q", got)
				}
				c.ask(set(own, strings.Repeat("x", 200_000)), "SERVER_ERROR object too large for cache\r\n")
				s.none(theirs)
				c.ask("get "+own+"\r\nmg "+own+"\r\ndelete "+own+"\r\n", "END\r\nEN\r\nNOT_FOUND\r\n")
			}
			c.ask("mg b2xkOms= b k v\r\n", "EN kb2xkOms= b\r\n") // old:k
			c.ask("ms b2xkOms= 2 b k\r\nhi\r\n", "HD kb2xkOms= b\r\n")
			s.ask("get k\r\n", hit("k", "hi")+"END\r\n")
			for _, bad := range []string{"get old:\r\n", "get old: old:k\r\n", "get new:" + strings.Repeat("x", 245) + "\r\n", "mg old:\r\n"} {
				c.ask(bad, "CLIENT_ERROR bad command line format\r\n")
			}
			c.ask("get old:k\r\n", hit("old:k", "hi")+"END\r\n")
		})
	}
}

// binaryReply reads one answer: its status and its body.
func binaryReply(c *client) (status uint16, body string) {
	c.t.Helper()
	head := make([]byte, 24)
	if _, err := io.ReadFull(c.r, head); err != nil {
		c.t.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint32(head[8:]))
	if _, err := io.ReadFull(c.r, b); err != nil {
		c.t.Fatal(err)
	}
	return binary.BigEndian.Uint16(head[6:]), string(b)
}

// So it does in the binary protocol.
func TestRenamedInBinary(t *testing.T) {
	r := startRouted(t, config{}, router.Route{Prefix: "old:", Strip: true, MaxTTL: time.Minute}, router.Route{Prefix: "no:", Deny: true}, router.Route{Prefix: "ro:", ReadOnly: true})
	c := r.client
	c.send(packet(memproto.OpSet, 8, "old:k", "val"))
	if status, _ := binaryReply(c); status != 0 {
		t.Errorf("set: status %#x", status)
	}
	if left := r.server.ttl("k"); left < 30 || left > 60 {
		t.Errorf("k has %d s left", left)
	}
	c.send(packet(memproto.OpGetK, 0, "old:k", ""))
	if status, body := binaryReply(c); status != 0 || !strings.HasSuffix(body, "old:kval") {
		t.Errorf("getk: status %#x, %q", status, body)
	}
	for _, refused := range []string{packet(memproto.OpGet, 0, "no:k", ""), packet(memproto.OpSet, 8, "ro:k", "x"), packet(memproto.OpGet, 0, "none", "")} {
		c.send(refused)
		if status, body := binaryReply(c); status != uint16(memproto.CodeTemporary) || !strings.Contains(body, "route") {
			t.Errorf("status %#x, %q", status, body)
		}
	}
	c.send(packet(memproto.OpGet, 0, "old:", ""))
	if status, _ := binaryReply(c); status == 0 {
		t.Error("an empty key is found")
	}
}

// Renamed and bounded requests allocate nothing either.
func TestPoliciesDoNotAllocate(t *testing.T) {
	r := startRouted(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}, router.Route{Prefix: "user:", Strip: true, Add: "u:", MaxTTL: time.Hour}, router.Route{MaxTTL: time.Hour})
	fillHot(r.client)
	for _, h := range hotPaths() {
		h.reply = strings.ReplaceAll(h.reply, "t-1", "t3600")
		if h.name == "meta" {
			h.request, h.reply = strings.ReplaceAll(h.request, " t ", " "), strings.ReplaceAll(h.reply, " t3600", "")
		}
		wantAllocations(t, r.client, h, 400, 4)
	}
}

// A pool that sees the requests of another gets its writes and reads, and changes nothing for
// the client: not when it answers otherwise, nor when it does not answer.
func TestShadow(t *testing.T) {
	cfg := config{}
	cfg.Loops = 1
	cfg.Routes = []router.Route{{Prefix: "in:", Strip: true, Pool: "a", Shadow: router.Split{Pool: "b", Share: 1}}, {Pool: "a", Shadow: router.Split{Pool: "b", Share: 0.5}}}
	p := startPools(t, cfg, memcachedtest.Steady...)
	c := dial(t, p.addr)
	shadows := func() (n uint64) {
		for _, pool := range p.total().Pools {
			n += pool.Shadowed
		}
		return n
	}
	for i := range 200 {
		c.ask(set(fmt.Sprint("key", i), "v"), "STORED\r\n")
	}
	if n := shadows(); n < 60 || n > 140 {
		t.Errorf("%d of 200 requests have a shadow", n)
	}
	for i := range 5 {
		c.ask(set(fmt.Sprint("in:", i), "v"), "STORED\r\n")
	}
	p.until("the shadow pool has what it saw", func(router.Snapshot) bool { return has(p.b) == int(shadows()) })
	for _, s := range p.b {
		dial(t, s.Addr()).ask("flush_all\r\n", "OK\r\n")
	}
	before := shadows()
	c.ask("get in:1\r\nget in:1 in:2 in:none\r\n", hit("in:1", "v")+"END\r\n"+hit("in:1", "v")+hit("in:2", "v")+"END\r\n")
	c.ask("delete in:1\r\nincr in:9 1\r\n", "DELETED\r\nNOT_FOUND\r\n")
	if n := shadows() - before; n != 6 {
		t.Errorf("%d requests have a shadow, want 6", n)
	}
	for _, s := range p.b {
		s.Stop()
	}
	for i := range 50 {
		c.ask(fmt.Sprintf("get in:%d\r\n", 2+i%3), hit(fmt.Sprint("in:", 2+i%3), "v")+"END\r\n")
	}
	p.until("the shadows have faded", func(s router.Snapshot) bool { return s.Failed >= 50 })
}

// What a pool answers to the reads that it sees is compared, by any protocol and in company, and
// the log tells of it without keys.
func TestShadowIsCompared(t *testing.T) {
	var log memcachedtest.Output
	cfg := config{}
	cfg.Loops, cfg.Log = 1, slog.New(slog.NewTextHandler(&log, nil))
	cfg.Routes = []router.Route{{Pool: "a", Shadow: router.Split{Pool: "b", Share: 1}, Compare: true}}
	p := startPools(t, cfg, memcachedtest.Steady...)
	c := dial(t, p.addr)
	at := func(servers []*memcachedtest.Server, requests string) { // wherever the key is
		t.Helper()
		for _, s := range servers {
			d := dial(t, s.Addr())
			d.send(requests + "mn\r\n")
			d.lines("MN")
		}
	}
	for _, k := range []string{"same", "other", "flags", "less", "more"} {
		at(p.a, set(k, "v"))
		at(p.b, set(k, "v"))
	}
	at(p.b, set("other", "w")+"set flags 1 0 1\r\nv\r\ndelete less\r\n")
	at(p.a, "delete more\r\n")
	compared := func() (n [router.NumComparisons]uint64) {
		for _, pool := range p.total().Pools {
			for i := range n {
				n[i] += pool.Compared[i]
			}
		}
		return n
	}
	var want [router.NumComparisons]uint64
	f := func(request string, results ...router.Comparison) {
		t.Helper()
		c.send(request + "mn\r\n")
		c.lines("MN")
		for _, r := range results {
			want[r]++
		}
		p.until(fmt.Sprintf("%q is compared", request), func(router.Snapshot) bool { return compared() == want })
	}
	f("get same\r\n", router.Equal)
	f("get none\r\n", router.Equal)
	f("get other\r\n", router.Different)
	f("gets flags\r\n", router.Different)
	f("mg flags v f\r\n", router.Different)
	f("mg flags v\r\n", router.Equal)
	f("mg less\r\n", router.Missing)
	f("get more\r\n", router.Surplus)
	f("get same other less more none flags\r\n", router.Equal, router.Different, router.Missing, router.Surplus, router.Equal, router.Different)
	f(set("less", "v")+"touch same 0\r\ngat 0 same\r\nget less\r\n", router.Equal)
	for _, s := range p.b {
		s.Stop()
	}
	f("get same\r\nget same less\r\n", router.Uncompared, router.Uncompared, router.Uncompared)
	if lines := strings.Count(log.String(), "shadow differs"); lines == 0 || uint64(lines) > want[router.Different]+want[router.Missing]+want[router.Surplus]-2 {
		t.Errorf("%d lines tell of what differs", lines)
	}
	if l := log.String(); !strings.Contains(l, "pool=b from=a how=different hash=") || strings.Contains(l, "other") {
		t.Errorf("the log says %s", l)
	}
}

// Comparing allocates nothing but for more reads outstanding than there ever were, of which there
// are not more than 1024 of a loop, with some five objects each.
func TestComparingDoesNotAllocate(t *testing.T) {
	cfg := config{}
	cfg.Routes = []router.Route{{Pool: "a", Shadow: router.Split{Pool: "b", Share: 1}, Compare: true}}
	p := startPools(t, cfg, memcachedtest.Steady...)
	c := dial(t, p.addr)
	fillHot(c)
	for _, h := range hotPaths() {
		wantAllocations(t, c, h, 400, 6000)
	}
}
