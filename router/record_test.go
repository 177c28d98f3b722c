package router_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/memproto"
	"cacherouter/router"
)

// clerk keeps the records of a router.
type clerk struct {
	mu  sync.Mutex
	all []router.Record // guarded by mu
}

func (c *clerk) take(r *router.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, *r)
}

// wait waits for n records and returns them.
func (c *clerk) wait(t *testing.T, n int) []router.Record {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		c.mu.Lock()
		all := c.all[:len(c.all):len(c.all)]
		c.mu.Unlock()
		if len(all) >= n {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d records, want %d", len(all), n)
		}
	}
}

// every returns what keeps each record.
func (c *clerk) every() router.Recording { return router.Recording{To: c.take, Every: 1} }

func TestRequestIsOfWholeCacheLines(t *testing.T) {
	if router.RequestSize != 512 {
		t.Errorf("a request has %d bytes: want 512, as Go's allocator puts those at the beginning of a cache line", router.RequestSize)
	}
}

// A record has what became of the request, and its phases: b is answered before a, and waits
// for it, and a's reply comes in two pieces.
func TestRecord(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		const held = 20 * time.Millisecond
		var k clerk
		cfg.Record = k.every()
		slow, fast := listen(t), listen(t)
		r := start(t, cfg, slow.addr(), fast.addr())
		s, f := slow.accept(), fast.accept()
		a, b := keyFor(0, 2, 0), keyFor(1, 2, 0)
		c := dial(t, r.addr)
		before := time.Now()
		c.send("get " + a + "\r\nget " + b + "\r\n")
		s.want("get " + a + "\r\n")
		f.want("get " + b + "\r\n")
		f.send("END\r\n")
		wait := func() {
			since := time.Now()
			r.until("time passes", func(router.Snapshot) bool { return time.Since(since) > held })
		}
		wait()
		s.send(hit(a, "1"))
		wait()
		s.send("END\r\n")
		c.want(hit(a, "1") + "END\r\nEND\r\n")
		most := time.Since(before)
		all := k.wait(t, 2)
		for i, want := range []router.Record{
			{Key: a, Server: "n0", Outcome: memproto.Hit, Bytes: len(hit(a, "1") + "END\r\n")},
			{Key: b, Server: "n1", Outcome: memproto.Miss, Bytes: len("END\r\n")},
		} {
			got := all[i]
			want.Sampled, want.Verb, want.Keys, want.At, want.Listener, want.Client = true, memproto.Get, 1, got.At, r.addr, "tcp:"+c.nc.LocalAddr().String()
			want.Sent, want.First, want.Answered, want.Took = got.Sent, got.First, got.Answered, got.Took
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got.At.Before(before.Add(-time.Millisecond)) || got.Sent > got.First || got.First > got.Answered || got.Answered > got.Took || got.Took > most {
				t.Errorf("began %v ago, and took %+v of %v", time.Since(got.At), got, most)
			}
		}
		if x := all[0]; x.First < held-time.Millisecond || x.Answered < 2*held-time.Millisecond || x.Took != x.Answered {
			t.Errorf("%s: %+v", a, x)
		}
		if x := all[1]; x.Took < 2*held || x.Took <= x.Answered {
			t.Errorf("%s: %+v", b, x)
		}
	})
}

// want wants the records to have gone some ways, each "key way server outcome".
func (c *clerk) want(t *testing.T, want ...string) {
	t.Helper()
	for i, r := range c.wait(t, len(want)) {
		outcome := r.Outcome.String()
		if r.Gone {
			outcome = "gone"
		}
		got := strings.Join([]string{r.Key, r.Way.String(), r.Server, outcome}, " ")
		if i >= len(want) || got != want[i] {
			t.Errorf("record %d is %q, want all of %q", i, got, want)
		}
	}
}

