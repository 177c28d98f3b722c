package router_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// Clients that go away while they wait, or while others wait for what they have asked.
func TestClientsLeaveFlights(t *testing.T) {
	f := listen(t)
	r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}, f.addr())
	s := f.accept()
	leads, waits, stays := dial(t, r.addr), dial(t, r.addr), dial(t, r.addr)
	leads.send("get k\r\n")
	s.want("get k\r\n")
	waits.send("mg k v\r\n") // it would lead the next one, and renew the item
	r.asked(2, router.Snapshot{})
	stays.send("mg k v O2\r\n")
	r.asked(3, router.Snapshot{})
	for _, c := range []*client{leads, waits} {
		c.nc.SetLinger(0)
		c.nc.Close()
	}
	r.until("they are gone", func(s router.Snapshot) bool { return s.Sessions == 1 })
	s.send(hit("k", "1") + "END\r\n")
	s.want("mg k v f\r\n")
	s.send("VA 1 f0 X W\r\n1\r\n")
	stays.want("VA 1 O2 X W\r\n1\r\n")
	stays.send("get k\r\n")
	s.want("get k\r\n")
	s.send(hit("k", "2") + "END\r\n")
	stays.want(hit("k", "2") + "END\r\n")
}

// A get that joined a flight gets the reply in its own form, also when the one that the flight
// was made for could wait no longer.
func TestFlightOutlivesItsFirst(t *testing.T) {
	const limit = 2 * time.Second
	f := listen(t)
	r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{Mode: coalesce.Inflight, MaxAge: time.Hour}, Timeout: limit}}, f.addr())
	leads, own, joins := dial(t, r.addr), dial(t, r.addr), dial(t, r.addr)
	leads.send("get k\r\n")
	f.accept().want("get k\r\n")
	<-time.After(limit / 2) // so much longer may the next one wait
	own.send("mg k v O1\r\n")
	leads.want("SERVER_ERROR backend timeout\r\n")
	s := f.accept()
	s.want("mg k v f\r\n")
	joins.send("mg k v O2\r\n")
	own.want("SERVER_ERROR backend timeout\r\n")
	s.send("VA 1 f0\r\n1\r\n")
	joins.want("VA 1 O2\r\n1\r\n")
	if s := r.total().Flights; s.Joined != 1 || s.Expired != 1 {
		t.Errorf("%+v", s)
	}
}

// When a server hangs each get fails at its own deadline, whatever flight it waits for, and
// what was on its way does no harm later.
func TestServerHangsUnderFlights(t *testing.T) {
	const limit = time.Second
	s := startStalled(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Timeout: limit}})
	c := dial(t, s.addr)
	c.ask(set("k", "v"), "STORED\r\n")
	s.server.Pause()
	var wg sync.WaitGroup
	took := make([]time.Duration, 6)
	for i := range took {
		c := dial(t, s.addr)
		wg.Go(func() {
			began := time.Now()
			if _, err := io.WriteString(c.nc, "get k\r\n"); err != nil {
				t.Error(err)
			}
			line, err := c.r.ReadString('\n')
			if took[i] = time.Since(began); err != nil || line != "SERVER_ERROR backend timeout\r\n" {
				t.Errorf("get %d is answered %q, %v", i, line, err)
			}
		})
		<-time.After(limit / 5)
	}
	wg.Wait()
	t.Log("gets failed after", took)
	for i, d := range took {
		if d < limit-10*time.Millisecond || d > 4*limit {
			t.Errorf("get %d failed after %v", i, d)
		}
	}
	// The flight of these two fails after 1.8 and 1.6 limits. One may be late where machines
	// are slow.
	if d := min(took[1], took[2]); d > limit+limit/2 {
		t.Errorf("a get that waits for a flight failed after %v", d)
	}
	s.server.Resume()
	s.until("the server is back", func(router.Snapshot) bool {
		c.send("get k\r\n")
		line, err := c.r.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "VALUE") {
			c.want("v\r\nEND\r\n")
			return true
		}
		return false
	})
	requests, replies := pipeline(50)
	dial(t, s.addr).ask(requests, replies)
}

// When a server dies, those who wait for a flight are answered once: with an error, with
// a miss if that is wanted, or from the key's next candidate where somebody watches over the
// servers.
func TestServerDiesUnderFlights(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   config
		reply string
	}{
		"an error":           {config{}, "SERVER_ERROR backend "},
		"a miss":             {config{Pool: router.PoolConfig{MissOnFailure: true}}, "END\r\n"},
		"the next candidate": {config{Pool: router.PoolConfig{Membership: &gate{}}}, "END\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, reply := c.cfg, c.reply
			cfg.Pool.Coalesce = &coalesce.Config{}
			server := memcachedtest.Start(t)
			proxy := memcachedtest.Proxy(t, server.Addr())
			r := start(t, cfg, proxy.Addr(), memcachedtest.Start(t).Addr())
			s := &stalled{r, server, proxy}
			k := keyFor(0, 2, 0)
			clients := crowd(t, r.addr, 50)
			proxy.Set(memcachedtest.Stall)
			before := r.total()
			for _, c := range clients {
				c.send("get " + k + "\r\n")
				if c == clients[0] {
					s.asked(1, before)
				}
			}
			s.asked(len(clients), before)
			proxy.Set(memcachedtest.Refuse)
			for _, c := range clients {
				if line, err := c.r.ReadString('\n'); err != nil || !strings.HasPrefix(line, reply) {
					t.Fatalf("a get is answered %q, %v", line, err)
				}
				c.ask("version\r\n", "VERSION 1.6.18\r\n")
			}
		})
	}
}

// A hundred gets wait for a large value, of which one request is made.
func TestLargeValueForMany(t *testing.T) {
	s := startStalled(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}, "-I", "2m")
	value := strings.Repeat("0123456789abcdef", 1<<16)
	clients := crowd(t, s.addr, 100)
	clients[0].ask(set("k", value), "STORED\r\n")
	was, before := s.server.Stat("cmd_get"), s.total()
	s.proxy.Set(memcachedtest.Stall)
	for i, c := range clients {
		c.send([]string{"get k\r\n", "mg k v f\r\n"}[i%2])
	}
	s.asked(len(clients), before)
	s.proxy.Set(memcachedtest.Pass)
	replies := [][]byte{[]byte(hit("k", value) + "END\r\n"), fmt.Appendf(nil, "VA %d f0\r\n%s\r\n", len(value), value)}
	buf := make([]byte, len(replies[0]))
	for i, c := range clients {
		want := replies[i%2]
		if _, err := io.ReadFull(c.r, buf[:len(want)]); err != nil || !bytes.Equal(buf[:len(want)], want) {
			t.Fatalf("client %d is answered otherwise, %v", i, err)
		}
		c.nc.Close()
	}
	if n := s.server.Stat("cmd_get") - was; n > 2 {
		t.Errorf("%d requests", n)
	}
}
