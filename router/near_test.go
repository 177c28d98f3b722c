package router_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"

	"github.com/cespare/xxhash/v2"
)

// soon makes a key hot within some tenths of a second, and cold again soon after.
func soon() *hotkey.Config {
	return &hotkey.Config{MinRate: 5, MinBytes: 1e12, EnterTicks: 1, Smooth: 100 * time.Millisecond, LeaveAfter: 200 * time.Millisecond}
}

// levelOf returns how hot a key is.
func (r *running) levelOf(key string) hotkey.Level {
	for _, k := range r.HotKeys(100).Keys {
		if k.Key == key {
			return k.Level
		}
	}
	return hotkey.Cold
}

// heat asks for something until its key is hot. Reply is how each answer ends.
func (r *running) heat(c *client, key, request, end string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); r.levelOf(key) == hotkey.Cold; {
		if time.Now().After(deadline) {
			r.t.Fatalf("%q does not get hot", key)
		}
		c.send(strings.Repeat(request, 20))
		for range 20 {
			c.lines(end)
		}
	}
}

// nearby is a router with a near cache in front of one server.
type nearby struct {
	*running
	server  *memcachedtest.Server
	past    *client   // the router
	clients []*client // one of each loop
}

func startNear(t *testing.T, near hotkey.NearConfig) *nearby {
	t.Helper()
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	c := config{Config: router.Config{Loops: 2}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, HotKeys: soon(), Near: &near}}
	n := &nearby{running: start(t, c, server.Addr()), server: server, past: dial(t, server.Addr())}
	n.clients = crowd(t, n.addr, 2) // loops take turns
	n.until("both loops have a client", func(s router.Snapshot) bool { return s.Sessions == 2 })
	return n
}

// kept stores a value, makes its key hot and lets the loop of a client keep it.
func (n *nearby) kept(c *client, key, value string) {
	n.t.Helper()
	c.ask(set(key, value), "STORED\r\n")
	n.heat(c, key, "get "+key+"\r\n", "END")
	n.until("the value is kept", func(router.Snapshot) bool {
		was := n.total().Near.Hits
		c.ask("get "+key+"\r\n", hit(key, value)+"END\r\n")
		return n.total().Near.Hits > was
	})
}

var longNear = hotkey.NearConfig{Bytes: 1 << 16, TTL: time.Second}

// Whoever asks for what is near costs the server nothing, in whatever protocol; a cas is
// always asked for.
func TestNearHits(t *testing.T) {
	n := startNear(t, longNear)
	c := n.clients[0]
	n.kept(c, "k", "v")
	best := 1000 // a value is kept for a second, which may end at any moment
	for range 5 {
		was := n.server.Stat("cmd_get")
		for range 50 {
			c.ask("get k\r\n", hit("k", "v")+"END\r\n")
		}
		best = min(best, n.server.Stat("cmd_get")-was)
	}
	if best > 1 {
		t.Errorf("fifty gets cost the server %d requests", best)
	}
	was := n.server.Stat("cmd_get")
	for range 50 {
		c.ask("mg k f k v O9 s q\r\n", "VA 1 f0 kk O9 s1\r\nv\r\n")
		c.ask("get k\r\n", hit("k", "v")+"END\r\n")
	}
	if n := n.server.Stat("cmd_get") - was; n > 50 {
		t.Errorf("a hundred gets of both protocols cost the server %d requests", n)
	}
	was = n.server.Stat("cmd_get")
	for range 10 {
		c.send("gets k\r\n")
		c.lines("END")
		c.ask("mg k v t\r\n", "VA 1 t-1\r\nv\r\n")
	}
	if n := n.server.Stat("cmd_get") - was; n < 20 {
		t.Errorf("twenty gets of what is not kept cost the server %d requests", n)
	}
}

// A write through one loop is seen on the other at once, and one in the same packet too.
func TestNearSeesWrites(t *testing.T) {
	n := startNear(t, longNear)
	for i := range 300 {
		writer, reader := n.clients[i%2], n.clients[1-i%2]
		if i%50 == 0 {
			n.kept(reader, "k", fmt.Sprint("v", i))
		}
		value := fmt.Sprint(i)
		writer.ask(set("k", value), "STORED\r\n")
		for range 3 {
			reader.ask("get k\r\n", hit("k", value)+"END\r\n")
		}
		value += "+"
		writer.ask("append k 0 0 1\r\n+\r\nget k\r\n", "STORED\r\n"+hit("k", value)+"END\r\n")
		reader.ask("get k\r\n"+set("k", "mine")+"get k\r\n", hit("k", value)+"END\r\nSTORED\r\n"+hit("k", "mine")+"END\r\n")
	}
	n.kept(n.clients[0], "k", "last")
	n.clients[1].ask("delete k\r\n", "DELETED\r\n")
	n.clients[0].ask("get k\r\n", "END\r\n")
	if hits := n.total().Near.Hits; hits == 0 {
		t.Error("nothing was near")
	}
}

// A value that is marked as stale is not kept for those who could be told of it.
func TestNearKeepsNothingStale(t *testing.T) {
	n := startNear(t, longNear)
	c := n.clients[0]
	n.kept(c, "k", "v")
	c.ask("md k I T300\r\n", "HD\r\n")
	c.ask("get k\r\n", hit("k", "v")+"END\r\n") // is kept
	c.ask("mg k v f\r\n", "VA 1 f0 X W\r\nv\r\n")
	for range 5 {
		c.ask("mg k v f\r\n", "VA 1 f0 Z X\r\nv\r\n")
		c.ask("get k\r\n", hit("k", "v")+"END\r\n")
	}
	n.clients[1].ask(set("k", "w"), "STORED\r\n")
	for range 3 {
		c.ask("mg k v f\r\n", "VA 1 f0\r\nw\r\n")
	}
}

// What is written past the router is seen when the time is over, or when a hint comes.
func TestNearForgets(t *testing.T) {
	n := startNear(t, hotkey.NearConfig{Bytes: 1 << 16, TTL: 200 * time.Millisecond})
	c := n.clients[0]
	for seen := false; !seen; {
		n.kept(c, "k", "v")
		n.past.ask(set("k", "w"), "STORED\r\n")
		written := time.Now()
		for old := true; old; {
			c.send("get k\r\n")
			old = c.lines("END")[1] == "v"
			seen = seen || old
			if old && time.Since(written) > 5*time.Second {
				t.Fatal("an old value is kept for long")
			}
		}
	}
	n = startNear(t, longNear)
	c = n.clients[0]
	for range 20 {
		n.kept(c, "k", "v")
		n.past.ask(set("k", "w"), "STORED\r\n")
		n.Forget([]uint64{xxhash.Sum64String("k")})
		c.ask("get k\r\n", hit("k", "w")+"END\r\n")
	}
}

// A value that does not fit is read from its server each time.
func TestNearSmallerThanAValue(t *testing.T) {
	n := startNear(t, hotkey.NearConfig{Bytes: 4096, TTL: time.Second})
	c, value := n.clients[0], strings.Repeat("v", 5000)
	c.ask(set("big", value), "STORED\r\n")
	n.heat(c, "big", "get big\r\n", "END")
	was := n.server.Stat("cmd_get")
	for range 20 {
		c.ask("get big\r\n", hit("big", value)+"END\r\n")
	}
	if got := n.server.Stat("cmd_get") - was; got != 20 {
		t.Errorf("twenty gets cost the server %d requests", got)
	}
	if s := n.total().Near; s.TooLarge == 0 || s.Fills > 0 {
		t.Errorf("%+v", s)
	}
	n.kept(c, "k", "small ones are kept")
}
