package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/balance"
	"cacherouter/internal/memcachedtest"
	"cacherouter/membership"
	"cacherouter/router"

	"github.com/google/go-cmp/cmp"
)

// What cannot be is refused, with the file, the line, the field and the reason.
func TestBadLoadSaysWhereAndWhat(t *testing.T) {
	const head = "pool:\n  servers: [h:1, h:2, h:3]\n"
	f := func(text string, want ...string) {
		t.Helper()
		file := writeConfig(t, text)
		status, out, errs := command("check", "--config", file)
		if status != 1 || out != "" {
			t.Errorf("%q: status %d, %q", text, status, out)
		}
		for _, w := range append(want, file) {
			if !strings.Contains(errs, w) {
				t.Errorf("%q: %q does not say %q", text, errs, w)
			}
		}
	}
	bound, copies := head+"  bound:\n    ", head+"  copies:\n    "
	f(bound+"factor: 0.99\n", "line 4", "pool: bound: factor", "0.99", "below 1")
	f(bound+"factor: -1\n", "line 4", "factor")
	f(bound+"factor: .nan\n", "line 4", "factor", "NaN")
	f(bound+"factor: .inf\n", "line 4", "factor", "Inf")
	f(bound+"floor: 0\n", "line 4", "pool: bound: floor", "less than 1")
	f(bound+"depth: 3\n", "line 4", "pool: bound: depth", "3 servers have 2 candidates after the home")
	f(bound+"depth: 7\n", "line 4", "depth", "not between 0 and 6")
	f(bound+"depth: -1\n", "line 4", "depth", "-1")
	f(bound+"spill: cold\n", "line 4", "pool: bound: spill", `"cold"`, "none, hot and any")
	f(bound+"spill: hot\n  hot: {enabled: false}\n", "line 4", "spill", "hot.enabled is false")
	f(bound+"nonsense: 1\n", "line 4", "nonsense")
	f(copies+"number: 4\n", "line 4", "pool: copies: number", "4 copies", "there are 3")
	f(copies+"number: 0\n", "line 4", "number", "not between 1 and 7")
	f(copies+"number: 8\n", "line 4", "number", "not between 1 and 7")
	f(copies+"balance: fastest\n", "line 4", "pool: copies: balance", `"fastest"`, "p2c", "reported")
	f(copies+"answer: never\n", "line 4", "pool: copies: answer", `"never"`, "all", "home")
	f("pool:\n  servers: [h:1]\n  bound: {depth: 1}\n", "line 3", "depth", "1 servers have 0 candidates")
}

// What is given arrives in the table.
func TestLoadArrives(t *testing.T) {
	c, err := loadConfig(writeConfig(t, `
pool:
  servers: [h:1, h:2@3, h:3, h:4]
  bound: {spill: any, factor: 1.5, floor: 4, depth: 3}
  copies: {number: 3, balance: peak_ewma, answer: home}
`))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := c.Pool.fixedTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	if tab.Spill != router.SpillAny || tab.Bound.Depth() != 3 || tab.Bound.Cap(0) != 4 || tab.Copies != 3 || tab.Balance.Policy != balance.PeakEWMA {
		t.Errorf("table %+v, depth %d, floor %d", tab.Table, tab.Bound.Depth(), tab.Bound.Cap(0))
	}
	tab.Bound.Add(0, 60)
	if got, want := tab.Bound.Cap(1), 46; got != want { // 1.5 * 61 * 3/6, rounded up
		t.Errorf("a server with half of the weight may have %d units of 61, want %d", got, want)
	}
	if err := tab.Balance.Validate(); err != nil {
		t.Error(err)
	}
}

// The smallest pools do without what they cannot have.
func TestLoadOfSmallPools(t *testing.T) {
	f := func(n int, bound boundConfig, copies, wantDepth, wantCopies int) {
		t.Helper()
		p := defaultConfig().Pool
		p.Bound, p.Copies.Number = bound, copies
		tab := &router.Table{Servers: make([]router.Server, n+1)} // the last one holds no keys
		weights := make([]int, n+1)
		for i := range n {
			weights[i] = 1
		}
		if err := p.spread(tab, nil, weights, nil); err != nil {
			t.Errorf("%d servers: %v", n, err)
			return
		}
		if tab.Bound.Depth() != wantDepth || tab.Copies != wantCopies {
			t.Errorf("%d servers: depth %d, %d copies; want %d and %d", n, tab.Bound.Depth(), tab.Copies, wantDepth, wantCopies)
		}
	}
	b := defaultBound()
	f(1, b, 1, 0, 1)
	f(2, b, 1, 1, 1)
	f(3, b, 1, 2, 1)
	f(9, b, 1, 2, 1)
	b.Depth = 5
	f(3, b, 1, 2, 1)
	f(9, b, 7, 5, 7)
	f(1, b, 3, 0, 1)
	f(2, b, 3, 1, 2)
}

