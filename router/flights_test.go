package router_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/backend"
	"cacherouter/coalesce"
	"cacherouter/internal/memcachedtest"
	"cacherouter/memproto"
	"cacherouter/router"
)

// crowd connects n clients.
func crowd(t testing.TB, addr string, n int) []*client {
	t.Helper()
	all := make([]*client, n)
	for i := range all {
		all[i] = dial(t, addr)
	}
	return all
}

// asked waits until clients have asked for n more than before.
func (r *running) asked(n int, before router.Snapshot) {
	r.t.Helper()
	r.until("all have asked", func(s router.Snapshot) bool { return s.Total() >= before.Total()+uint64(n) })
}

// gate is a membership that can hold the loops, so that what comes meanwhile is found by
// one turn of each.
type gate struct {
	mu   sync.Mutex // held by the test to hold the loops
	held chan struct{}
}

func (g *gate) Observe(string, backend.Observation) {}
func (g *gate) Admit(string) bool                   { return true }
func (g *gate) Missed(string, uint64, []byte)       {}
func (g *gate) MissedAll(string)                    {}

// Lag is called by each loop four times a second.
func (g *gate) Lag(time.Duration) {
	select {
	case g.held <- struct{}{}:
		g.mu.Lock()
		defer g.mu.Unlock()
	default:
	}
}

// hold holds n loops until release is called.
func (g *gate) hold(n int) (release func()) {
	g.mu.Lock()
	for range n {
		<-g.held
	}
	return g.mu.Unlock
}

// A thousand clients that ask for a cold key at once cost its server a request of each
// loop.
func TestThousandGetsAtOnce(t *testing.T) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	g := &gate{held: make(chan struct{})}
	r := start(t, config{Config: router.Config{Loops: 2}, Pool: router.PoolConfig{Membership: g, Coalesce: &coalesce.Config{}}}, server.Addr())
	clients := crowd(t, r.addr, 1000)
	r.until("all are here", func(s router.Snapshot) bool { return s.Sessions == 1000 })
	for request, reply := range map[string]string{"get cold\r\n": "END\r\n", "mg cold v t O7\r\n": "EN O7\r\n"} {
		before := server.Stat("cmd_get")
		release := g.hold(2)
		for _, c := range clients {
			c.send(request)
		}
		release()
		for _, c := range clients {
			c.want(reply)
		}
		if n := server.Stat("cmd_get") - before; n > 2 {
			t.Errorf("%q cost the server %d requests", request, n)
		}
	}
	if f := r.total().Flights; f.Led > 4 || f.Led+f.Joined != 2000 {
		t.Errorf("%+v", f)
	}
}

// stalled is a router of one loop whose server's replies can be held back.
type stalled struct {
	*running
	server *memcachedtest.Server
	proxy  *memcachedtest.FaultProxy
}

func startStalled(t testing.TB, cfg config, args ...string) *stalled {
	t.Helper()
	server := memcachedtest.Start(t, append(slices.Clone(memcachedtest.Steady), args...)...)
	proxy := memcachedtest.Proxy(t, server.Addr())
	return &stalled{start(t, cfg, proxy.Addr()), server, proxy}
}

// behind lets a get be on its way that the server has answered, and whose answer does not
// come before the returned function is called.
func (s *stalled) behind(key string) (release func()) {
	s.t.Helper()
	before, gets := s.total(), s.server.Stat("cmd_get")
	s.proxy.Set(memcachedtest.Stall)
	c := dial(s.t, s.addr)
	c.send("get " + key + "\r\n")
	s.asked(1, before)
	s.until("the server has it", func(router.Snapshot) bool { return s.server.Stat("cmd_get") > gets })
	return func() {
		s.t.Helper()
		s.proxy.Set(memcachedtest.Pass)
		c.lines("END")
		c.nc.Close()
	}
}

// What a hundred gets cost that come while one is on its way.
func TestModesOfFlights(t *testing.T) {
	for name, c := range map[string]struct {
		mode *coalesce.Config
		cost int
	}{
		"off":      {nil, 101},
		"strict":   {&coalesce.Config{}, 2},
		"inflight": {&coalesce.Config{Mode: coalesce.Inflight, MaxAge: time.Hour}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStalled(t, config{Pool: router.PoolConfig{Coalesce: c.mode}})
			clients := crowd(t, s.addr, 100)
			clients[0].ask(set("k", "old"), "STORED\r\n")
			before, was := s.total(), s.server.Stat("cmd_get")
			release := s.behind("k")
			for _, c := range clients {
				c.send("get k\r\n")
			}
			s.asked(101, before)
			release()
			for _, c := range clients {
				c.want(hit("k", "old") + "END\r\n")
			}
			if n := s.server.Stat("cmd_get") - was; n != c.cost {
				t.Errorf("they cost the server %d requests, want %d", n, c.cost)
			}
		})
	}
}

// form is a get in the words of a protocol, and what ends the answer to it.
type form struct {
	request string
	binary  bool
}

// forms are gets of k that may share a flight, all that are asked for in one.
func forms() (all []form) {
	for _, text := range []string{"get k", "mg k v", "gets k", "mg k f v c", "mg k v q k", "mg k O1 k v t s f", "get k", "mg k k Oxyz s v", "mg k v f Obc q"} {
		all = append(all, form{request: text + "\r\n"})
	}
	for _, op := range []memproto.Opcode{memproto.OpGet, memproto.OpGetK, memproto.OpGetQ, memproto.OpGetKQ} {
		all = append(all, form{packet(op, 0, "k", ""), true})
	}
	return all
}

