package router_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"cacherouter/memproto"
	"cacherouter/quota"
	"cacherouter/router"
)

// few is a rate of which no test lives to see more than the burst.
func few(burst int) quota.Config { return quota.Config{Rate: 0.001, Burst: burst} }

// use returns what has become of the only quota.
func (r *running) use() router.QuotaUse {
	r.t.Helper()
	all := r.Quotas()
	if len(all) != 1 {
		r.t.Fatalf("%d quotas: %+v", len(all), all)
	}
	return all[0]
}

// dialFrom is dial from an address.
func dialFrom(t *testing.T, from, addr string) *client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

const routeTooFast = "SERVER_ERROR route is over its rate\r\n"

// What is beyond a route's rate is refused whatever it is asked with, in its turn, and not done;
// other routes, and the connection, go on.
func TestRateOfARoute(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		cfg.Routes = []router.Route{{Prefix: "a:", Pool: "a", Quota: few(4)}, {Prefix: "b:", Pool: "b"}}
		p := startPools(t, cfg)
		c, d := dial(t, p.addr), dial(t, p.addr)
		c.ask(set("a:1", "old")+"get a:1\r\n", "STORED\r\n"+hit("a:1", "old")+"END\r\n")
		d.ask("mg a:1 v\r\nget a:2\r\n", "VA 3\r\nold\r\nEND\r\n")
		for _, c := range []*client{c, d} {
			for _, request := range []string{
				"get a:1\r\n", "gets a:1\r\n", "gat 1 a:1\r\n", "get a:1 b:1\r\n", "get b:1 b:2 a:3\r\n", "mg a:1 v\r\n", "mg a:1 v q\r\n", "md a:1 q\r\n",
				set("a:1", "new"), "delete a:1\r\n", "incr a:1 1\r\n", "touch a:1 1\r\n", "ms a:1 3\r\nnew\r\n",
			} {
				c.ask(request+"get b:1\r\n", routeTooFast+"END\r\n")
			}
			c.ask("set a:1 0 0 3 noreply\r\nnew\r\ndelete a:1 noreply\r\nget b:1\r\n", "END\r\n")
		}
		if u := p.use(); u.TooFast != 30 || u.TooMany != 0 || u.Route != "a:" || u.Listener != "" {
			t.Errorf("%+v, want 30 refused", u)
		}
		b := dial(t, p.addr)
		b.send(packet(memproto.OpGet, 0, "a:1", "") + packet(memproto.OpNoop, 0, "", ""))
		if got := (form{binary: true}).answer(b); !strings.Contains(got, "route is over its rate") {
			t.Errorf("a binary get is answered %s", got)
		}
		if got := p.total(); got.Denied != 0 || got.OverQuota != 31 {
			t.Errorf("%d are counted as denied, %d as over the quota", got.Denied, got.OverQuota)
		}
		items := 0
		for _, s := range p.a {
			if got := dial(t, s.Addr()).tell("mg a:1 s\r\n"); got == "HD s3" {
				items++
			}
		}
		if items != 1 {
			t.Error("the item is not the old one")
		}
	})
}

// A value that is too large leaves no old one, quota or not.
func TestQuotaKeepsNoOldValue(t *testing.T) {
	cfg := config{Pool: router.PoolConfig{MaxValue: 10}}
	cfg.Routes = []router.Route{{Quota: few(1)}}
	r := start(t, cfg, addresses(t, 1)...)
	c := dial(t, r.addr)
	c.ask(set("k", "old")+"get k\r\n", "STORED\r\n"+routeTooFast)
	c.ask(set("k", strings.Repeat("v", 11)), "SERVER_ERROR object too large for cache\r\n")
	if got := dial(t, r.Pool.Table().Servers[0].Address).tell("mg k\r\n"); got != "EN" {
		t.Errorf("the old value is there: %s", got)
	}
}

// A multiget is charged by its keys, and refused as a whole or not at all.
func TestRateOfMultigets(t *testing.T) {
	cfg := config{}
	cfg.Routes = []router.Route{{Prefix: "a:", Pool: "a", Quota: few(5)}, {Pool: "b"}}
	p := startPools(t, cfg)
	c := dial(t, p.addr)
	c.ask("get a:1 x a:2 y a:3\r\n", "END\r\n")
	c.ask("get a:1 a:2 a:3 a:4\r\n", "END\r\n") // begins within the rate
	c.ask("get x a:1\r\nget a:1\r\nget x\r\n", routeTooFast+routeTooFast+"END\r\n")
	if u := p.use(); u.TooFast != 2 {
		t.Errorf("%+v, want 2 refused", u)
	}
}

