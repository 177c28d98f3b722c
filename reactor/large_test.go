package reactor

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// frames sends back frames, each a length and as many bytes, between two words of its own.
type frames struct {
	conn   *Conn
	within bool
	closed func(within bool)
}

func (h *frames) Received(b []byte) (taken int) {
	h.within = true
	for !h.conn.Paused() {
		n := frameLen(b[taken:])
		if n > len(b)-taken {
			h.conn.Expect(n)
			break
		}
		h.conn.WriteString("<")
		h.conn.Write(b[taken : taken+n])
		h.conn.WriteString(">")
		taken += n
		if h.conn.Buffered() > 1<<20 {
			h.conn.Pause()
		}
	}
	h.within = false
	return taken
}

func (h *frames) Flushed()     { h.conn.Resume() }
func (h *frames) Ended()       { h.conn.Finish() }
func (h *frames) Closed(error) { h.closed(h.within) }

// frameLen returns the length of the frame that b begins with, the number in front included.
func frameLen(b []byte) int {
	if len(b) < 4 {
		return 4
	}
	return 4 + int(binary.BigEndian.Uint32(b))
}

// frame returns a frame of n random bytes, the number in front included.
func frame(r *rand.Rand, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n-4))
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// framed is what comes back.
func framed(f []byte) []byte { return append(append([]byte("<"), f...), '>') }

func serveFrames(t *testing.T, l *Loop, network string, closed func(within bool)) net.Addr {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = t.TempDir() + "/s"
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := Serve(Listener{Net: ln, Handler: func(c *Conn) Handler { return &frames{conn: c, closed: closed} }}, []*Loop{l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return ln.Addr()
}

func statsOf(l *Loop) Stats {
	got := make(chan Stats)
	l.Post(func() { got <- l.Stats() })
	return <-got
}

// awaitBytes waits until a loop has received n bytes.
func awaitBytes(t *testing.T, l *Loop, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); statsOf(l).BytesIn < uint64(n); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes have not come", n)
		}
	}
}

// What is large comes and goes in order with what is small, however it is cut, while a socket changes from
// one way of receiving to the other.
func TestLargeAmongSmall(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		l := startLoops(t, 1, c)[0]
		for _, network := range []string{"tcp", "unix"} {
			nc := dial(t, serveFrames(t, l, network, func(bool) {}))
			r := rand.New(rand.NewPCG(1, 2))
			sizes := []int{10, 100 << 10, 4, 1000, largeRead - 1, largeRead, readSize, readSize + 1, 20_000, 100_000, scratchSize, scratchSize + 1, 1 << 20, 3 << 20}
			for range smallReads + 10 {
				sizes = append(sizes, 5+r.IntN(100))
			}
			for range 30 {
				sizes = append(sizes, 5+r.IntN(200_000))
			}
			for _, n := range sizes { // one at a time
				f := frame(r, n)
				nc.Write(f)
				got := make([]byte, n+2)
				if _, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, framed(f)) {
					t.Fatalf("%s, %d bytes: %v, or not what was sent", network, n, err)
				}
			}
			var sent, want []byte // and all that fit, cut anywhere
			for range 100 {
				f := frame(r, 5+int(r.ExpFloat64()*60_000))
				sent, want = append(sent, f...), append(want, framed(f)...)
			}
			go func() {
				for len(sent) > 0 {
					n := min(len(sent), 1+r.IntN(150_000))
					nc.Write(sent[:n])
					sent = sent[n:]
				}
			}()
			got := make([]byte, len(want))
			if _, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %v, or not what was sent", network, err)
			}
		}
	})
}

// A peer that does not read for a while gets all of it.
func TestLargeToSlowReader(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		l := startLoops(t, 1, c)[0]
		nc := dial(t, serveFrames(t, l, "tcp", func(bool) {}))
		nc.(*net.TCPConn).SetReadBuffer(16 << 10)
		r := rand.New(rand.NewPCG(3, 4))
		var sent, want []byte
		for range 80 {
			f := frame(r, 100<<10)
			sent, want = append(sent, f...), append(want, framed(f)...)
		}
		go nc.Write(sent)
		awaitBytes(t, l, len(sent)/10) // much has come, and cannot all be answered
		got := make([]byte, len(want))
		if _, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v, or not what was sent", err)
		}
	})
}

// When a peer is gone the handler is told once, and not while it writes.
func TestLargeToClosedPeer(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		l := startLoops(t, 1, c)[0]
		closings := make(chan bool, 100)
		addr := serveFrames(t, l, "tcp", func(within bool) { closings <- within })
		r := rand.New(rand.NewPCG(5, 6))
		const peers = 20
		for i := range peers {
			nc := dial(t, addr)
			for range 5 {
				nc.Write(frame(r, 100<<10))
			}
			if i%2 == 0 {
				nc.(*net.TCPConn).SetLinger(0)
			}
			nc.Close()
		}
		for range peers {
			if <-closings {
				t.Error("a handler was told of the end of its connection while it wrote")
			}
		}
		if n := statsOf(l).Connections; n != 0 || len(closings) > 0 {
			t.Errorf("%d connections are left, and %d were closed twice", n, len(closings))
		}
	})
}

