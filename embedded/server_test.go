package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCloseEndsEverything(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s, err := Start("unix:"+t.TempDir()+"/socket", Config{})
	if err != nil {
		t.Fatal(err)
	}
	idle, stuck, late := dial(t, s), dial(t, s), dial(t, s)
	idle.want("mn\r\n", "MN\r\n")
	late.want("mn\r\nset a 0 0 10\r\nabc", "MN\r\n")
	setFault(t, s, Stuck)
	stuck.want("mn\r\n", "")
	var closers sync.WaitGroup
	for range 3 { // twice is as good as once, at once too
		closers.Go(func() { s.Close() })
	}
	closers.Wait()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	for _, c := range []*client{idle, stuck, late} {
		if got, _ := c.rest(); got != "" {
			t.Errorf("got %q after Close", got)
		}
	}
	if c, err := net.Dial("unix", s.addr.String()); err == nil {
		c.Close()
		t.Error("still listening after Close")
	}
}

func TestServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Version: "9.8.7"})
	if s.Addr() != "" {
		t.Errorf("address %q before Serve", s.Addr())
	}
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	waitFor(t, func() error {
		if s.Addr() != ln.Addr().String() {
			return fmt.Errorf("address %q", s.Addr())
		}
		return nil
	})
	dial(t, s).want("version\r\n", "VERSION 9.8.7\r\n")
	again, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(again); !errors.Is(err, ErrListening) {
		t.Errorf("second Serve: %v", err)
	}
	s.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Serve(again); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
	ours, theirs := net.Pipe()
	s.ServeConn(theirs)
	if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection after Close: %v", err)
	}
}

func TestAddressInUse(t *testing.T) {
	s := start(t, Config{})
	if _, err := Start(s.Addr(), Config{}); err == nil || !strings.Contains(err.Error(), "cannot start an embedded server") {
		t.Errorf("got %v", err)
	}
}

// A client that writes much and reads nothing must not make the server hold the replies.
func TestUnreadRepliesStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		const n, size = 10000, 1000
		c.want(set("a", size), "STORED\r\n")
		var wrote atomic.Int64
		go func() {
			for range n / 500 {
				k, _ := io.WriteString(c.net, strings.Repeat("get a\r\n", 500)) // fits one read
				wrote.Add(int64(k))
			}
		}()
		synctest.Wait() // until the server waits for the client, and the client for it
		for conn := range s.conns {
			if len(conn.out) > keptBuffer+2*size || len(conn.in) > 2*firstBuffer {
				t.Errorf("the server holds %d bytes of replies and %d of requests", len(conn.out), len(conn.in))
			}
		}
		if got := wrote.Load(); got > 2*firstBuffer {
			t.Errorf("%d bytes of requests were taken from a client that reads nothing", got)
		}
		for range n {
			c.want("", "VALUE a 0 1000\r\n"+strings.Repeat("v", size)+"\r\nEND\r\n")
		}
	})
}

func TestManyClients(t *testing.T) {
	s := start(t, Config{})
	dial(t, s).want("set n 0 0 1\r\n0\r\n", "STORED\r\n")
	const clients, rounds = 20, 100
	var running sync.WaitGroup
	for i := range clients {
		c := dial(t, s)
		running.Go(func() {
			for j := range rounds {
				c.want(fmt.Sprintf("incr n 1 noreply\r\nset k%d 0 0 2\r\n%02d\r\nget k%d\r\n", i, j, i),
					fmt.Sprintf("STORED\r\nVALUE k%d 0 2\r\n%02d\r\nEND\r\n", i, j))
			}
		})
	}
	running.Wait()
	dial(t, s).want("get n\r\n", "VALUE n 0 4\r\n2000\r\nEND\r\n")
}

