package reactor

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// turning is a loop on io_uring whose turns a test takes.
type turning struct {
	*testing.T
	l *Loop
	p *ringPoller
}

func newTurning(t *testing.T, c Config) turning {
	t.Helper()
	if err := Usable(Uring); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	c.Engine = Uring
	l, err := NewLoop(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close(); runtime.UnlockOSThread() })
	return turning{t, l, l.poller.(*ringPoller)}
}

// do does f in a turn of the loop, and another turn for what comes of it.
func (t turning) do(f func()) {
	t.Helper()
	for _, f := range []func(){f, func() {}} {
		t.l.Post(f)
		if err := t.l.Turn(); err != nil {
			t.Fatal(err)
		}
	}
}

// conn returns a new connection that has written text, and its peer.
func (t turning) conn(text string) (c *Conn, peer int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	t.do(func() {
		c, err = t.l.attachFd(t.p.open(fds[0], false), false, func(*Conn) Handler { return silent{} })
		if err != nil {
			t.Error(err)
			return
		}
		c.Write([]byte(text))
	})
	return c, fds[1]
}

// want wants a peer to have text, or to see its end if that is "".
func (t turning) want(peer int, text string) {
	t.Helper()
	unix.Poll([]unix.PollFd{{Fd: int32(peer), Events: unix.POLLIN}}, 10_000)
	b := make([]byte, 100)
	if n, err := unix.Read(peer, b); string(b[:max(n, 0)]) != text || err != nil {
		t.Errorf("got %q, %v; want %q", b[:max(n, 0)], err, text)
	}
}

func (t turning) wantFile(c *Conn, registered bool) {
	t.Helper()
	if got := c.sock.(*ringSocket).file.registered; got != registered {
		t.Errorf("registered: %v, want %v", got, registered)
	}
}

// A file is no longer registered when its connection is closed, so that the peer sees its end,
// and the next to have its place sends to its own.
func TestFileOfClosedConnection(t *testing.T) {
	loop := newTurning(t, Config{})
	if loop.p.places == 0 {
		t.Skip("the kernel registers no files as they are needed here")
	}
	first, peer := loop.conn("first")
	loop.wantFile(first, true)
	loop.want(peer, "first")
	loop.do(first.Close)
	loop.want(peer, "")
	second, peer := loop.conn("second")
	if was, is := first.sock.(*ringSocket).seat, second.sock.(*ringSocket).seat; was != is {
		t.Errorf("places %d and %d", was, is)
	}
	loop.want(peer, "second")
}

// A connection that was taken off its loop is kept open by nothing but its descriptor.
func TestFileOfDetachedConnection(t *testing.T) {
	loop := newTurning(t, Config{})
	c, peer := loop.conn("hello")
	loop.want(peer, "hello")
	loop.do(func() {
		f, _, ok := c.Detach()
		if !ok {
			t.Error("cannot be detached")
			return
		}
		f.Close()
	})
	loop.want(peer, "")
}

// Where files are not registered, all goes on without.
func TestUnregisteredFiles(t *testing.T) {
	t.Run("no place", func(t *testing.T) {
		loop := newTurning(t, Config{})
		loop.p.places = 0
		c, peer := loop.conn("hello")
		loop.wantFile(c, false)
		loop.want(peer, "hello")
	})
	t.Run("registering fails", func(t *testing.T) {
		loop := newTurning(t, Config{})
		if loop.p.places == 0 {
			t.Skip("the kernel registers no files as they are needed here")
		}
		c, peer := loop.conn("hello")
		loop.want(peer, "hello")
		loop.do(func() { loop.p.ring.SetFile(int(c.sock.(*ringSocket).seat), -1, uint64(other)<<56) })
		loop.do(func() { c.Write([]byte("again")) })
		loop.do(func() {}) // which finds the socket writable
		loop.wantFile(c, false)
		loop.want(peer, "again")
	})
	for _, kernel := range []Config{{kernel: linux519}, {kernel: linux61}} {
		loop := newTurning(t, kernel)
		if loop.p.places > 0 {
			t.Errorf("there are places with kernel %d", kernel.kernel)
		}
	}
}