// So many requests of a route may be under way, and no more, until they are over.
func TestConcurrentOfARoute(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		const tooMany = "SERVER_ERROR route has too many requests in flight\r\n"
		cfg.Routes = []router.Route{{Prefix: "a", Quota: quota.Config{Concurrent: 2}}, {}}
		f := listen(t)
		r := start(t, cfg, f.addr())
		s := f.accept()
		a, b, c := dial(t, r.addr), dial(t, r.addr), dial(t, r.addr)
		a.send("get a1\r\n")
		s.want("get a1\r\n")
		b.send("get a2 a3\r\n") // counts once
		s.want("get a2 a3\r\n")
		c.ask("get a4\r\nget a5 a6\r\nset a7 0 0 1\r\nx\r\n", strings.Repeat(tooMany, 3))
		c.send("get x\r\n")
		s.want("get x\r\n")
		if u := r.use(); u.UnderWay != 2 || u.TooMany != 3 || u.TooFast != 0 {
			t.Errorf("%+v, want 2 under way and 3 refused", u)
		}
		a.nc.SetLinger(0)
		a.nc.Close() // the server still works for it
		r.until("the client is gone", func(s router.Snapshot) bool { return s.Sessions == 2 })
		dial(t, r.addr).ask("get a8\r\n", tooMany)
		s.send("END\r\n")
		r.until("it is over", func(router.Snapshot) bool { return r.use().UnderWay == 1 })
		s.send("END\r\nEND\r\n")
		b.want("END\r\n")
		c.want("END\r\n")
		if u := r.use(); u.UnderWay != 0 {
			t.Errorf("%+v, want none under way", u)
		}
	})
}

// Clients of a network share its quota; the longest prefix decides, and where each address has
// its own nobody uses up another's.
func TestQuotasOfNetworks(t *testing.T) {
	const tooFast = "SERVER_ERROR network is over its rate\r\n"
	cfg := config{}
	cfg.Loops = 2
	cfg.Clients = []router.ClientQuota{
		{Network: netip.MustParsePrefix("127.0.0.0/8"), Quota: few(4)},
		{Network: netip.MustParsePrefix("127.0.2.0/24"), Quota: few(3), Each: true},
		{Network: netip.MustParsePrefix("127.0.3.0/24")},
	}
	r := start(t, cfg, addresses(t, 1)...)
	a, b := dialFrom(t, "127.0.0.1", r.addr), dialFrom(t, "127.0.0.2", r.addr)
	a.ask("get x\r\nget x y\r\n", "END\r\nEND\r\n")
	b.ask("get x\r\n"+set("x", "v")+"get x y\r\nversion\r\n", "END\r\n"+tooFast+tooFast+"VERSION 1.6.18\r\n")
	for _, from := range []string{"127.0.2.1", "127.0.2.2"} {
		for range 2 { // a client that comes again is still known
			dialFrom(t, from, r.addr).ask("get x\r\n", "END\r\n")
		}
		dialFrom(t, from, r.addr).ask("get x\r\nget x\r\n", "END\r\n"+tooFast)
	}
	dialFrom(t, "127.0.3.1", r.addr).ask(strings.Repeat("get x\r\n", 20), strings.Repeat("END\r\n", 20))
	refused := make(map[string]uint64)
	for _, u := range r.Quotas() {
		refused[u.Network] = u.TooFast
	}
	if len(refused) != 2 || refused["127.0.0.0/8"] != 2 || refused["127.0.2.0/24"] != 2 {
		t.Errorf("refused: %v", refused)
	}
}

// An address is forgotten when it has no clients, and nothing of its quota is used.
func TestAddressesAreForgotten(t *testing.T) {
	cfg := config{}
	cfg.Clients = []router.ClientQuota{{Network: netip.MustParsePrefix("127.0.0.0/8"), Quota: quota.Config{Rate: quota.MaxRate}, Each: true}}
	r := start(t, cfg, addresses(t, 1)...)
	stays := dialFrom(t, "127.0.0.200", r.addr)
	for i := range 150 {
		c := dialFrom(t, fmt.Sprint("127.0.0.", i+1), r.addr)
		c.ask("get x\r\n", "END\r\n")
		c.nc.Close()
		r.until("it is gone", func(s router.Snapshot) bool { return s.Sessions == 1 })
		if n := router.Guests(r.Router); n > 65 {
			t.Fatalf("%d addresses are remembered", n)
		}
	}
	stays.ask("get x\r\n", "END\r\n")
}