func TestGomemcache(t *testing.T) {
	s, err := Start("unix:"+t.TempDir()+"/socket", Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := memcache.New(strings.TrimPrefix(s.Addr(), "unix:"))
	defer c.Close()
	c.Timeout = patience
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	big := bytes.Repeat([]byte("v"), 1<<20-100)
	check("ping", c.Ping(), nil)
	check("set", c.Set(&memcache.Item{Key: "a", Value: []byte("1"), Flags: 7, Expiration: 100}), nil)
	check("add", c.Add(&memcache.Item{Key: "a"}), memcache.ErrNotStored)
	check("replace", c.Replace(&memcache.Item{Key: "b"}), memcache.ErrNotStored)
	check("big", c.Set(&memcache.Item{Key: "big", Value: big}), nil)
	n, err := c.Increment("a", 8)
	check("incr", err, nil)
	if n != 9 {
		t.Errorf("incr: got %d", n)
	}
	check("append", c.Append(&memcache.Item{Key: "a", Value: []byte("9")}), nil)
	check("touch", c.Touch("a", 1000), nil)
	it, err := c.Get("a")
	check("get", err, nil)
	if string(it.Value) != "99" || it.Flags != 7 {
		t.Errorf("get: got %q with flags %d", it.Value, it.Flags)
	}
	check("cas", c.CompareAndSwap(it), nil)
	check("late cas", c.CompareAndSwap(it), memcache.ErrCASConflict)
	items, err := c.GetMulti([]string{"a", "none", "big"})
	check("multi", err, nil)
	if len(items) != 2 || !bytes.Equal(items["big"].Value, big) {
		t.Errorf("multi: got %d items", len(items))
	}
	check("delete", c.Delete("a"), nil)
	check("delete nothing", c.Delete("a"), memcache.ErrCacheMiss)
	check("flush", c.DeleteAll(), nil)
	_, err = c.Get("big")
	check("miss", err, memcache.ErrCacheMiss)
}

func TestStats(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	c.want("set a 0 0 1\r\nx\r\nget a b\r\nincr a 1\r\ndelete b\r\ntouch a 100\r\ncas a 0 0 1 1234\r\nx\r\n",
		"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nNOT_FOUND\r\nTOUCHED\r\nEXISTS\r\n")
	got := stats(c, "stats\r\n")
	for name, want := range map[string]string{
		"cmd_get": "2", "get_hits": "1", "get_misses": "1", "cmd_set": "2", "delete_misses": "1", "touch_hits": "1",
		"cas_badval": "1", "curr_items": "1", "total_items": "1", "curr_connections": "1", "limit_maxbytes": "67108864",
		"bytes": fmt.Sprint(itemSize(1, 1, 0) + bookkeeping),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
	if n := stats(c, "stats items\r\n")["items:1:number"]; n != "1" {
		t.Errorf("%q items", n)
	}
	if n := stats(c, "stats slabs\r\n")["1:used_chunks"]; n != "1" {
		t.Errorf("%q chunks", n)
	}
	if n := len(stats(c, "stats conns\r\n")); n != 2 {
		t.Errorf("%d lines for one connection, want 2", n)
	}
	c.want("verbosity 1\r\n", "OK\r\n")
	if v := stats(c, "stats settings\r\n")["verbosity"]; v != "1" {
		t.Errorf("verbosity %q", v)
	}
	c.want("touch a 0\r\nms YmluYXJ5 1 b\r\nx\r\nset c 0 0 2\r\nxx\r\n", "TOUCHED\r\nHD\r\nSTORED\r\n")
	c.want("stats cachedump 1 0\r\n", "ITEM c [2 b; 0 s]\r\nITEM a [1 b; 0 s]\r\nEND\r\n")
	c.want("stats cachedump 1 1\r\nstats cachedump 2 0\r\n", "ITEM c [2 b; 0 s]\r\nEND\r\nEND\r\n")
	c.want("stats cachedump 64 0\r\nstats reset\r\n", "CLIENT_ERROR Illegal slab id\r\nRESET\r\n")
	if n := stats(c, "stats\r\n")["cmd_get"]; n != "0" {
		t.Errorf("cmd_get is %q after a reset", n)
	}
}

// stats returns what a stats request answers.
func stats(c *client, request string) map[string]string {
	c.t.Helper()
	c.want(request, "")
	all := make(map[string]string)
	for line := c.line(); line != "END\r\n"; line = c.line() {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "STAT" {
			c.t.Fatalf("line %q", line)
		}
		all[f[1]] = f[2]
	}
	return all
}
