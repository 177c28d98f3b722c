package backend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cacherouter/memproto"
	"cacherouter/reactor"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waiting for what must come; a test that passes never waits so long.
const patience = time.Minute

// engines runs a test under each way a loop can serve its sockets.
func engines(t *testing.T, f func(t *testing.T, l *loop)) {
	for _, e := range reactor.Engines() {
		t.Run(string(e), func(t *testing.T) { f(t, startLoop(t, reactor.Config{Engine: e})) })
	}
}

// loop is a running event loop.
type loop struct {
	t testing.TB
	*reactor.Loop
}

func startLoop(t testing.TB, c reactor.Config) *loop {
	t.Helper()
	l, err := reactor.NewLoop(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return &loop{t, l}
}

// do runs f on the loop's goroutine and returns when it has.
func (l *loop) do(f func()) {
	l.t.Helper()
	done := make(chan struct{})
	if !l.Post(func() { defer close(done); f() }) {
		l.t.Fatal("the loop has ended")
	}
	<-done
}

// until waits for a condition that is read on the loop's goroutine.
func (l *loop) until(what string, cond func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		var ok bool
		l.do(func() { ok = cond() })
		if ok {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-time.After(time.Until(deadline)):
			l.t.Fatalf("never: %s", what)
		}
	}
}

// opened waits until the small lane is connected.
func (l *loop) opened(s *Server) {
	l.t.Helper()
	l.until("the connection stands", func() bool { return s.lanes[Small].conn != nil })
}

// start makes a server's view on the loop. Fields of c that are zero get values that do
// not matter; the view is closed with the test.
func (l *loop) start(c Config) *Server {
	l.t.Helper()
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = c.Timeout
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = 64 << 20
	}
	if c.BulkSize == 0 {
		c.BulkSize = 1 << 10
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	var s *Server
	l.do(func() { s = New(l.Loop, c) })
	l.t.Cleanup(func() { l.Post(s.Close) })
	return s
}

// asked is a call and what became of it, in order: replies as they came, failures as
// "failed: " and the reason, "restarted".
type asked struct {
	Call
	t      testing.TB
	events chan string
	refuse bool // Replied says that no unit is an answer
}

func (a *asked) Replied(_ *Call, u memproto.Unit, b []byte) bool {
	a.events <- string(b)
	return !a.refuse
}
func (a *asked) Failed(_ *Call, f Failure) { a.events <- "failed: " + f.Error() }
func (a *asked) Restarted(*Call)           { a.events <- "restarted" }

// due makes a call's time end in d.
func (s *Server) due(c *Call, d time.Duration) { c.sent = s.loop.Elapsed() + d - s.cfg.Timeout }

// newCall makes a call for a request with one key.
func newCall(t testing.TB, request string) *asked {
	t.Helper()
	var r memproto.Request
	if _, status := new(memproto.Parser).Parse([]byte(request), &r); status != memproto.Complete {
		t.Fatalf("%q is no request", request)
	}
	a := &asked{t: t, events: make(chan string, 64)}
	a.Owner, a.Verb, a.Repeatable = a, r.Verb, r.Repeatable()
	if r.NumKeys == 1 {
		a.Key = bytes.Clone(r.Key)
	}
	return a
}

// ask sends requests in one turn of the loop, on the small lane.
func (l *loop) ask(s *Server, requests ...string) []*asked {
	l.t.Helper()
	var all []*asked
	for _, r := range requests {
		all = append(all, newCall(l.t, r))
	}
	l.do(func() {
		for i, a := range all {
			s.Send(&a.Call, Small, []byte(requests[i]))
		}
	})
	return all
}

// askUntil asks again until the answer is the one wanted.
func (l *loop) askUntil(s *Server, request, want string) {
	l.t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		a := l.ask(s, request)[0]
		for last = <-a.events; last == "restarted"; last = <-a.events {
		}
		if last == want {
			return
		}
	}
	l.t.Fatalf("%q: %q, never %q", request, last, want)
}

// want checks the next events of a call.
func (a *asked) want(events ...string) {
	a.t.Helper()
	for _, want := range events {
		select {
		case got := <-a.events:
			if got != want {
				a.t.Fatalf("got %q, want %q", got, want)
			}
		case <-time.After(patience):
			a.t.Fatalf("nothing came, want %q", want)
		}
	}
}

// silent checks that nothing has become of the call yet.
func (a *asked) silent() {
	a.t.Helper()
	if len(a.events) > 0 {
		a.t.Fatalf("got %q too early", <-a.events)
	}
}

// fake is a server whose every byte is said by the test.
type fake struct {
	t     testing.TB
	ln    net.Listener
	peers chan *peer
}

func listen(t testing.TB, addr string) *fake {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, ln: ln, peers: make(chan *peer, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			f.peers <- &peer{t, nc.(*net.TCPConn)}
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
		for len(f.peers) > 0 {
			(<-f.peers).nc.Close()
		}
	})
	return f
}

func (f *fake) addr() string { return f.ln.Addr().String() }

// accept returns the next connection.
func (f *fake) accept() *peer {
	f.t.Helper()
	select {
	case p := <-f.peers:
		p.nc.SetDeadline(time.Now().Add(patience))
		f.t.Cleanup(func() { p.nc.Close() })
		return p
	case <-time.After(patience):
		f.t.Fatal("nobody connects")
		return nil
	}
}

// peer is one connection of a fake server.
type peer struct {
	t  testing.TB
	nc *net.TCPConn
}

// expect reads exactly what is wanted.
func (p *peer) expect(want string) {
	p.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(p.nc, got)
	if string(got) != want {
		p.t.Fatalf("the server got %.200q, %v; want %.200q", got[:n], err, want)
	}
}

func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.nc, s); err != nil {
		p.t.Fatalf("cannot send %q: %v", s, err)
	}
}

func (p *peer) reset() {
	p.nc.SetLinger(0)
	p.nc.Close()
}

// expectClosed waits until the other side has closed, with nothing more said.
func (p *peer) expectClosed() {
	p.t.Helper()
	b, err := io.ReadAll(p.nc)
	if len(b) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		p.t.Fatalf("wanted the end, got %.200q, %v", b, err)
	}
}

// logged collects log lines.
type logged struct {
	mu  sync.Mutex
	buf strings.Builder // guarded by mu
}

func (w *logged) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

// count returns how many lines hold s.
func (w *logged) count(s string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.buf.String(), s)
}
