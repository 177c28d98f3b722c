package router_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/balance"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// copied returns a table of servers in good health with n copies of each item.
func (g *rig) copied(n int, policy string) *router.Table {
	t := g.well()
	t.Copies, t.Balance = n, balance.Default(ones(len(g.addrs)))
	t.Balance.Policy = policy
	return t
}

// newCopiesRig is a rig of n servers, all of which have copies.
func newCopiesRig(t testing.TB, n int, policy string, cfg config) *rig {
	t.Helper()
	g := newRig(t, n, cfg)
	g.use(g.copied(n, policy))
	return g
}

// item returns what a server answers to a get of a key, without its end.
func (c *client) item(key string) string {
	c.t.Helper()
	c.send("get " + key + "\r\n")
	lines := c.lines("END")
	return strings.Join(lines[:len(lines)-1], "\n")
}

// A write of a whole item is on all copies when it is answered.
func TestSetsReachAllCopies(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 3, balance.RoundRobin, config{})
	a, b := g.clients()
	large := strings.Repeat("v", 100_000) // travels on another connection
	for i, w := range []struct{ request, reply, item string }{
		{"set k 7 0 1\r\n1\r\n", "STORED", "VALUE k 7 1\n1"},
		{"set k 7 500 1\r\n2\r\n", "STORED", "VALUE k 7 1\n2"},
		{"replace k 8 3 1\r\n3\r\n", "STORED", "VALUE k 8 1\n3"},
		{"cas k 9 0 1 CAS\r\n4\r\n", "STORED", "VALUE k 9 1\n4"},
		{"ms k 2 T100 F5 O1 k\r\n55\r\n", "HD O1 kk", "VALUE k 5 2\n55"},
		{"add other 6 0 1\r\n6\r\n", "STORED", "VALUE other 6 1\n6"},
		{"set k 1 0 " + fmt.Sprint(len(large)) + "\r\n" + large + "\r\n", "STORED", "VALUE k 1 " + fmt.Sprint(len(large)) + "\n" + large},
	} {
		a.send("gets k\r\n")
		lines := a.lines("END")
		cas := lines[0][strings.LastIndexByte(lines[0], ' ')+1:]
		if got := a.tell(strings.Replace(w.request, "CAS", cas, 1)); got != w.reply {
			t.Fatalf("%.80q is answered %q", w.request, got)
		}
		key := strings.Fields(w.item)[1]
		for s := range g.servers {
			if got := g.at(s).item(key); got != w.item {
				t.Errorf("after %.40q server %d has %.80q", w.request, s, got)
			}
			if s > 0 {
				if ttl := g.at(s).ttl(key); ttl < 1 || ttl > 10 || i == 2 && ttl > 3 {
					t.Errorf("after %.40q the copy on server %d lives for %d s", w.request, s, ttl)
				}
			}
		}
		for range 2 * len(g.servers) {
			if got := b.item(key); got != w.item {
				t.Errorf("after %.40q a read gets %.80q", w.request, got)
			}
		}
	}
	if ttl := g.at(0).ttl("other"); ttl != -1 {
		t.Errorf("home's own item lives for %d s", ttl)
	}
}

// After any write each copy is as the item at home, or away.
func TestWritesKeepCopiesAlike(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 3, balance.RoundRobin, config{})
	a, b := g.clients()
	for _, w := range append(anyWrites, struct{ request, reply string }{"ms k 1 I\r\n5\r\n", "HD"}) {
		a.ask("set k 7 500 1\r\n4\r\n", "STORED\r\n")
		a.send("gets k\r\n")
		cas := strings.Fields(a.lines("END")[0])[4]
		if got := a.tell(strings.Replace(w.request, "CAS", cas, 1)); got != w.reply {
			t.Errorf("%q is answered %q", w.request, got)
		}
		want := g.at(0).item("k")
		for s := range g.servers {
			if got := g.at(s).item("k"); got != want && got != "" {
				t.Errorf("after %q server %d has %q, home %q", w.request, s, got, want)
			}
		}
		for range 2 * len(g.servers) {
			if got := b.item("k"); got != want {
				t.Errorf("after %q a read gets %q, home has %q", w.request, got, want)
			}
		}
	}
}

// A write that is answered when home has it is read there until the copies have it too.
func TestAnswerBeforeCopies(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 2, balance.RoundRobin, config{Pool: router.PoolConfig{AnswerEarly: true}})
	a, b := g.clients()
	a.ask(set("k", "old"), "STORED\r\n")
	g.at(1).gains("k")
	g.until("the copy is made", func(s router.Snapshot) bool { return s.Servers[g.addrs[1]].InFlight == 0 })
	g.proxies[1].Set(memcachedtest.Stall)
	a.ask(set("k", "new"), "STORED\r\n")
	for _, c := range []*client{a, b, a, b} {
		c.ask("get k\r\n", hit("k", "new")+"END\r\n")
	}
	b.ask("delete k\r\n", "DELETED\r\n")
	for _, c := range []*client{a, b, a, b} {
		c.ask("get k\r\n", "END\r\n")
	}
	a.ask(set("k", "newer"), "STORED\r\n")
	g.proxies[1].Set(memcachedtest.Pass)
	calls := g.calls(1)
	g.until("copies are read again", func(router.Snapshot) bool {
		b.ask("get k\r\n", hit("k", "newer")+"END\r\n")
		return g.calls(1) > calls+8 // more than what cleans up and copies
	})
}

