//go:build linux

package load

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/workload"
)

func TestMultigetsAgreeWithTheServersCounts(t *testing.T) {
	f := func(name string, change func(*Plan)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			server := memcachedtest.Start(t)
			p := small(server.Addr())
			p.Ratio, p.MultigetKeys, p.Versions = workload.Ratio{Sets: 1, Gets: 1, Multigets: 2}, 7, true
			change(&p)
			s := open(t, p)
			r, err := s.Run(t.Context(), Extent{Requests: 1501}) // nothing is filled: some keys of a multiget are there and some are not
			if err = butForTheRate(r, err); err != nil {
				t.Fatal(err)
			}
			stat := func(name string) uint64 { return uint64(server.Stat(name)) }
			if r.Gets != stat("cmd_get") || r.Sets != stat("cmd_set") || r.Hits != stat("get_hits") || r.Misses != stat("get_misses") {
				t.Errorf("counts %+v; the server counted %d gets, %d sets, %d hits, %d misses", r.Counts,
					stat("cmd_get"), stat("cmd_set"), stat("get_hits"), stat("get_misses"))
			}
			if r.Hits == 0 || r.Misses == 0 || r.Gets < 1501*3 || r.Answered() != r.Requests() {
				t.Errorf("counts %+v", r.Counts)
			}
		})
	}
	for _, protocol := range protocols {
		f(string(protocol), func(p *Plan) { p.Protocol = protocol })
		f(string(protocol)+" at a rate", func(p *Plan) { p.Protocol, p.Rate = protocol, 20_000 })
	}
	f("gomemcache", func(p *Plan) { p.Client, p.Pipeline = Gomemcache, 1 })
}

func TestChurnMakesConnectionsAnew(t *testing.T) {
	for _, rate := range []float64{0, 20_000} {
		server := memcachedtest.Start(t)
		p := small(server.Addr())
		p.Pipeline, p.Churn, p.Rate = 1, 10, rate
		s := open(t, p)
		if _, err := s.Fill(t.Context()); err != nil { // so that the server has taken all connections
			t.Fatal(err)
		}
		before := uint64(server.Stat("total_connections"))
		r, err := s.Run(t.Context(), Extent{Requests: 1000})
		if err = butForTheRate(r, err); err != nil {
			t.Fatal(err)
		}
		// The server counts one more for the question, and those that were being made at the end.
		if got := uint64(server.Stat("total_connections")) - before; got < r.Connects || got > r.Connects+1+uint64(p.Connections) || r.Connects < 85 || r.Connects > 120 {
			t.Errorf("%d connections were made, the server counted %d", r.Connects, got)
		}
	}
}

// stalling answers misses, but for a while after the n-th request nothing.
func stalling(n int64, stall time.Duration) func(request) string {
	var asked atomic.Int64
	var until atomic.Int64
	return func(q request) string {
		if asked.Add(1) == n {
			until.Store(time.Now().Add(stall).UnixNano())
		}
		time.Sleep(time.Until(time.Unix(0, until.Load())))
		return miss(q)
	}
}

// A target that stands still for half of the run must show in the latency of all that was due meanwhile.
func TestAStallIsChargedToAllRequestsThatWereDue(t *testing.T) {
	const stall, requests = 600 * time.Millisecond, 1200
	p := small(serve(t, "tcp", "127.0.0.1:0", stalling(200, stall)))
	p.Connections, p.Pipeline, p.Rate = 4, 1, 1000
	r, err := open(t, p).Run(t.Context(), Extent{Requests: requests})
	if r.Answered() != requests || r.Open == nil {
		t.Fatalf("counts %+v, %v", r.Counts, err)
	}
	// 600 of 1,200 were due while it stood still, and waited for 300 ms in the mean.
	if r.Latency.Mean < 120_000 || r.Latency.P90 < 400_000 || r.NotInTime < 500 {
		t.Errorf("latency %+v, %d found no connection", r.Latency, r.NotInTime)
	}
	p.Rate = 0
	p.Target = serve(t, "tcp", "127.0.0.1:0", stalling(200, stall))
	closed, err := open(t, p).Run(t.Context(), Extent{Requests: requests})
	if err != nil || closed.Latency.P90 > r.Latency.P90/2 {
		t.Errorf("a closed loop, which does not see it, has %+v, %v", closed.Latency, err)
	}
}