// send asks, and then for something that is answered in any case.
func (f form) send(c *client) {
	c.t.Helper()
	if f.binary {
		c.send(f.request + packet(memproto.OpNoop, 0, "", ""))
	} else {
		c.send(f.request + "mn\r\n")
	}
}

// answer reads all that comes.
func (f form) answer(c *client) (got string) {
	c.t.Helper()
	if !f.binary {
		return strings.Join(c.lines("MN"), "\r\n")
	}
	for {
		head := make([]byte, 24)
		if _, err := io.ReadFull(c.r, head); err != nil {
			c.t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[8:]))
		if _, err := io.ReadFull(c.r, body); err != nil {
			c.t.Fatal(err)
		}
		got += fmt.Sprintf("%x %q ", head, body)
		if memproto.Opcode(head[1]) == memproto.OpNoop {
			return got
		}
	}
}

// Gets of all protocols share a flight, and each is answered byte for byte as memcached
// answers the same gets one after the other. A stale item is renewed by the first meta
// client, and by no other.
func TestAnswersOfFlightsAsMemcached(t *testing.T) {
	s := startStalled(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}})
	twin := memcachedtest.Start(t, memcachedtest.Steady...)
	all := forms()
	clients, others := crowd(t, s.addr, len(all)), crowd(t, twin.Addr(), len(all))
	direct, other := dial(t, s.server.Addr()), dial(t, twin.Addr())
	for name, requests := range map[string]string{
		"missing": "delete k\r\n",
		"there":   "set k 5 0 9\r\nEND\r\nVA 1\r\n",
		"empty":   "set k 0 0 0\r\n\r\n",
		"stale":   "set k 7 0 1\r\nx\r\nmd k I\r\n",
		"won":     "set k 7 0 1\r\nx\r\nmd k I\r\nmg k\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []*client{direct, other} {
				c.send(requests + "mn\r\n")
				c.lines("MN")
			}
			led := s.total().Flights.Led
			release := s.behind("k")
			for i, f := range all {
				before := s.total()
				f.send(clients[i])
				s.asked(2, before) // so that they come in this order
			}
			release()
			for i, f := range all {
				f.send(others[i])
				want := f.answer(others[i])
				if got := f.answer(clients[i]); got != want {
					t.Errorf("%q is answered\n%s, memcached says\n%s", f.request, got, want)
				}
			}
			if n := s.total().Flights.Led - led; n != 2 {
				t.Errorf("they took %d flights", n)
			}
		})
	}
}

// What one client asks in one packet is answered as if it were done in order, though its
// get has to wait for a flight.
func TestOrderOfOneClient(t *testing.T) {
	s := startStalled(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}})
	c := dial(t, s.addr)
	c.ask(set("k", "old"), "STORED\r\n")
	before := s.total()
	release := s.behind("k")
	c.send("get k\r\n" + set("k", "new") + "get k\r\nmg k v\r\ndelete k\r\nget k\r\nget k k\r\nflush_all\r\nversion\r\n")
	s.asked(8, before) // the flush has to wait
	release()
	c.want(hit("k", "old") + "END\r\nSTORED\r\n" + hit("k", "new") + "END\r\nVA 3\r\nnew\r\nDELETED\r\nEND\r\nEND\r\n")
	c.want("CLIENT_ERROR flush_all not allowed\r\nVERSION 1.6.18\r\n")
}

// A get that waits is sent before any other request of its key, so that none that came
// after it sees an older value.
func TestNothingOvertakesAFlight(t *testing.T) {
	for _, request := range []string{"get k j\r\n", "gat 0 k\r\n", "mg k t\r\n", "me k\r\n", "incr k 1\r\n"} {
		t.Run(request, func(t *testing.T) {
			f := listen(t)
			r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}, f.addr())
			s := f.accept()
			ahead, c := dial(t, r.addr), dial(t, r.addr)
			ahead.send("get k\r\n")
			s.want("get k\r\n")
			c.send("get k\r\n" + request)
			s.want("get k\r\n" + request)
		})
	}
}

// Clients of one hot key with pipelines, beside multigets and writes of their own.
func TestOrderBesideFlights(t *testing.T) {
	r := start(t, config{Config: router.Config{Loops: 2}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}, addresses(t, 2)...)
	dial(t, r.addr).ask(set("hot", "h"), "STORED\r\n")
	var wg sync.WaitGroup
	for i := range 8 {
		var q, p strings.Builder
		for j := range 100 {
			own := fmt.Sprintf("own%d-%d", i, j%7)
			value := fmt.Sprint(i, j)
			q.WriteString("get hot\r\n" + set(own, value) + "mg hot k v f\r\nget " + own + " hot\r\nmg " + own + " v O1\r\ndelete " + own + "\r\ngets none\r\n")
			p.WriteString(hit("hot", "h") + "END\r\nSTORED\r\nVA 1 khot f0\r\nh\r\n" + hit(own, value) + hit("hot", "h") + "END\r\n")
			fmt.Fprintf(&p, "VA %d O1\r\n%s\r\nDELETED\r\nEND\r\n", len(value), value)
		}
		c := dial(t, r.addr)
		wg.Go(func() {
			if _, err := io.WriteString(c.nc, q.String()); err != nil {
				t.Error(err)
				return
			}
			got := make([]byte, p.Len())
			if _, err := io.ReadFull(c.r, got); err != nil || string(got) != p.String() {
				t.Errorf("client %d is answered otherwise, %v", i, err)
			}
		})
	}
	wg.Wait()
}