// What one copy has lost comes back from another, whichever it is; the client never sees it.
func TestLostCopiesAreRepaired(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 2, balance.RoundRobin, config{})
	a, b := g.clients()
	a.ask("set k 7 500 1\r\nv\r\nset k2 8 0 1\r\nw\r\n", "STORED\r\nSTORED\r\n")
	for _, wiped := range []int{1, 0, 1} {
		g.at(wiped).ask("flush_all\r\n", "OK\r\n")
		for _, c := range []*client{a, b, a, b} {
			c.ask("get k\r\n", value("k", 7, "v")+"END\r\n")
			c.ask("get none k2\r\n", value("k2", 8, "w")+"END\r\n") // three keys, of two servers: each has each once
		}
		for _, key := range []string{"k", "k2"} {
			g.at(wiped).gains(key)
			if ttl := g.at(wiped).ttl(key); ttl < 1 || ttl > 10 {
				t.Errorf("%s is repaired on server %d for %d s", key, wiped, ttl)
			}
		}
	}
	a.ask("get none\r\n", "END\r\n")
}

// Copies that repair each other do not keep an item alive that has expired, though one
// server counts its seconds from the middle of the other's.
func TestCopiesExpire(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 2, balance.RoundRobin, config{})
	g.servers[0].Restart()
	<-time.After(500 * time.Millisecond)
	g.servers[1].Restart()
	g.until("they are found up", func(s router.Snapshot) bool {
		return s.Servers[g.addrs[0]].Up == 2 && s.Servers[g.addrs[1]].Up == 2
	})
	c, _ := g.clients()
	set := time.Now()
	c.ask("set k 0 2 1\r\nv\r\n", "STORED\r\n")
	for c.item("k") != "" {
		if age := time.Since(set); age > 8*time.Second {
			t.Fatalf("an item with 2 s to live is there after %v", age)
		}
	}
	t.Logf("an item with 2 s to live was gone after %v", time.Since(set))
}

// Writes of one key on two loops at once leave all copies the same, or none.
func TestOverlappingWritesOfCopies(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 3, balance.RoundRobin, config{})
	a, b := g.clients()
	direct := []*client{g.at(0), g.at(1), g.at(2)}
	same := 0
	for i := range 500 {
		x, y := fmt.Sprint("a", i), fmt.Sprint("b", i)
		switch i % 5 {
		case 3:
			a.send("delete k\r\n")
		case 4:
			a.send("append k 0 0 1\r\n+\r\n")
		default:
			a.send(set("k", x))
		}
		b.ask(set("k", y), "STORED\r\n")
		a.line()
		want := direct[0].item("k")
		for s, d := range direct[1:] {
			switch got := d.item("k"); got {
			case want:
				same++
			case "":
			default:
				t.Fatalf("round %d: server %d has %q, home %q", i, s+1, got, want)
			}
		}
	}
	t.Logf("of 1000 copies %d were kept", same)
}

// A copy's server that is down costs a read nothing and a write little, and is not read
// when it comes back, until all that it may have missed has expired.
func TestCopyDown(t *testing.T) {
	t.Parallel()
	g := newCopiesRig(t, 2, balance.RoundRobin, config{})
	a, b := g.clients()
	a.ask(set("k", "old"), "STORED\r\n")
	g.proxies[1].Set(memcachedtest.Refuse)
	g.until("it is found down", func(s router.Snapshot) bool { return s.Servers[g.addrs[1]].Up == 0 })
	for _, c := range []*client{a, b, a, b} {
		c.ask("get k\r\nget k k\r\n", hit("k", "old")+"END\r\n"+hit("k", "old")+hit("k", "old")+"END\r\n")
	}
	a.ask(set("k", "new"), "STORED\r\n")
	g.proxies[1].Set(memcachedtest.Pass)
	g.at(1).ask("get k\r\n", hit("k", "old")+"END\r\n")
	g.until("it is found up", func(s router.Snapshot) bool { return s.Servers[g.addrs[1]].Up == 2 })
	for _, c := range []*client{a, b, a, b} {
		c.ask("get k\r\nget k none\r\n", hit("k", "new")+"END\r\n"+hit("k", "new")+"END\r\n")
	}
	if n := g.total().Uncleaned; n != 1 {
		t.Errorf("%d copies were not stored, want 1", n)
	}
}

