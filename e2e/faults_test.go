package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// wantFailure sends a get and wants one SERVER_ERROR line.
func wantFailure(tb testing.TB, c *client, key string) {
	tb.Helper()
	if values, err := c.get(key); !failed(err) {
		tb.Fatalf("get %s gives %v, %v; want SERVER_ERROR", key, values, err)
	}
}

func TestKilledBackendFailsAloneAndComesBack(t *testing.T) {
	servers := memcachedtest.StartN(t, 3)
	backends := memcachedtest.Addrs(servers)
	r := startUnwatched(t, backends, "timeout: 15s", "connect_timeout: 15s")
	c := connect(t, r.addr)
	byHome := spread(t, c, backends, 60)

	servers[1].Stop()
	for range 3 {
		wantFailure(t, c, byHome[1][0])
		c.mustGet(t, byHome[0][0], "value of "+byHome[0][0])
		c.mustGet(t, byHome[2][0], "value of "+byHome[2][0])
	}
	if err := c.set(byHome[1][0], "new"); !failed(err) {
		t.Errorf("set on a dead server: %v, want SERVER_ERROR", err)
	}

	servers[1].Restart()
	waitFor(t, "the restarted server to be used", func() error { return c.set(byHome[1][0], "new") })
	c.mustGet(t, byHome[1][0], "new")
	c.mustGet(t, byHome[0][1], "value of "+byHome[0][1])
}

func TestMultigetWithADeadBackendStaysInStep(t *testing.T) {
	servers := memcachedtest.StartN(t, 3)
	backends := memcachedtest.Addrs(servers)
	r := startUnwatched(t, backends, "timeout: 15s", "connect_timeout: 15s")
	c := connect(t, r.addr)
	byHome := spread(t, c, backends, 60)
	servers[0].Stop()
	for range 3 {
		values, err := c.get(byHome[0][0], byHome[1][0], byHome[2][0])
		if err == nil {
			t.Errorf("a multiget with a dead server gives %v and no error", values)
		} else if !failed(err) {
			t.Fatalf("a multiget with a dead server is out of step: %v", err)
		}
		c.mustGet(t, byHome[1][0], "value of "+byHome[1][0])
	}
}

func TestFailureAsMiss(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	backends := memcachedtest.Addrs(servers)
	r := startUnwatched(t, backends, "on_failure: miss")
	c := connect(t, r.addr)
	byHome := spread(t, c, backends, 40)
	servers[0].Stop()
	values, err := c.get(byHome[0][0], byHome[1][0])
	if err != nil || len(values) != 1 || values[byHome[1][0]] == "" {
		t.Errorf("a multiget gives %v, %v; want the live server's value", values, err)
	}
	if err := c.set(byHome[0][0], "x"); !failed(err) {
		t.Errorf("a set on the dead server gives %v, want SERVER_ERROR", err)
	}
}

// TestPausedBackendHoldsUpNobodyElse has one server stopped while a request waits for it: the others' clients are
// served meanwhile.
func TestPausedBackendHoldsUpNobodyElse(t *testing.T) {
	servers := memcachedtest.StartN(t, 3)
	backends := memcachedtest.Addrs(servers)
	r := startUnwatched(t, backends, "timeout: 4s")
	c, waiting := connect(t, r.addr), connect(t, r.addr)
	byHome := spread(t, c, backends, 60)

	servers[2].Pause()
	if err := waiting.send("get " + byHome[2][0] + "\r\nget " + byHome[0][0] + "\r\n"); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		key := byHome[i%2][i%len(byHome[i%2])]
		c.mustGet(t, key, "value of "+key)
	}
	waiting.silent(t)
	if _, err := waiting.values(); !failed(err) {
		t.Errorf("the request to the stopped server gives %v, want SERVER_ERROR", err)
	}
	if values, err := waiting.values(); err != nil || len(values) != 1 {
		t.Errorf("the request after it gives %v, %v", values, err)
	}

	servers[2].Resume()
	waitFor(t, "the resumed server to answer", func() error {
		_, err := c.get(byHome[2][0])
		return err
	})
	c.mustGet(t, byHome[2][0], "value of "+byHome[2][0])
}

