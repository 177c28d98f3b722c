package router_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/reactor"
	"cacherouter/router"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waiting for what must come.
const patience = time.Minute

// modulo spreads keys over n servers.
type modulo int

func (m modulo) Pick(dst []int, hash uint64, n int) []int {
	for i := range min(n, int(m)) {
		dst = append(dst, int((hash+uint64(i))%uint64(m)))
	}
	return dst
}

// table returns a table of servers at addresses, by modulo.
func table(addrs ...string) *router.Table {
	t := &router.Table{Picker: modulo(len(addrs))}
	for i, a := range addrs {
		t.Servers = append(t.Servers, router.Server{Name: fmt.Sprint("n", i), Address: a})
	}
	return t
}

// keyFor returns the i-th key that lives on server s of n.
func keyFor(s, n, i int) string {
	for k := 0; ; k++ {
		key := fmt.Sprintf("key%d", k)
		if xxhash.Sum64String(key)%uint64(n) != uint64(s) {
			continue
		}
		if i--; i < 0 {
			return key
		}
	}
}

// engines runs a test with a router of each engine.
func engines(t *testing.T, f func(t *testing.T, c config)) {
	for _, e := range reactor.Engines() {
		t.Run(string(e), func(t *testing.T) { f(t, config{Config: router.Config{Engine: e}}) })
	}
}

// config is that of a router with one pool, unless it names others.
type config struct {
	router.Config
	Pool router.PoolConfig
}

// router makes the router.
func (c config) router() (*router.Router, error) {
	if c.Pools == nil {
		c.Pools = []router.PoolConfig{c.Pool}
	}
	return router.New(c.Config)
}

// running is a router in this process, and its first pool.
type running struct {
	*router.Router
	*router.Pool
	t    testing.TB
	addr string
}

// start runs a router in front of servers until the test ends. It believes that it has run
// for an hour.
func start(t testing.TB, c config, addrs ...string) *running {
	t.Helper()
	c.Pool.Table = table(addrs...)
	return launch(t, c, time.Hour)
}

// launch runs a router of some age until the test ends.
func launch(t testing.TB, c config, age time.Duration) *running {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Pool.Timeout == 0 {
		c.Pool.Timeout = patience
	}
	r, err := c.router()
	if err != nil {
		t.Fatal(err)
	}
	router.Age(r, age)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		r.StopListening()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the router ended: %v", err)
		}
	})
	if err := r.Serve(ln, router.Listen{}); err != nil {
		t.Fatal(err)
	}
	return &running{r, r.Pools()[0], t, ln.Addr().String()}
}

// total returns the counters of all loops.
func (r *running) total() router.Snapshot {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	snaps, err := r.Snapshots(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return router.Total(snaps)
}

// until waits for a condition on the counters.
func (r *running) until(what string, cond func(router.Snapshot) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !cond(r.total()); {
		select {
		case <-time.After(time.Millisecond):
		case <-time.After(time.Until(deadline)):
			r.t.Fatalf("never: %s", what)
		}
	}
}

// addresses starts n memcached and returns where they are.
func addresses(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for _, s := range memcachedtest.StartN(t, n, memcachedtest.Steady...) {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// client is a connection to a router, or to a server.
type client struct {
	t  testing.TB
	nc *net.TCPConn
	r  *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &client{t, nc.(*net.TCPConn), bufio.NewReader(nc)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.nc, s); err != nil {
		c.t.Fatalf("cannot send %.80q: %v", s, err)
	}
}

// want reads exactly what is wanted.
func (c *client) want(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.r, got)
	if string(got) == want {
		return
	}
	i := 0
	for i < n && got[i] == want[i] {
		i++
	}
	c.t.Fatalf("after %d bytes came %.200q, %v; want %.200q", i, got[i:n], err, want[i:])
}

// ask sends a request and wants its reply.
func (c *client) ask(request, reply string) {
	c.t.Helper()
	c.send(request)
	c.want(reply)
}

// wantEnd waits until the other side has closed, with nothing more said.
func (c *client) wantEnd() {
	c.t.Helper()
	if b, err := io.ReadAll(c.r); len(b) > 0 || err != nil {
		c.t.Fatalf("wanted the end, got %.200q, %v", b, err)
	}
}

// lines reads lines up to one that is last.
func (c *client) lines(last string) (lines []string) {
	c.t.Helper()
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			c.t.Fatalf("%v after %q", err, lines)
		}
		lines = append(lines, strings.TrimSuffix(line, "\r\n"))
		if lines[len(lines)-1] == last {
			return lines
		}
	}
}

func hit(key, value string) string {
	return fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\n", key, len(value), value)
}

func set(key, value string) string {
	return fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value)
}

// fake is a server whose every byte is said by the test.
type fake struct {
	t     testing.TB
	ln    net.Listener
	peers chan *client
}

func listen(t testing.TB) *fake {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, ln: ln, peers: make(chan *client, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			nc.SetDeadline(time.Now().Add(patience))
			f.peers <- &client{t, nc.(*net.TCPConn), bufio.NewReader(nc)}
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
		close(f.peers)
		for p := range f.peers {
			p.nc.Close()
		}
	})
	return f
}

func (f *fake) addr() string { return f.ln.Addr().String() }

// accept returns the next connection of the router.
func (f *fake) accept() *client {
	f.t.Helper()
	select {
	case p := <-f.peers:
		f.t.Cleanup(func() { p.nc.Close() })
		return p
	case <-time.After(patience):
		f.t.Fatal("the router does not connect")
		return nil
	}
}
