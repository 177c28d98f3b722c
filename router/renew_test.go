package router_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/internal/memcachedtest"
	"cacherouter/refresh"
	"cacherouter/router"
)

// due renews whatever has less than 200 s left: here, what is stored for 100.
var due = refresh.Config{Before: 200 * time.Second}

// setFor stores a value for some seconds.
func setFor(key, value string, seconds int) string {
	return fmt.Sprintf("set %s 0 %d %d\r\n%s\r\n", key, seconds, len(value), value)
}

// misses asks for a value by one client after the other, and returns who sees a miss.
func misses(clients []*client, request, key, value string) (who []*client) {
	for _, c := range clients {
		c.send(request)
		lines := c.lines("END")
		switch {
		case len(lines) == 1:
			who = append(who, c)
		case len(lines) != 3 || lines[1] != value || !strings.HasPrefix(lines[0], "VALUE "+key+" 0 "):
			c.t.Errorf("%q is answered %q", request, lines)
		}
	}
	return who
}

// Of the classic clients one sees a miss when a value nears its end, with leases or without,
// and the others the old value; the new one is shown to all.
func TestOneClientRenews(t *testing.T) {
	for name, lease := range map[string]*coalesce.LeaseConfig{"alone": nil, "with leases": {Duration: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			near := longNear
			c := config{Config: router.Config{Loops: 2}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Refresh: due, Lease: lease, HotKeys: soon(), Near: &near}}
			r := start(t, c, addresses(t, 1)...)
			clients := crowd(t, r.addr, 10)
			for _, request := range []string{"get k\r\n", "gets k\r\n"} {
				clients[0].ask(setFor("k", "old", 100), "STORED\r\n")
				r.heat(clients[0], "k", "get k\r\n", "END") // one of which wins
				clients[0].ask(setFor("k", "old", 100), "STORED\r\n")
				who := misses(clients, request, "k", "old")
				if len(who) != 1 {
					t.Fatalf("%q: %d clients see a miss", request, len(who))
				}
				if n := len(misses(clients, request, "k", "old")); n > 0 {
					t.Errorf("%d clients see a miss while one renews", n)
				}
				who[0].ask(setFor("k", "new", 1000), "STORED\r\n")
				for range 3 {
					if n := len(misses(clients, request, "k", "new")); n > 0 {
						t.Errorf("%d clients miss the new value", n)
					}
				}
				clients[0].ask(set("ever", "e"), "STORED\r\n")
				if n := len(misses(clients, "get ever\r\n", "ever", "e")); n > 0 {
					t.Errorf("%d clients renew what does not expire", n)
				}
			}
		})
	}
}

// Of those who wait for one reply it is the first whose client is still there.
func TestOneOfAFlightRenews(t *testing.T) {
	s := startStalled(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Refresh: due}})
	clients := crowd(t, s.addr, 10)
	clients[0].ask(setFor("k", "old", 1000), "STORED\r\n")
	before := s.total()
	release := s.behind("k")
	dial(t, s.server.Addr()).ask(setFor("k", "old", 100), "STORED\r\n")
	for i, c := range clients {
		c.send([]string{"get k\r\n", "gets k\r\n"}[i%2])
		s.asked(i+2, before)
	}
	clients[0].nc.SetLinger(0)
	clients[0].nc.Close()
	s.until("one has left", func(s router.Snapshot) bool { return s.Sessions == 10 })
	release()
	clients[1].want("END\r\n")
	for _, c := range clients[2:] {
		if lines := c.lines("END"); len(lines) != 3 || lines[1] != "old" {
			t.Errorf("a get is answered %q", lines)
		}
	}
}

// What meta clients are told is what memcached tells them.
func TestMetaClientsRenewThemselves(t *testing.T) {
	server := memcachedtest.Start(t)
	r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Refresh: due}}, server.Addr())
	c := dial(t, r.addr)
	c.ask(setFor("k", "v", 100), "STORED\r\n")
	c.ask("mg k v\r\nmg k v R30\r\nmg k v R200\r\nmg k v\r\n", "VA 1\r\nv\r\nVA 1\r\nv\r\nVA 1 W\r\nv\r\nVA 1 Z\r\nv\r\n")
	c.ask("get k\r\n", hit("k", "v")+"END\r\n") // somebody has won
	c.ask(setFor("k", "w", 100)+"get k\r\nget k\r\n", "STORED\r\nEND\r\n"+hit("k", "w")+"END\r\n")
	c.ask("md k I\r\nget k\r\nget k\r\nmg k v\r\n", "HD\r\nEND\r\n"+hit("k", "w")+"END\r\nVA 1 Z X\r\nw\r\n")
}

