package router_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/balance"
	"cacherouter/bounded"
	"cacherouter/coalesce"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// What is in flight when the table changes stays counted, wherever its server stands then.
func TestChargesOutlastTables(t *testing.T) {
	t.Parallel()
	g, b := newBoundRig(t, 3, router.SpillAny, config{})
	a, _ := g.clients()
	g.proxies[0].Set(memcachedtest.Stall)
	g.proxies[1].Set(memcachedtest.Stall)
	a.send("get k\r\nget k\r\n" + set("large", strings.Repeat("v", 40<<10)))
	g.flights(b, 0, 2+3)
	empty := brim(b, 0)
	other := dial(t, g.addr)
	other.send("get k\r\n")
	g.flights(b, 1, 1)
	empty()
	// Server 0 stands last now, server 1 is gone, and one is new.
	fresh := memcachedtest.Start(t)
	table := table(fresh.Addr(), g.addrs[2], g.addrs[0])
	table.Servers[1].Name, table.Servers[2].Name = "n2", "n0"
	table.Servers[0].Name = "new"
	next, err := b.Next(newConfig(3), []int{-1, 2, 0})
	if err != nil {
		t.Fatal(err)
	}
	table.Picker, table.Bound, table.Spill = order{0, 1, 2}, next, router.SpillAny
	g.use(table)
	if next.InFlight(0) != 0 || next.InFlight(1) != 0 || next.InFlight(2) != 5 || next.Total() != 6 {
		t.Errorf("%d, %d and %d units in flight, %d in all; want 0, 0, 5 and 6", next.InFlight(0), next.InFlight(1), next.InFlight(2), next.Total())
	}
	g.proxies[1].Set(memcachedtest.Pass)
	g.proxies[0].Set(memcachedtest.Pass)
	a.want("END\r\nEND\r\nSTORED\r\n")
	other.lines("END")
	g.idle(next)
	g.idle(b)
}

// The one server of a pool that fails is not charged for what it cannot do.
func TestFailuresOfOnlyServerAreNotCharged(t *testing.T) {
	t.Parallel()
	g := newRig(t, 1, config{})
	table := g.well()
	table.Bound, table.Spill = newBound(t, 1), router.SpillAny
	g.use(table)
	g.proxies[0].Set(memcachedtest.Refuse)
	g.until("it is found down", func(s router.Snapshot) bool { return s.Servers[g.addrs[0]].Up == 0 })
	a, _ := g.clients()
	for _, request := range []string{"get k\r\n", "gets k\r\n", "mg k v\r\n", "get k k\r\n", "gat 1 k\r\n", set("k", "v"), "delete k\r\n", "incr k 1\r\n"} {
		if got := a.tell(request); !strings.HasPrefix(got, "SERVER_ERROR") {
			t.Errorf("%q is answered %q", request, got)
		}
		if n := table.Bound.Total(); n != 0 {
			t.Errorf("after %q %d units are in flight", request, n)
		}
	}
}