// Each record says what decided where its request went.
func TestRecordedWays(t *testing.T) {
	t.Run("home", func(t *testing.T) {
		var k clerk
		g := newRig(t, 2, config{Config: router.Config{Record: k.every()}, Pool: router.PoolConfig{FlushAll: true}})
		c, _ := g.clients()
		c.ask("set k 0 0 1\r\n1\r\n", "STORED\r\n")
		c.ask("get k none\r\n", value("k", 0, "1")+"END\r\n")
		c.ask("flush_all\r\n", "OK\r\n")
		k.want(t, "k home n0 stored", "k several n0 done", " several  done")
		if r := k.wait(t, 2)[1]; r.Keys != 2 || r.Bytes != len(value("k", 0, "1")+"END\r\n") {
			t.Errorf("of two keys: %+v", r)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		var k clerk
		g := newRig(t, 2, config{Config: router.Config{Record: k.every()}})
		c, _ := g.clients()
		g.use(g.with(router.Server{Writes: router.WriteNext, Reads: router.ReadNext}))
		c.ask("set k 0 0 1\r\n1\r\n", "STORED\r\n")
		g.use(g.with(router.Server{Writes: router.WriteNowhere, Reads: router.ReadNext}))
		c.ask("set k 0 0 1\r\n1\r\n", "SERVER_ERROR backend unreachable, and not yet given up\r\n")
		k.want(t, "k failed_over n1 stored", "k unasked  error")
	})
	t.Run("redirected and handed over", func(t *testing.T) {
		var k clerk
		g := newRig(t, 2, config{Config: router.Config{Record: k.every()}})
		c, _ := g.clients()
		g.at(1).ask("set k 0 0 1\r\n1\r\n", "STORED\r\n")
		g.use(g.moved(time.Hour))
		c.ask("get k\r\n", value("k", 0, "1")+"END\r\n")
		g.use(g.well())
		g.servers[0].Stop()
		c.ask("get k\r\n", value("k", 0, "1")+"END\r\n")
		k.want(t, "k handed_over n1 hit", "k redirected n1 hit")
	})
	t.Run("joined and gone", func(t *testing.T) {
		var k clerk
		fake := listen(t)
		r := start(t, config{Config: router.Config{Record: k.every()}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}}}, fake.addr())
		s := fake.accept()
		a, b := dial(t, r.addr), dial(t, r.addr)
		a.send("get k\r\n")
		s.want("get k\r\n")
		b.send("get k\r\n")
		r.until("the second waits", func(s router.Snapshot) bool { return s.Waiting == 2 })
		a.nc.SetLinger(0) // else it is answered still
		a.nc.Close()
		k.want(t, "k home n0 gone")
		s.send("END\r\n")
		s.want("get k\r\n")
		s.send("END\r\n")
		b.want("END\r\n")
		k.want(t, "k home n0 gone", "k joined n0 miss")
	})
	t.Run("leased", func(t *testing.T) {
		var k clerk
		r := start(t, config{Config: router.Config{Record: k.every()}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Lease: &coalesce.LeaseConfig{Duration: patience}}}, addresses(t, 1)...)
		a, b := dial(t, r.addr), dial(t, r.addr)
		a.ask("get k\r\n", "END\r\n")
		b.send("get k\r\n")
		r.until("the second is parked", func(s router.Snapshot) bool { return s.Leases.Waiting == 1 })
		a.ask(set("k", "1"), "STORED\r\n")
		b.want(hit("k", "1") + "END\r\n")
		k.want(t, "k home n0 miss", "k home n0 stored", "k leased n0 hit")
	})
}

// Where there are several pools a record has the key's, or that of the server that is named.
func TestRecordedPools(t *testing.T) {
	var k clerk
	p := startPools(t, config{Config: router.Config{Record: k.every()}, Pool: router.PoolConfig{FlushAll: true}})
	c := dial(t, p.addr)
	c.ask(set("a:1", "1")+set("b:1", "2"), "STORED\r\nSTORED\r\n")
	c.ask("get b:1 b:2\r\n", hit("b:1", "2")+"END\r\n")
	c.ask("get a:1 b:1\r\nflush_all\r\n", hit("a:1", "1")+hit("b:1", "2")+"END\r\nOK\r\n")
	all := k.wait(t, 5)
	for i, want := range []string{"a", "b", "b"} {
		if all[i].Pool != want {
			t.Errorf("record %d is of pool %q, want %q", i, all[i].Pool, want)
		}
	}
	if all[3].Pool == "" || all[4].Pool != "" {
		t.Errorf("pools %q and %q of keys of both, and of none", all[3].Pool, all[4].Pool)
	}
}

// One in so many requests is sampled, and of those that are slow no more a second are
// recorded than may be, while all are counted.
func TestRecordsAreFew(t *testing.T) {
	var k clerk
	r := start(t, config{Config: router.Config{Record: router.Recording{To: k.take, Every: 10}}}, addresses(t, 1)...)
	c := dial(t, r.addr)
	for range 50 {
		c.ask("get k\r\n", "END\r\n")
	}
	if all := k.wait(t, 5); len(all) != 5 || !all[0].Sampled || all[0].Slow {
		t.Errorf("%d of 50 records: %+v", len(all), all)
	}

	var slow clerk
	r = start(t, config{Config: router.Config{Record: router.Recording{To: slow.take, Over: 1, SlowRate: 1}}}, addresses(t, 1)...)
	c = dial(t, r.addr)
	for range 2 { // at least one of which begins after the clock of microseconds has moved
		c.ask(strings.Repeat("get k\r\n", 500), strings.Repeat("END\r\n", 500))
	}
	all, st := slow.wait(t, 1), r.total()
	if st.Slow < 500 || st.SlowUnrecorded != st.Slow-uint64(len(all)) || !all[0].Slow || all[0].Sampled {
		t.Errorf("%d slow, %d of them not recorded, %d records", st.Slow, st.SlowUnrecorded, len(all))
	}
}