// What a client has under way is counted by its network until it is over.
func TestConcurrentOfANetwork(t *testing.T) {
	const tooMany = "SERVER_ERROR network has too many requests in flight\r\n"
	cfg := config{}
	cfg.Clients = []router.ClientQuota{{Network: netip.MustParsePrefix("127.0.0.0/8"), Quota: quota.Config{Concurrent: 2}, Each: true}}
	f := listen(t)
	r := start(t, cfg, f.addr())
	s := f.accept()
	a, b := dial(t, r.addr), dial(t, r.addr)
	a.send("get a\r\nget b c\r\nget d\r\n")
	s.want("get a\r\nget b c\r\n")
	b.ask("get e\r\nget f g\r\n", tooMany+tooMany)
	dialFrom(t, "127.0.0.9", r.addr).send("get h\r\n")
	s.want("get h\r\n")
	if u := r.use(); u.UnderWay != 3 || u.TooMany != 3 {
		t.Errorf("%+v, want 3 under way and 3 refused", u)
	}
	a.nc.SetLinger(0)
	a.nc.Close()
	r.until("the client is gone", func(s router.Snapshot) bool { return s.Sessions == 2 })
	b.ask("get e\r\n", tooMany)
	s.send("END\r\nEND\r\nEND\r\n")
	r.until("all are over", func(router.Snapshot) bool { return r.use().UnderWay == 0 })
}

// Whatever becomes of requests and their clients, quotas get back what they have given.
func TestQuotasGetAllBack(t *testing.T) {
	cfg := config{}
	cfg.Loops = 2
	cfg.Routes = []router.Route{{Prefix: "a", Quota: quota.Config{Concurrent: 1 << 20}}, {}}
	cfg.Clients = []router.ClientQuota{{Network: netip.MustParsePrefix("127.0.0.0/8"), Quota: quota.Config{Concurrent: 1 << 20}}}
	r := start(t, cfg, addresses(t, 2)...)
	value := strings.Repeat("v", 10_000)
	c := dial(t, r.addr)
	c.ask(set("a1", value), "STORED\r\n")
	keys := strings.Repeat(" a1 n2 n3 an4 n5", 200)
	for i := range 21 {
		c := dial(t, r.addr)
		c.send("get a1\r\n" + set("a9", "x") + "delete a9 noreply\r\nget" + keys + "\r\nmg a3 v q\r\nget" + keys + "\r\nget a4\r\n")
		if i%3 > 0 {
			c.want(hit("a1", value) + "END\r\n")
		}
		if i%3 > 1 {
			c.want("STORED\r\n" + hit("a1", value))
		}
		c.nc.SetLinger(0)
		c.nc.Close()
	}
	c.ask("get a1\r\n", hit("a1", value)+"END\r\n")
	r.until("nothing is under way", func(s router.Snapshot) bool {
		for _, u := range r.Quotas() {
			if u.UnderWay != 0 {
				return false
			}
		}
		return s.Sessions == 1
	})
}

func TestBadQuotas(t *testing.T) {
	f := func(want string, cfg config) {
		t.Helper()
		cfg.Pool.Table = table("127.0.0.1:1")
		if _, err := cfg.router(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	local := netip.MustParsePrefix("127.0.0.0/8")
	f("a burst of -1", config{Config: router.Config{Routes: []router.Route{{Quota: quota.Config{Rate: 1, Burst: -1}}}}})
	f("network 127.0.0.0/8: a rate of -1", config{Config: router.Config{Clients: []router.ClientQuota{{Network: local, Quota: quota.Config{Rate: -1}}}}})
	f("two quotas for network", config{Config: router.Config{Clients: []router.ClientQuota{{Network: local}, {Network: local}}}})
	f("is no network", config{Config: router.Config{Clients: []router.ClientQuota{{Network: netip.PrefixFrom(netip.MustParseAddr("127.0.0.1"), 8)}}}})
}

// With quotas, too, requests allocate nothing.
func TestQuotasDoNotAllocate(t *testing.T) {
	cfg := config{}
	cfg.Routes = []router.Route{{Quota: quota.Config{Rate: quota.MaxRate, Burst: 1 << 20, Concurrent: 1000}}}
	cfg.Clients = []router.ClientQuota{{Network: netip.MustParsePrefix("127.0.0.0/8"), Quota: quota.Config{Rate: quota.MaxRate, Burst: 1 << 20, Concurrent: 1000}}}
	c := dial(t, start(t, cfg, addresses(t, 1)...).addr)
	fillHot(c)
	for _, h := range hotPaths() {
		wantAllocations(t, c, h, 400, 4)
	}
}