func TestSlowBackendIsSlowForItsKeysOnly(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	proxy := memcachedtest.Proxy(t, servers[1].Addr())
	r := startRouter(t, []string{servers[0].Addr(), proxy.Addr()})
	c, waiting := connect(t, r.addr), connect(t, r.addr)
	byHome := spread(t, c, memcachedtest.Addrs(servers), 40)

	proxy.Set(memcachedtest.Delay)
	for range 3 {
		if err := waiting.send("get " + byHome[1][0] + "\r\n"); err != nil {
			t.Fatal(err)
		}
		c.mustGet(t, byHome[0][0], "value of "+byHome[0][0])
		if values, err := waiting.values(); err != nil || len(values) != 1 {
			t.Errorf("a slow reply is %v, %v", values, err)
		}
	}
}

func TestBackendRefusedAtStart(t *testing.T) {
	memcachedtest.Need(t, "memcached")
	later := memcachedtest.StartLater(t)
	r := startRouter(t, []string{later.Addr()})
	c := connect(t, r.addr)
	for range 3 {
		wantFailure(t, c, "k")
	}
	later.Restart()
	waitFor(t, "the server to be used once it is up", func() error { return c.set("k", "v") })
	c.mustGet(t, "k", "v")
}

// TestReadInFlightIsRetriedOnce cuts the connection to the backend while requests wait on it: a read is asked again on
// a new connection, a write is not, since it may have happened.
func TestReadInFlightIsRetriedOnce(t *testing.T) {
	server := memcachedtest.Start(t)
	proxy := memcachedtest.Proxy(t, server.Addr())
	r := startUnwatched(t, []string{proxy.Addr()}, "timeout: 15s", "connect_timeout: 15s")
	reader, writer := connect(t, r.addr), connect(t, r.addr)
	reader.mustSet(t, "n", "1")
	for i := range 3 {
		gets, incrs := server.Stat("cmd_get"), server.Stat("incr_hits")
		proxy.Set(memcachedtest.Stall)
		reader.send("get n\r\n")
		writer.send("incr n 1\r\n")
		waitFor(t, "both requests to reach the server", func() error {
			if server.Stat("cmd_get") == gets || server.Stat("incr_hits") == incrs {
				return errors.New("not there yet")
			}
			return nil
		})
		proxy.Cut()
		proxy.Set(memcachedtest.Pass)
		if values, err := reader.values(); err != nil || len(values) != 1 {
			t.Errorf("the read on the cut connection gives %v, %v", values, err)
		}
		if reply, err := writer.line(); !failed(err) {
			t.Errorf("the write on the cut connection gives %q, %v; want SERVER_ERROR", reply, err)
		}
		reader.mustGet(t, "n", strconv.Itoa(i+2)) // once each: nothing was done twice
	}
}

// TestFaultyReplies breaks one backend's replies in every way while clients check each of theirs. Nothing may reach
// the wrong request, no client connection may break, and service must be whole again after each fault.
func TestFaultyReplies(t *testing.T) {
	faults := []struct {
		name  string
		fault memcachedtest.Fault
	}{
		{"reset", memcachedtest.Reset},
		{"garbage", memcachedtest.Garbage},
		{"half a reply", memcachedtest.Truncate},
		{"stall", memcachedtest.Stall},
		{"refuse", memcachedtest.Refuse},
		{"delay", memcachedtest.Delay},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			servers := memcachedtest.StartN(t, 3)
			proxy := memcachedtest.Proxy(t, servers[1].Addr())
			r := startConfigured(t, []string{servers[0].Addr(), proxy.Addr(), servers[2].Addr()}, "timeout: 300ms")
			l := startLoad(t, r.addr, 6)
			for range 3 {
				l.progress(100)
				proxy.Set(f.fault)
				l.progress(200)
				proxy.Set(memcachedtest.Pass)
				l.cleanly(500)
			}
			done, failed := l.finish()
			t.Logf("%d requests went well, %d failed", done, failed)
		})
	}
}

