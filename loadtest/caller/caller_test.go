package caller

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

const patience = 10 * time.Second

func TestCallerSpeaksToMemcached(t *testing.T) {
	server := memcachedtest.Start(t)
	c := &Conn{Target: server.Addr(), Timeout: patience}
	defer c.Close()
	f := func(want string, wantHit bool) {
		t.Helper()
		if got, hit, err := c.Get("k"); string(got) != want || hit != wantHit || err != nil {
			t.Errorf("get: %.20q, %v, %v; want %.20q, %v", got, hit, err, want, wantHit)
		}
	}
	set := func(value string) {
		t.Helper()
		if err := c.Set("k", []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	f("", false)
	set("")
	f("", true)
	if stats, err := c.Stats(); stats["curr_items"] != 1 || stats["cmd_set"] != 1 || err != nil {
		t.Errorf("%v, %v", stats, err)
	}
	set("a\r\nEND\r\n")
	f("a\r\nEND\r\n", true)
	large := strings.Repeat("x", 900<<10)
	set(large)
	f(large, true)
	for range 2 {
		if err := c.Delete("k"); err != nil {
			t.Error(err)
		}
	}
	f("", false)
	if err := c.Set("k", []byte("v"), -1); err != nil { // expired at once
		t.Error(err)
	}
	f("", false)
}

func TestRefusalKeepsTheConnection(t *testing.T) {
	server := memcachedtest.Start(t)
	c := &Conn{Target: server.Addr(), Timeout: patience}
	defer c.Close()
	var refusal Refusal
	if err := c.Set("k", bytes.Repeat([]byte("x"), 2<<20), 0); !errors.As(err, &refusal) {
		t.Fatalf("error is %v, want a refusal", err)
	}
	if n := server.Stat("total_connections"); c.Set("k", nil, 0) != nil || server.Stat("total_connections") != n+1 {
		t.Error("the connection was made again") // one more is the one that Stat makes
	}
}

// serve answers each connection with one reply, and then closes it.
func serve(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 100))
			io.WriteString(conn, reply)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestWhatIsNoAnswerEndsTheConnection(t *testing.T) {
	f := func(reply string) {
		t.Helper()
		c := &Conn{Target: serve(t, reply), Timeout: patience}
		_, hit, err := c.Get("k")
		var refusal Refusal
		if err == nil || errors.As(err, &refusal) || hit || c.conn != nil {
			t.Errorf("%q: hit %v, error %v", reply, hit, err)
		}
	}
	f("")
	f("BANANA\r\n")
	f("STORED\r\n")
	f("VALUE other 0 1\r\nx\r\nEND\r\n")
	f("VALUE k 0 x\r\n")
	f("VALUE k 0 99999999999\r\n")
	f("VALUE k 0 1\r\nxyzEND\r\n")
	f("VALUE k 0 5\r\nab")
	f("VALUE k 0 1\r\nx\r\nVALUE j 0 1\r\nx\r\nEND\r\n")
}

func TestASilentTargetTimesOut(t *testing.T) {
	server := memcachedtest.Start(t)
	c := &Conn{Target: server.Addr(), Timeout: 50 * time.Millisecond}
	server.Pause()
	_, _, err := c.Get("k")
	server.Resume()
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("error is %v, want a timeout", err)
	}
	c.Timeout = patience
	if _, hit, err := c.Get("k"); hit || err != nil {
		t.Errorf("afterwards: %v, %v", hit, err)
	}
	server.Stop()
	if _, _, err := c.Get("k"); err == nil {
		t.Error("a server that is gone answered")
	}
}