// Reads are spread as the policy says, those of many keys as well.
func TestPoliciesSpreadReads(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	a, b := g.clients()
	even := [3]float64{1. / 3, 1. / 3, 1. / 3}
	for _, p := range []struct {
		policy    string
		share     [3]float64
		tolerance float64
	}{
		{balance.RoundRobin, even, 0.02},
		{balance.WeightedRoundRobin, [3]float64{0.6, 0.2, 0.2}, 0.02},
		{balance.EDF, [3]float64{0.6, 0.2, 0.2}, 0.02},
		{balance.Random, even, 0.12},
		{balance.LeastRequest, [3]float64{0.6, 0.2, 0.2}, 0.41}, // one at a time is no load to go by
		{balance.WeightedLeastRequest, [3]float64{0.6, 0.2, 0.2}, 0.05},
		{balance.P2C, [3]float64{2. / 3, 1. / 6, 1. / 6}, 0.12},
		{balance.PeakEWMA, even, 0.34},
		{balance.Reported, [3]float64{0.2, 0.6, 0.2}, 0.02},
	} {
		table := g.copied(3, p.policy)
		table.Balance.Weights, table.Balance.Blackout, table.Balance.Update = []int{3, 1, 1}, 0, 1
		table.Bound = newBound(t, 3)
		g.use(table)
		for i, qps := range []float64{1000, 3000, 1000} {
			g.Report(fmt.Sprint("n", i), balance.Report{QPS: qps, Utilization: 0.5})
		}
		a.ask(set("k", "v"), "STORED\r\n")
		var before [3]int
		for i, s := range g.servers {
			before[i] = s.Stat("cmd_get")
		}
		const rounds = 75
		for range rounds {
			for _, c := range []*client{a, b} {
				c.ask("get k\r\nget k k\r\n", hit("k", "v")+"END\r\n"+hit("k", "v")+hit("k", "v")+"END\r\n")
			}
		}
		for i, s := range g.servers {
			got := float64(s.Stat("cmd_get")-before[i]) / (rounds * 6)
			if !(math.Abs(got-p.share[i]) <= p.tolerance) {
				t.Errorf("%s: server %d has %.3f of the reads, want %.3f +- %.2f", p.policy, i, got, p.share[i], p.tolerance)
			}
		}
		g.idle(table.Bound)
	}
}

// Reads go around a server that is slow, by the policies that see it.
func TestPoliciesSeeSlowServer(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	g.at(0).ask(set("k", "v"), "STORED\r\n")
	g.at(1).ask(set("k", "v"), "STORED\r\n")
	g.at(2).ask(set("k", "v"), "STORED\r\n")
	g.proxies[1].Set(memcachedtest.Delay)
	for _, policy := range []string{balance.LeastRequest, balance.P2C, balance.PeakEWMA} {
		table := g.copied(3, policy)
		table.Bound = newBound(t, 3)
		g.use(table)
		before := g.calls(1)
		const clients, each = 8, 50
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
		wg.Wait()
		if n := g.calls(1) - before; n < 1 || n > clients*each/4 {
			t.Errorf("%s: %d of %d reads went to the slow server", policy, n, clients*each)
		}
		g.idle(table.Bound)
	}
}

// What is known of servers outlasts a table that says the same of them, and only that.
func TestReportsOutlastTables(t *testing.T) {
	t.Parallel()
	g := newRig(t, 2, config{})
	believed := func(want int) {
		t.Helper()
		if got := g.total().Believed; got != want {
			t.Errorf("the reports of %d servers count, want %d", got, want)
		}
	}
	reported := func() *router.Table {
		table := g.copied(2, balance.Reported)
		table.Balance.Blackout = 0
		return table
	}
	first := reported()
	first.Bound = newBound(t, 2)
	g.use(first)
	believed(0)
	report := balance.Report{QPS: 1000, Utilization: 0.5}
	g.Report("n0", report)
	g.Report("n1", report)
	g.Report("nobody", report)
	g.Report("n1", balance.Report{}) // tells nothing
	believed(2)
	g.ForgetReports("n0")
	believed(1)
	g.Report("n0", report)
	next, err := first.Bound.Next(newConfig(2), []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	second := reported()
	second.Bound, second.Servers[1].Moved = next, true
	g.use(second)
	believed(2)
	for _, change := range []func(*router.Table){
		func(t *router.Table) { t.Bound = nil },
		func(t *router.Table) { t.Balance.Weights = []int{1, 2} },
		func(t *router.Table) { t.Balance.ErrorPenalty = 2 },
		func(t *router.Table) { t.Servers[0].Name = "new" },
	} {
		g.use(second)
		g.Report("n0", report)
		g.Report("n1", report)
		believed(2)
		table := *second
		table.Servers = append([]router.Server(nil), second.Servers...)
		change(&table)
		g.use(&table)
		believed(0)
	}
	g.use(g.copied(2, balance.P2C))
	g.Report("n0", report)
	believed(0)
	g.use(g.well())
	g.Report("n0", report)
	believed(0)
}
