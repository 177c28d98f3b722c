package router_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// stats asks for statistics and returns them by name.
func stats(c *client, what string) map[string]string {
	c.t.Helper()
	c.send("stats" + what + "\r\n")
	all := make(map[string]string)
	for _, line := range c.lines("END") {
		f := strings.Fields(line)
		if line == "END" {
			break
		}
		if len(f) != 3 || f[0] != "STAT" {
			c.t.Errorf("%q is no line of statistics", line)
			continue
		}
		if _, twice := all[f[1]]; twice {
			c.t.Errorf("%s is told twice", f[1])
		}
		all[f[1]] = f[2]
	}
	return all
}

// number reads one of the statistics.
func number(t *testing.T, all map[string]string, name string) int {
	t.Helper()
	n, err := strconv.Atoi(all[name])
	if err != nil {
		t.Errorf("%s is %q", name, all[name])
	}
	return n
}

func TestStatsAddUp(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		servers := memcachedtest.StartN(t, 3)
		r := start(t, cfg, servers[0].Addr(), servers[1].Addr(), servers[2].Addr())
		c, other := dial(t, r.addr), dial(t, r.addr) // on different loops
		for i := range 60 {
			k := fmt.Sprintf("k%d", i)
			c.ask(set(k, "value"), "STORED\r\n")
			other.ask("get "+k+" no\r\n", hit(k, "value")+"END\r\n")
		}
		got := stats(c, "")
		sets, items := 0, 0
		for _, s := range servers {
			sets += s.Stat("cmd_set")
			items += s.Stat("curr_items")
		}
		for name, want := range map[string]int{
			"cmd_set": sets, "curr_items": items, "threads": 2, "curr_connections": 2, "total_connections": 2,
			"router_servers": 3, "router_servers_up": 3, "router_get_keys": 120, "router_get_hits": 60, "router_get_misses": 60,
			"router_requests": 121, "router_failed": 0, "router_refused": 0,
		} {
			if n := number(t, got, name); n != want {
				t.Errorf("%s is %d, want %d", name, n, want)
			}
		}
		if sets != 60 || got["version"] != "1.6.18" {
			t.Errorf("%d sets, version %s", sets, got["version"])
		}
		if n := number(t, stats(c, " items"), "items:1:number"); n != 60 {
			t.Errorf("the servers have %d items", n)
		}
		if n := number(t, stats(c, " slabs"), "active_slabs"); n < 3 {
			t.Errorf("%d active slabs on three servers", n)
		}
		if threads := stats(c, " settings")["num_threads"]; threads != "2" {
			t.Errorf("the settings say %s threads", threads)
		}
	})
}

func TestStatsConns(t *testing.T) {
	r := start(t, config{Config: router.Config{Loops: 2}}, addresses(t, 1)...)
	c := dial(t, r.addr)
	dial(t, r.addr).ask("version\r\n", "VERSION 1.6.18\r\n")
	got := stats(c, " conns")
	for _, value := range got {
		if value == "tcp:"+c.nc.LocalAddr().String() && len(got) == 4 {
			return
		}
	}
	t.Errorf("two clients are %v", got)
}

// Statistics come from the servers that can be asked.
func TestStatsWithServerDown(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, memcachedtest.Start(t).Addr(), memcachedtest.Reserve(t))
		c := dial(t, r.addr)
		c.ask(set(keyFor(0, 2, 0), "1"), "STORED\r\n")
		r.until("the other is found dead", func(s router.Snapshot) bool { return stats(c, "")["router_servers_up"] == "1" })
		if n := number(t, stats(c, ""), "cmd_set"); n != 1 {
			t.Errorf("cmd_set is %d", n)
		}
	})
}

func TestStatsAreInTurn(t *testing.T) {
	r := start(t, config{}, addresses(t, 2)...)
	c := dial(t, r.addr)
	c.send(set("a", "1") + "get a\r\nstats\r\nget a\r\n" + "stats reset\r\nstats bogus\r\nstats detail on\r\nstats detail x\r\n")
	c.want("STORED\r\n" + hit("a", "1") + "END\r\n")
	lines := c.lines("END")
	if !slices.Contains(lines, "STAT cmd_set 1") || !slices.Contains(lines, "STAT router_get_hits 1") {
		t.Errorf("the statistics do not have what came before: %q", lines)
	}
	c.want(hit("a", "1") + "END\r\nRESET\r\nERROR\r\nOK\r\nCLIENT_ERROR usage: stats detail on|off|dump\r\n")
}

func TestCachedumpJoins(t *testing.T) {
	r := start(t, config{}, addresses(t, 3)...)
	c := dial(t, r.addr)
	for i := range 30 {
		c.ask(set(fmt.Sprintf("k%d", i), "v"), "STORED\r\n")
	}
	c.send("stats cachedump 1 100\r\n")
	lines := c.lines("END")
	if len(lines) != 31 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	for i := range 30 {
		item := fmt.Sprintf("ITEM k%d [1 b; 0 s]", i)
		if !slices.Contains(lines, item) {
			t.Errorf("%s is not there", item)
		}
	}
}

func TestFlushAll(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		addrs := addresses(t, 3)
		r := start(t, cfg, addrs...)
		dial(t, r.addr).ask("flush_all\r\nflush_all noreply\r\nversion\r\n", "CLIENT_ERROR flush_all not allowed\r\nVERSION 1.6.18\r\n")
		cfg.Pool.FlushAll = true
		r = start(t, cfg, addrs...)
		c := dial(t, r.addr)
		for i, line := range []string{"flush_all", "flush_all 0", "flush_all -1", "flush_all  0 ", "flush_all noreply", "flush_all 0 noreply"} {
			var sets, stored strings.Builder
			for k := range 9 {
				sets.WriteString(set(fmt.Sprintf("k%d", k), fmt.Sprint(i)))
				stored.WriteString("STORED\r\n")
			}
			reply := "OK\r\n"
			if strings.Contains(line, "noreply") {
				reply = ""
			}
			c.ask(sets.String()+line+"\r\nget k0 k1 k2 k3 k4 k5 k6 k7 k8\r\n", stored.String()+reply+"END\r\n")
		}
		c.ask("flush_all x\r\nflush_all x noreply\r\nflush_all 0 1 2\r\n", "CLIENT_ERROR invalid exptime argument\r\nERROR\r\n")
	})
}

// A flush that a server has not done is not said to be done, but the others have.
func TestFlushAllWithServerDown(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Pool.FlushAll = true
		r := start(t, cfg, memcachedtest.Reserve(t), memcachedtest.Start(t).Addr())
		c := dial(t, r.addr)
		k := keyFor(1, 2, 0)
		c.ask(set(k, "1"), "STORED\r\n")
		c.ask("flush_all\r\nget "+k+"\r\n", "SERVER_ERROR backend connection refused\r\nEND\r\n")
		c.ask("flush_all noreply\r\nversion\r\n", "VERSION 1.6.18\r\n")
	})
}

// A server that refuses to flush is quoted.
func TestFlushAllRefusedByServer(t *testing.T) {
	r := start(t, config{Pool: router.PoolConfig{FlushAll: true}}, memcachedtest.Start(t).Addr(), memcachedtest.Start(t, "-F").Addr())
	dial(t, r.addr).ask("flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n")
}