func TestARateThatCannotBeMetIsSaidWithTheShortfall(t *testing.T) {
	p := small(serve(t, "tcp", "127.0.0.1:0", func(q request) string {
		time.Sleep(10 * time.Millisecond)
		return miss(q)
	}))
	p.Connections, p.Pipeline, p.Rate = 2, 1, 1000 // two connections do 200 at most
	f := func(x Extent) {
		t.Helper()
		r, err := open(t, p).Run(t.Context(), x)
		if r.Open == nil || r.Open.Short < 0.7 || r.Open.Sent > 300 || err == nil ||
			!strings.Contains(err.Error(), "of 1000 requests/s asked for "+fmt.Sprintf("%.0f were sent", r.Open.Sent)) {
			t.Errorf("%+v, %v", r.Open, err)
		}
	}
	f(Extent{Duration: 500 * time.Millisecond})
	f(Extent{Requests: 50})
	p.Client = Gomemcache
	f(Extent{Duration: 500 * time.Millisecond})
}

func TestATargetThatDiesEndsAnOpenLoop(t *testing.T) {
	for _, client := range []Client{Own, Gomemcache} {
		server := memcachedtest.Start(t)
		p := small(server.Addr())
		p.Rate, p.Client, p.Pipeline = 2000, client, 1
		s := open(t, p)
		dead := make(chan struct{})
		r, err := s.Run(t.Context(), Extent{Duration: time.Hour, Watch: func(w Window) {
			if w.Second == 0 {
				go func() { defer close(dead); server.Stop() }()
			}
		}})
		<-dead
		if r.Hits+r.Misses+r.Stored == 0 || err == nil || r.Broken == "" {
			t.Errorf("%s: counts %+v, %v", client, r.Counts, err)
		}
	}
}