// all fills across routers as well.
var all = refresh.Config{Before: time.Second, Vivify: 30 * time.Second}

// Of all clients of two routers one asks the database.
func TestOneFillsAcrossRouters(t *testing.T) {
	addrs := addresses(t, 1)
	var clients []*client
	for range 2 {
		c := config{Config: router.Config{Loops: 2}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Refresh: all, Lease: &coalesce.LeaseConfig{Duration: 4 * time.Second}, LeasePatience: patience}}
		clients = append(clients, crowd(t, start(t, c, addrs...).addr, 50)...)
	}
	for i := range 3 {
		var (
			queries atomic.Int64
			wg      sync.WaitGroup
		)
		key := fmt.Sprint("k", i)
		for _, c := range clients {
			wg.Go(func() {
				had, err := fill(c, key, "value", 50*time.Millisecond)
				if err != nil {
					t.Error(err)
				}
				if had {
					queries.Add(1)
				}
			})
		}
		wg.Wait()
		if n := queries.Load(); n != 1 {
			t.Errorf("the database was asked %d times", n)
		}
	}
}

// When whoever fills at another router stores nothing, one here is let go after a while.
func TestOtherRouterNeverFills(t *testing.T) {
	addrs := addresses(t, 1)
	c := config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Refresh: all, Lease: &coalesce.LeaseConfig{Duration: time.Second}, LeasePatience: patience}}
	one, two := start(t, c, addrs...), start(t, c, addrs...)
	never, here := dial(t, one.addr), crowd(t, two.addr, 3)
	never.ask("get k\r\n", "END\r\n")
	for i, c := range here {
		c.send("get k\r\n")
		two.asked(i+1, router.Snapshot{})
	}
	here[0].want("END\r\n")
	here[0].ask(setFor("k", "v", 1000), "STORED\r\n")
	for _, c := range here[1:] {
		c.want(hit("k", "v") + "END\r\n")
	}
	never.ask("get k\r\n", hit("k", "v")+"END\r\n")
}

// No empty item takes the place of one that still is where it lived before.
func TestNothingIsVivifiedOverAnItem(t *testing.T) {
	a := addresses(t, 2)
	r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Refresh: all, Lease: &coalesce.LeaseConfig{}}}, a...)
	moved := table(a...)
	moved.Picker, moved.Before, moved.Until = first{}, before(second{}), time.Now().Add(time.Hour)
	r.SetTable(moved)
	dial(t, a[1]).ask(set("k", "v"), "STORED\r\n")
	c := dial(t, r.addr)
	c.ask("get k\r\n", hit("k", "v")+"END\r\n")
	c.ask("gets none\r\n", "END\r\n")
}

// second places every key on the second server.
type second struct{}

func (second) Pick(dst []int, _ uint64, n int) []int { return append(dst, []int{1, 0}[:min(n, 2)]...) }

// Settings that need others are refused without them.
func TestRemediesThatNeedOthers(t *testing.T) {
	flights, hot, lease, near := &coalesce.Config{}, soon(), &coalesce.LeaseConfig{}, &longNear
	for name, c := range map[string]router.PoolConfig{
		"leases without flights":        {Lease: lease},
		"a near cache without flights":  {Near: near, HotKeys: hot},
		"a near cache without hot keys": {Near: near, Coalesce: flights},
		"renewal without flights":       {Refresh: due},
		"vivifying without leases":      {Refresh: all, Coalesce: flights},
		"a limit without hot keys":      {Limit: &hotkey.LimitConfig{Rate: 5}},
	} {
		c.Table = table("127.0.0.1:1")
		if _, err := (config{Pool: c}).router(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