// eachDirect runs a test on each engine that writes at once, with a connection to a loop that returns frames.
func eachDirect(t *testing.T, f func(t *testing.T, l *Loop, nc net.Conn)) {
	for _, e := range []Engine{Epoll, Uring} {
		t.Run(string(e), func(t *testing.T) {
			if err := Usable(e); err != nil {
				t.Skip(err)
			}
			l := startLoops(t, 1, Config{Engine: e})[0]
			f(t, l, dial(t, serveFrames(t, l, "unix", func(bool) {})))
		})
	}
}

// A large frame that was there is passed on without being moved, but for a first one, and for what
// is still on its way when it is looked for.
func TestLargeIsNotCopied(t *testing.T) {
	eachDirect(t, func(t *testing.T, l *Loop, nc net.Conn) {
		f := frame(rand.New(rand.NewPCG(7, 8)), 100<<10)
		got := make([]byte, len(f)+2)
		ask := func() {
			nc.Write(f)
			if _, err := io.ReadFull(nc, got); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		before := statsOf(l)
		const n = 50
		for range n {
			ask()
		}
		if copied := (statsOf(l).Copied - before.Copied) / n; copied > 100<<10/2 {
			t.Errorf("of each frame of %d bytes %d were copied", len(f), copied)
		}
	})
}

// A frame that is only announced holds no memory to speak of.
func TestLargeAnnounced(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		l := startLoops(t, 1, c)[0]
		nc := dial(t, serveFrames(t, l, "tcp", func(bool) {}))
		const came = 200_000
		held := func() int {
			n := make(chan int)
			l.Post(func() {
				sum := 0
				for c := range l.conns {
					sum += cap(c.in)
				}
				n <- sum
			})
			return <-n
		}
		nc.Write(append(binary.BigEndian.AppendUint32(nil, 64<<20), "begins"...))
		awaitBytes(t, l, 10)
		if n := held(); n > readSize {
			t.Errorf("10 bytes of a large frame hold %d", n)
		}
		nc.Write(make([]byte, came))
		awaitBytes(t, l, 10+came)
		if n := held(); n > 2*keptShare*came {
			t.Errorf("%d bytes of a large frame hold %d", came, n)
		}
	})
}

// What is small waits for the end of the turn; what is large leaves at once, behind it, and OnTurn comes first.
func TestLargeIsToldOfFirst(t *testing.T) {
	eachDirect(t, func(t *testing.T, l *Loop, nc net.Conn) {
		r := rand.New(rand.NewPCG(11, 12))
		small, large := frame(r, 10), frame(r, 100<<10)
		nc.Write(small)
		io.ReadFull(nc, make([]byte, len(framed(small)))) // it is served now
		l.Post(func() {
			told := 0
			l.OnTurn(func() { told++ })
			for c := range l.conns {
				was := c.Written()
				c.Write(small)
				if told != 0 || c.Written() != was {
					t.Error("what is small has left in the turn")
				}
				c.Write(large)
				if told != 1 || c.Written() == was {
					t.Errorf("told %d times before %d bytes left", told, c.Written()-was)
				}
			}
		})
		got := make([]byte, len(small)+len(large))
		if _, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, append(small, large...)) {
			t.Errorf("%v, or not what was written", err)
		}
	})
}

// A connection that is detached in the middle of something large is so with all that has come, whoever
// receives for it.
func TestLargeDetached(t *testing.T) {
	eachDirect(t, func(t *testing.T, l *Loop, nc net.Conn) {
		r := rand.New(rand.NewPCG(13, 14))
		first, second := frame(r, 100<<10), frame(r, 300<<10)
		nc.Write(first)
		io.ReadFull(nc, make([]byte, len(framed(first))))
		half := len(second) / 2
		nc.Write(second[:half])
		awaitBytes(t, l, len(first)+half)
		type detached struct {
			f    *os.File
			rest []byte
		}
		got := make(chan detached, 1)
		l.Post(func() {
			for c := range l.conns {
				f, rest, _ := c.Detach()
				got <- detached{f, rest}
			}
		})
		d := <-got
		if d.f == nil {
			t.Fatal("it could not be detached")
		}
		defer d.f.Close()
		nc.Write(second[half:])
		nc.Close()
		later, err := io.ReadAll(d.f)
		if whole := append(d.rest, later...); err != nil || !bytes.Equal(whole, second) {
			t.Errorf("%d bytes had come and %d came later, of %d: %v", len(d.rest), len(later), len(second), err)
		}
	})
}