// disturb does to a fleet what a bad day would, until done.
func (g *rig) disturb(copies int, first *bounded.Bound, done <-chan struct{}) (last *bounded.Bound) {
	g.t.Helper()
	faults := []memcachedtest.Fault{memcachedtest.Reset, memcachedtest.Stall, memcachedtest.Garbage, memcachedtest.Refuse, memcachedtest.Truncate}
	uses := []router.Server{{}, {Reads: router.ReadNext}, {Reads: router.ReadNext, Writes: router.WriteNext, Clean: true}, {Moved: true}, {Reads: router.ReadNext, Writes: router.WriteNowhere}}
	last = first
	for i := 0; ; i++ {
		p := g.proxies[i%len(g.proxies)]
		p.Set(faults[i%len(faults)])
		table := g.with(uses[i%len(uses)])
		if copies > 1 {
			table.Copies, table.Balance = copies, balance.Default(ones(len(g.addrs)))
		}
		if i%3 == 0 {
			table.Before, table.Until = before(order{1}), time.Now().Add(time.Hour)
		}
		next, err := last.Next(newTight(len(g.addrs)), []int{0, 1, 2, 3})
		if err != nil {
			g.t.Error(err)
			return last
		}
		last, table.Bound, table.Spill = next, next, router.SpillAny
		g.SetTable(table)
		<-time.After(20 * time.Millisecond)
		p.Set(memcachedtest.Pass)
		select {
		case <-done:
			return last
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// newTight lets reads spill often.
func newTight(servers int) bounded.Config {
	return bounded.Config{Weights: ones(servers), PerMille: 1000, Floor: 1, Depth: 2}
}

// trouble asks anything, some of it for no answer, and hangs up now and then.
func trouble(g *rig, seed uint64, done <-chan struct{}) {
	r := rand.New(rand.NewPCG(seed, 1))
	requests := []func(k string) string{
		func(k string) string { return "get " + k + "\r\n" },
		func(k string) string { return "gets " + k + "\r\n" },
		func(k string) string { return "mg " + k + " v f k\r\n" },
		func(k string) string { return "get " + k + " none " + k + " more\r\n" },
		func(k string) string { return "gat 100 " + k + " none\r\n" },
		func(k string) string { return set(k, "1") },
		func(k string) string { return set(k, strings.Repeat("v", 50_000)) },
		func(k string) string { return "add " + k + " 0 0 1 noreply\r\n1\r\n" },
		func(k string) string { return "incr " + k + " 1\r\n" },
		func(k string) string { return "delete " + k + "\r\n" },
		func(k string) string { return "touch " + k + " 100\r\n" },
	}
	c := dial(g.t, g.addr)
	go io.Copy(io.Discard, c.nc)
	for {
		select {
		case <-done:
			c.nc.Close()
			return
		case <-time.After(time.Duration(r.IntN(4)) * time.Millisecond):
		}
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteString(requests[r.IntN(len(requests))](fmt.Sprint("k", r.IntN(1000))))
		}
		_, err := io.WriteString(c.nc, b.String())
		if err != nil || r.IntN(20) == 0 {
			c.nc.Close()
			c = dial(g.t, g.addr)
			go io.Copy(io.Discard, c.nc)
		}
	}
}

// Nothing stays charged when all is over: not after errors, timeouts, clients that hang up,
// redirects, retries, multigets or changes of the table.
func TestNothingStaysCharged(t *testing.T) {
	for _, copies := range []int{1, 2} {
		t.Run(fmt.Sprintf("copies=%d", copies), func(t *testing.T) {
			t.Parallel()
			g := newRig(t, 4, config{Pool: router.PoolConfig{Timeout: 100 * time.Millisecond, Coalesce: &coalesce.Config{}}})
			first, err := bounded.New(newTight(4))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var clients sync.WaitGroup
			for i := range uint64(6) {
				clients.Go(func() { trouble(g, i, done) })
			}
			time.AfterFunc(2*time.Second, func() { close(done) })
			last := g.disturb(copies, first, done)
			clients.Wait()
			for _, p := range g.proxies {
				p.Set(memcachedtest.Pass)
			}
			g.until("all clients are gone", func(s router.Snapshot) bool { return s.Sessions == 0 })
			g.idle(last)
			st := g.total()
			if st.Failed == 0 || copies == 1 && st.Redirected+st.Spilled == 0 || copies == 2 && st.Spread == 0 {
				t.Errorf("it was not bad enough: failed %d, redirected %d, spilled %d, spread %d", st.Failed, st.Redirected, st.Spilled, st.Spread)
			}
		})
	}
}

// The bound and copies allocate nothing, be there room or not. Writes that wait for a copy
// of their key that is on its way are left out: they may.
func TestChargesDoNotAllocate(t *testing.T) {
	for _, copies := range []int{1, 2} {
		t.Run(fmt.Sprintf("copies=%d", copies), func(t *testing.T) {
			g := newRig(t, 3, config{})
			table := g.copied(copies, balance.P2C)
			table.Bound, table.Spill = newBound(t, 3), router.SpillAny
			g.use(table)
			c, _ := g.clients()
			fillHot(c)
			full := func(on bool) {
				if on {
					t.Cleanup(brim(table.Bound, 0))
				}
			}
			for _, spilled := range []bool{false, true} {
				full(spilled)
				for _, h := range hotPaths() {
					if (spilled || copies > 1) && h.name == "pipelined" {
						continue
					}
					if n := leastAllocated(t, c, h, 60); n > 5 {
						t.Errorf("spilled=%v: %s: %d allocations in 60 requests", spilled, h.name, n)
					}
				}
			}
			if st := g.total(); copies == 1 && st.Spilled == 0 || copies == 2 && st.Spread == 0 {
				t.Errorf("%d reads were spilled, and %d copies stored", st.Spilled, st.Spread)
			}
		})
	}
}

// leastAllocated returns how often this process allocates during n requests, at the least
// of several times.
func leastAllocated(t *testing.T, c *client, h hotPath, n int) uint64 {
	t.Helper()
	request, buf := []byte(h.request), make([]byte, len(h.reply))
	if err := repeat(c.nc, request, buf, 20); err != nil || string(buf) != h.reply {
		t.Fatalf("%s: %v, answered %.100q", h.name, err, buf)
	}
	best := ^uint64(0)
	for range 3 { // another test's leftovers may be counted once, not always
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := repeat(c.nc, request, buf, n); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	return best
}