// TestServersComeAndGoUnderLoad kills, stops and restarts servers while clients check every reply.
func TestServersComeAndGoUnderLoad(t *testing.T) {
	servers := memcachedtest.StartN(t, 3)
	r := startConfigured(t, memcachedtest.Addrs(servers), "timeout: 300ms")
	l := startLoad(t, r.addr, 6)
	for i := range 3 {
		l.progress(200)
		servers[i].Stop()
		l.progress(200)
		servers[(i+1)%3].Pause()
		l.progress(20)
		servers[(i+1)%3].Resume()
		servers[i].Restart()
		l.cleanly(1000)
	}
	done, failed := l.finish()
	t.Logf("%d requests went well, %d failed", done, failed)
	if failed == 0 {
		t.Error("no request failed: the faults were not felt")
	}
}

// TestClientsDisappearMidValue has clients vanish with half a value sent: nothing is stored, and the connections to
// the backend are left alone.
func TestClientsDisappearMidValue(t *testing.T) {
	server := memcachedtest.Start(t)
	// One loop, whose one connection the set below has used; and no probes, which have their own.
	r := startRouter(t, []string{server.Addr()}, "--loops", "1", "--no-membership")
	c := connect(t, r.addr)
	c.mustSet(t, "other", "before")
	before := server.Stat("total_connections")
	for i := range 50 {
		gone := connect(t, r.addr)
		size := 1 << (i % 20)
		if err := gone.send(fmt.Sprintf("get other\r\nset half 0 0 %d\r\n%s", size+2, strings.Repeat("h", size))); err != nil {
			t.Fatal(err)
		}
		if _, err := gone.values(); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			gone.conn.(*net.TCPConn).SetLinger(0)
		}
		gone.conn.Close()
		c.mustGet(t, "other", "before")
	}
	if values, err := c.get("half"); err != nil || len(values) != 0 {
		t.Errorf("half a value was stored: %d, %v", len(values), err)
	}
	// The second look is a connection of its own, and so was the first.
	if after := server.Stat("total_connections"); after != before+1 {
		t.Errorf("the backend was connected to %d times by disappearing clients", after-before-1)
	}
}

// TestClientsDisappearBeforeTheReply leaves replies without a taker, which must not reach anybody else.
func TestClientsDisappearBeforeTheReply(t *testing.T) {
	server := memcachedtest.Start(t)
	proxy := memcachedtest.Proxy(t, server.Addr())
	r := startRouter(t, []string{proxy.Addr()})
	c := connect(t, r.addr)
	c.mustSet(t, "mine", "my value")
	c.mustSet(t, "theirs", strings.Repeat("t", 20000))
	for range 10 {
		gone := connect(t, r.addr)
		proxy.Set(memcachedtest.Stall)
		if err := gone.send("get theirs\r\nget theirs mine\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := c.send("get mine\r\n"); err != nil {
			t.Fatal(err)
		}
		gone.conn.Close()
		proxy.Set(memcachedtest.Pass)
		values, err := c.values()
		if err != nil || values["mine"] != "my value" || len(values) != 1 {
			t.Fatalf("get mine gives %d values, %v", len(values), err)
		}
	}
}

// TestProbesAreSilent opens and closes connections without a byte, as TCP health checks do: no log line each.
func TestProbesAreSilent(t *testing.T) {
	server := memcachedtest.Start(t)
	r := startRouter(t, []string{server.Addr()})
	connect(t, r.addr).mustSet(t, "k", "v")
	before := len(r.log.String())
	for range 100 {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	probe := connect(t, r.addr)
	probe.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if reply, err := io.ReadAll(probe.conn); err != nil || len(reply) != 0 {
		t.Errorf("an HTTP request gets %q, %v", reply, err)
	}
	connect(t, r.addr).mustGet(t, "k", "v")
	if log := r.log.String()[before:]; log != "" {
		t.Errorf("probes made the router log:\n%s", log)
	}
}