// A checker that sees no fault is worth nothing: each is made here.
func TestStaleLostAndForeignValuesAreSeen(t *testing.T) {
	server := memcachedtest.Start(t)
	p := small(server.Addr())
	p.Versions, p.Ratio = true, workload.Ratio{Gets: 1}
	s := open(t, p)
	c := caller.Conn{Target: server.Addr(), Timeout: 10 * time.Second}
	defer c.Close()
	fill := func() {
		t.Helper()
		if _, err := s.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gets := func() Result {
		r, _ := s.Run(t.Context(), Extent{Requests: 1000})
		return r
	}
	old := make([][]byte, p.Keys)
	fill()
	for i := range old {
		old[i], _, _ = c.Get(string(s.keys.key(uint32(i))))
	}
	put := func(from func(i int) []byte) {
		t.Helper()
		for i := range old {
			if err := c.Set(string(s.keys.key(uint32(i))), from(i), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	if r := gets(); r.Hits != 1000 {
		t.Errorf("counts %+v, want only hits", r.Counts)
	}
	put(func(i int) []byte { return old[i] })
	if r := gets(); r.Stale != 1000 || !strings.Contains(r.FirstStale, "returned write 1, write 2") {
		t.Errorf("old values: counts %+v, %q", r.Counts, r.FirstStale)
	}
	put(func(i int) []byte { return s.keys.appendValue(nil, uint32(i), 9) })
	if r := gets(); r.Wrong != 1000 {
		t.Errorf("values that nobody wrote: counts %+v", r.Counts)
	}
	put(func(i int) []byte { return old[(i+1)%len(old)] })
	if r := gets(); r.Wrong != 1000 {
		t.Errorf("values of other keys: counts %+v", r.Counts)
	}
	fill()
	server.Restart()
	c.Close()
	s = open(t, p)
	fill()
	for i := range old {
		if err := c.Delete(string(s.keys.key(uint32(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if r := gets(); r.Misses != 1000 || r.Lost != 1000 {
		t.Errorf("nothing left: counts %+v", r.Counts)
	}
	put(func(i int) []byte { return old[i] }) // another run's
	if r := gets(); r.Stale != 1000 {
		t.Errorf("values of before: counts %+v", r.Counts)
	}
}

func TestTheOriginIsAskedForEachMissAndFillsTheCache(t *testing.T) {
	f := func(change func(*Plan)) {
		t.Helper()
		server := memcachedtest.Start(t)
		p := small(server.Addr())
		p.Ratio, p.Versions, p.Origin, p.Choice = workload.Ratio{Gets: 1}, true, &Origin{Latency: time.Millisecond, Capacity: 50}, "sequential"
		change(&p)
		s := open(t, p)
		r, err := s.Run(t.Context(), Extent{Requests: 2000})
		if err = butForTheRate(r, err); err != nil {
			t.Fatal(err)
		}
		if r.Fetches != r.Misses || r.Fills != r.Sets || r.Gets != 2000 || r.Fills == 0 || r.Fills > r.Fetches {
			t.Errorf("counts %+v", r.Counts)
		}
		if r.Sets != uint64(server.Stat("cmd_set")) || r.Hits != uint64(server.Stat("get_hits")) {
			t.Errorf("counts %+v; the server counted %d sets, %d hits", r.Counts, server.Stat("cmd_set"), server.Stat("get_hits"))
		}
	}
	f(func(p *Plan) {})
	f(func(p *Plan) { p.Rate = 4000 })
	f(func(p *Plan) { p.Client, p.Pipeline = Gomemcache, 1 })
	f(func(p *Plan) { p.Client, p.Pipeline, p.Rate = Gomemcache, 1, 4000 })
}

func TestTheOriginsCapacityBoundsWhatComesBack(t *testing.T) {
	server := memcachedtest.Start(t)
	p := small(server.Addr())
	p.Ratio, p.Origin, p.Keys, p.Choice = workload.Ratio{Gets: 1}, &Origin{Latency: 100 * time.Millisecond, Capacity: 5}, 100_000, "sequential"
	p.Rate = 2000
	r, err := open(t, p).Run(t.Context(), Extent{Duration: time.Second})
	if err = butForTheRate(r, err); err != nil {
		t.Fatal(err)
	}
	// All miss, and five answers come each tenth of a second, from the first on.
	if r.Fetches != r.Gets || r.Fills < 5 || r.Fills > 55 {
		t.Errorf("counts %+v", r.Counts)
	}
}

func TestLivesAreGivenToTheServer(t *testing.T) {
	for _, protocol := range protocols {
		server := memcachedtest.Start(t)
		p := small(server.Addr())
		p.Protocol, p.Lives, p.Versions = protocol, "100s", true
		s := open(t, p)
		if _, err := s.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := caller.Conn{Target: server.Addr(), Timeout: 10 * time.Second}
		defer c.Close()
		stats, err := c.Stats()
		if err != nil || stats["curr_items"] != p.Keys {
			t.Fatalf("%v, %v", stats["curr_items"], err)
		}
		if got := ttlOf(t, server.Addr(), string(s.keys.key(7))); got < 50 || got > 100 {
			t.Errorf("%s: an item lives for %d s, want 100", protocol, got)
		}
	}
}

// ttlOf asks how long an item is to live.
func ttlOf(t *testing.T, addr, key string) int {
	t.Helper()
	conn, err := dialSocket(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "mg %s t\r\n", key)
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	ttl, errTTL := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(buf[:n]), "HD t")))
	if err != nil || errTTL != nil {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	return ttl
}