// Where the world has too few servers for the copies, there are fewer, and it is said once.
func TestTooFewServersForCopies(t *testing.T) {
	p := newPlacer(t, "rendezvous")
	p.pool.Copies.Number = 3
	var log bytes.Buffer
	m := &members{placer: p, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, names := range [][]string{{"a", "b"}, {"a", "c"}, {"a"}, {"a", "b", "c"}, {"a", "b", "c", "d"}} {
		tab := mustTable(t, p, &membership.State{Servers: servers(names...)})
		if want := min(3, len(names)); tab.Copies != want {
			t.Errorf("%d copies on %v, want %d", tab.Copies, names, want)
		}
		m.sayLacks(tab)
	}
	said := log.String()
	if strings.Count(said, "level=WARN") != 2 || strings.Count(said, "\n") != 3 || !strings.Contains(said, "copies=2 wanted=3") || !strings.Contains(said, "copies=1 wanted=3") {
		t.Errorf("it is said: %s", said)
	}
}

// What is in flight stays counted when servers come, go and are used otherwise.
func TestBoundsFollowServers(t *testing.T) {
	p := newPlacer(t, "rendezvous")
	first := mustTable(t, p, &membership.State{Servers: servers("a", "b", "c")})
	first.Bound.Add(1, 7) // b
	second := mustTable(t, p, &membership.State{Servers: servers("0", "b", "c", "d")})
	got := make(map[string]int)
	for i, s := range second.Servers {
		got[s.Name] = second.Bound.InFlight(i)
	}
	if diff := cmp.Diff(map[string]int{"0": 0, "b": 7, "c": 0, "d": 0}, got); diff != "" {
		t.Errorf("in flight (-want +got):\n%s", diff)
	}
	moved := servers("b", "c", "d")
	moved[0].Address = "elsewhere:1"
	third := mustTable(t, p, &membership.State{Servers: moved})
	if n := third.Bound.InFlight(0); n != 0 {
		t.Errorf("a server at another address has %d units in flight", n)
	}
	first.Bound.Release(1, 7)
	if n := second.Bound.InFlight(1) + third.Bound.Total(); n != 0 {
		t.Errorf("%d units are left", n)
	}
}

// A server that is new gets a part of what is read from others.
func TestSharesBecomeWeights(t *testing.T) {
	p := newPlacer(t, "rendezvous")
	p.pool.Copies.Number = 2
	now := servers("a", "b", "c")
	now[1].Weight, now[2].Share = 3, 100
	now[0].Share, now[1].Share = 1000, 1000
	tab := mustTable(t, p, &membership.State{Servers: now})
	if diff := cmp.Diff([]int{20, 60, 2}, tab.Balance.Weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// Only servers that are read from are asked for their load, and only where that counts.
func TestWhoIsAskedForItsLoad(t *testing.T) {
	f := func(change func(*router.Table), want string) {
		t.Helper()
		tab := &router.Table{Servers: []router.Server{{Name: "a", Address: "h:1"}, {Name: "b", Address: "h:2"}}, Copies: 2}
		tab.Balance.Policy = balance.Reported
		change(tab)
		if got := fmt.Sprint(reporting(tab)); got != want {
			t.Errorf("asked: %s, want %s", got, want)
		}
	}
	f(func(*router.Table) {}, "[{a h:1} {b h:2}]")
	f(func(t *router.Table) { t.Servers[0].Reads = router.ReadNext }, "[{b h:2}]")
	f(func(t *router.Table) { t.Copies = 1 }, "[]")
	f(func(t *router.Table) { t.Balance.Policy = balance.P2C }, "[]")
}

// A router that balances by reports asks real servers for them.
func TestReportedBalance(t *testing.T) {
	s := memcachedtest.StartN(t, 2)
	c, err := loadConfig(writeConfig(t, fmt.Sprintf("pool:\n  servers: [%q, %q]\n  copies: {number: 2, balance: reported}\n", s[0].Addr(), s[1].Addr())))
	if err != nil {
		t.Fatal(err)
	}
	c.Listen, c.Admin, c.Loops = []listenerConfig{{Address: "127.0.0.1:0"}}, "", 1
	c.Membership.Enabled = false
	var log bytes.Buffer
	srv := &server{cfg: c, log: slog.New(slog.NewTextHandler(&log, nil))}
	if ended, err := srv.start(); ended || err != nil {
		t.Fatalf("ended %v, %v", ended, err)
	}
	r := srv.router
	at := *srv.pools()[0].pool.Load().Table()
	at.Balance.Blackout = 0 // they are believed at once
	srv.pools()[0].pool.Load().SetTable(&at)
	ctx := t.Context()
	done := make(chan struct{}, 2)
	go func() { r.Run(ctx); done <- struct{}{} }()
	go func() { srv.pools()[0].meter.Run(ctx); done <- struct{}{} }()
	t.Cleanup(func() { <-done; <-done })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Serve(ln, router.Listen{}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", ln.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buf := make([]byte, 100)
	for deadline := time.Now().Add(time.Minute); ; {
		conn.Write([]byte("get k\r\n")) // a server that does nothing reports nothing
		if _, err := conn.Read(buf); err != nil {
			t.Fatal(err)
		}
		snaps, err := r.Snapshots(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if router.Total(snaps).Believed == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the servers' reports never count: %s", log.String())
		}
		<-time.After(5 * time.Millisecond)
	}
}
