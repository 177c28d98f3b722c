package reactor

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// As in uring, which is there on Linux only.
const linux519, linux61 = 1, 2

// eachEngine runs a test once for each way a loop can serve its sockets.
func eachEngine(t *testing.T, f func(t *testing.T, c Config)) {
	t.Run("default", func(t *testing.T) { f(t, Config{}) })
	t.Run("spare", func(t *testing.T) { withSpare(func() { f(t, Config{Spare: true}) }) })
	if err := Usable(Epoll); err == nil {
		t.Run("epoll", func(t *testing.T) { f(t, Config{Engine: Epoll}) })
		t.Run("epoll, spare", func(t *testing.T) { withSpare(func() { f(t, Config{Engine: Epoll, Spare: true}) }) })
	}
	t.Run("portable", func(t *testing.T) { f(t, Config{Engine: Portable}) })
	if err := Usable(Uring); err != nil {
		t.Run("uring", func(t *testing.T) { t.Skip(err) })
		return
	}
	t.Run("uring", func(t *testing.T) { f(t, Config{Engine: Uring}) })
	t.Run("uring of Linux 6.1", func(t *testing.T) { f(t, Config{Engine: Uring, kernel: linux61}) })
	t.Run("uring of Linux 5.19", func(t *testing.T) { f(t, Config{Engine: Uring, kernel: linux519}) })
}

// withSpare calls f with a processor to spare; no test has more than two loops.
func withSpare(f func()) {
	was := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(was)
	runtime.GOMAXPROCS(max(was, 3))
	f()
}

// startLoops runs n loops until the test ends.
func startLoops(t *testing.T, n int, c Config) []*Loop {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	loops := make([]*Loop, n)
	for i := range loops {
		l, err := NewLoop(c)
		if err != nil {
			t.Fatal(err)
		}
		loops[i] = l
		wg.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return loops
}

// echo sends back what it gets, in lines; a line "quit" ends the connection.
type echo struct {
	conn   *Conn
	closed func(error)
}

func (e *echo) Received(b []byte) int {
	taken := 0
	for {
		i := bytes.IndexByte(b[taken:], '\n')
		if i < 0 || e.conn.Paused() {
			return taken
		}
		line := b[taken : taken+i+1]
		taken += i + 1
		e.conn.Write(line)
		if string(line) == "quit\n" {
			e.conn.Finish()
			return taken
		}
		if e.conn.Buffered() > 1<<20 {
			e.conn.Pause()
		}
	}
}
func (e *echo) Flushed()         { e.conn.Resume() }
func (e *echo) Ended()           { e.conn.Finish() }
func (e *echo) Closed(err error) { e.closed(err) }

// serveEcho starts an echo server and returns its address and the closings it sees.
func serveEcho(t *testing.T, loops []*Loop, network, addr string) (net.Addr, chan error) {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	closings := make(chan error, 1000)
	stop, err := Serve(Listener{Net: ln, Handler: func(c *Conn) Handler {
		return &echo{c, func(err error) { closings <- err }}
	}}, loops)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return ln.Addr(), closings
}

func dial(t *testing.T, a net.Addr) net.Conn {
	t.Helper()
	nc, err := net.Dial(a.Network(), a.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	return nc
}

func TestEcho(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		loops := startLoops(t, 2, c)
		tcp, _ := serveEcho(t, loops, "tcp", "127.0.0.1:0")
		unix, _ := serveEcho(t, loops, "unix", filepath.Join(t.TempDir(), "s"))
		for _, a := range []net.Addr{tcp, unix, tcp, tcp} {
			nc := dial(t, a)
			for _, piece := range []string{"one\n", "t", "wo\nthr", "ee\nquit\n"} {
				io.WriteString(nc, piece)
			}
			got, err := io.ReadAll(nc)
			if string(got) != "one\ntwo\nthree\nquit\n" || err != nil {
				t.Errorf("%s: got %q, %v", a, got, err)
			}
		}
	})
}

func TestHalfClose(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		addr, closings := serveEcho(t, startLoops(t, 1, c), "tcp", "127.0.0.1:0")
		nc := dial(t, addr)
		io.WriteString(nc, "a\nb\nunfinished")
		nc.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(nc); string(got) != "a\nb\n" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if err := <-closings; err != nil {
			t.Errorf("closed with %v", err)
		}
	})
}

// A peer that sends much and reads late gets every byte, and the loop does not hold all
// of them meanwhile.
func TestSlowReader(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		addr, _ := serveEcho(t, startLoops(t, 1, c), "tcp", "127.0.0.1:0")
		nc := dial(t, addr)
		line := append(bytes.Repeat([]byte("x"), 999), '\n')
		const lines = 50_000
		go func() {
			for range lines {
				nc.Write(line)
			}
			nc.(*net.TCPConn).CloseWrite()
		}()
		got, err := io.ReadAll(nc)
		if len(got) != lines*len(line) || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

func TestPeerReset(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		addr, closings := serveEcho(t, startLoops(t, 1, c), "tcp", "127.0.0.1:0")
		nc := dial(t, addr)
		io.WriteString(nc, "partial")
		nc.(*net.TCPConn).SetLinger(0)
		nc.Close()
		if err := <-closings; err == nil && c.Engine != Portable {
			t.Error("a reset connection closed without an error")
		}
	})
}

func TestDial(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		loops := startLoops(t, 1, c)
		addr, _ := serveEcho(t, loops, "tcp", "127.0.0.1:0")
		got := make(chan string, 1)
		loops[0].Post(func() {
			loops[0].Dial(addr.String(), time.Second, nil, func(c *Conn) Handler {
				c.WriteString("hello\n")
				return &collect{got}
			}, func(_ *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		})
		if s := <-got; s != "hello\n" {
			t.Errorf("got %q", s)
		}
		refused := make(chan error, 1)
		loops[0].Post(func() {
			loops[0].Dial("127.0.0.1:1", time.Second, nil, nil, func(_ *Conn, err error) { refused <- err })
		})
		if err := <-refused; err == nil {
			t.Error("a refused connection gave no error")
		}
	})
}

type collect struct{ got chan string }

func (c *collect) Received(b []byte) int { c.got <- string(b); return len(b) }
func (c *collect) Flushed()              {}
func (c *collect) Ended()                {}
func (c *collect) Closed(error)          {}

func TestTimersRunInOrder(t *testing.T) {
	l := startLoops(t, 1, Config{})[0]
	order := make(chan int, 3)
	l.Post(func() {
		now := l.Now()
		for i, d := range []time.Duration{30, 10, 20} {
			l.Set(&Timer{Func: func() { order <- i }}, now.Add(d*time.Millisecond))
		}
		stopped := &Timer{Func: func() { order <- 99 }}
		l.Set(stopped, now.Add(time.Millisecond))
		l.Stop(stopped)
	})
	for _, want := range []int{1, 2, 0} {
		if got := <-order; got != want {
			t.Errorf("timer %d ran, want %d", got, want)
		}
	}
}

func TestBuffersAreReused(t *testing.T) {
	var b buffers
	for _, n := range []int{1, bufferSize, bufferSize + 1, 1 << 20} {
		buf := b.take(n)
		if cap(buf) < n {
			t.Fatalf("take(%d) gave %d", n, cap(buf))
		}
		b.give(buf)
		if again := b.take(n); &again[:1][0] != &buf[:1][0] {
			t.Errorf("take(%d) did not reuse", n)
		}
	}
}
