package memcachedtest

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("cannot dial %s: %v", addr, err)
	}
	c.SetDeadline(time.Now().Add(startTimeout))
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends one request and returns what one read gives back.
func ask(t *testing.T, c net.Conn, request string) (string, error) {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	buf := make([]byte, 1<<10)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func wantReply(t *testing.T, c net.Conn, request, want string) {
	t.Helper()
	if got, err := ask(t, c, request); got != want || err != nil {
		t.Fatalf("reply to %q is %q, %v; want %q", request, got, err, want)
	}
}

func TestServersAreSeparate(t *testing.T) {
	servers := StartN(t, 2)
	wantReply(t, dial(t, servers[0].Addr()), "set k 0 0 1\r\nx\r\n", "STORED\r\n")
	wantReply(t, dial(t, servers[1].Addr()), "get k\r\n", "END\r\n")
	if n := servers[0].Stat("cmd_set"); n != 1 {
		t.Errorf("cmd_set = %d, want 1", n)
	}
}

func TestArgumentsReachTheProcess(t *testing.T) {
	s := Start(t, "-F")
	wantReply(t, dial(t, s.Addr()), "flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n")
}

func TestStopRefusesAndRestartIsEmpty(t *testing.T) {
	s := Start(t)
	wantReply(t, dial(t, s.Addr()), "set k 0 0 1\r\nx\r\n", "STORED\r\n")
	s.Stop()
	s.Stop()
	if c, err := net.Dial("tcp", s.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial while stopped: %v, %v; want connection refused", c, err)
	}
	s.Restart()
	wantReply(t, dial(t, s.Addr()), "get k\r\n", "END\r\n")
}

func TestPauseHoldsRepliesUntilResume(t *testing.T) {
	s := Start(t)
	c := dial(t, s.Addr())
	wantReply(t, c, "mn\r\n", "MN\r\n")
	s.Pause()
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if got, err := ask(t, c, "mn\r\n"); got != "" {
		t.Fatalf("a paused server answered %q, %v", got, err)
	}
	s.Resume()
	c.SetDeadline(time.Now().Add(startTimeout))
	buf := make([]byte, 4)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "MN\r\n" {
		t.Fatalf("after resume: %q, %v", buf, err)
	}
}

func TestUnixSocketServerComesBack(t *testing.T) {
	s := StartUnix(t)
	before := s.Stat("cmd_set")
	s.Restart()
	if after := s.Stat("cmd_set"); before != 0 || after != 0 {
		t.Errorf("cmd_set = %d, then %d; want 0", before, after)
	}
}

func TestProxyFaults(t *testing.T) {
	s := Start(t)
	p := Proxy(t, s.Addr())
	wantReply(t, dial(t, p.Addr()), "set k 0 0 5\r\nhello\r\n", "STORED\r\n")
	const hit = "VALUE k 0 5\r\nhello\r\nEND\r\n"

	p.Set(Delay)
	began := time.Now()
	wantReply(t, dial(t, p.Addr()), "get k\r\n", hit)
	if took := time.Since(began); took < ReplyDelay {
		t.Errorf("a delayed reply took %v, want at least %v", took, ReplyDelay)
	}

	p.Set(Garbage)
	wantReply(t, dial(t, p.Addr()), "get k\r\n", garbage)

	p.Set(Truncate)
	c := dial(t, p.Addr())
	io.WriteString(c, "get k\r\n")
	if got, err := io.ReadAll(c); err != nil || string(got) != hit[:(len(hit)+1)/2] {
		t.Errorf("truncated reply is %q, %v", got, err)
	}

	p.Set(Reset)
	if got, err := ask(t, dial(t, p.Addr()), "get k\r\n"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset gave %q, %v", got, err)
	}

	p.Set(Pass)
	wantReply(t, dial(t, p.Addr()), "get k\r\n", hit)
}

func TestProxyStallHoldsThenReleases(t *testing.T) {
	p := Proxy(t, Start(t).Addr())
	c := dial(t, p.Addr())
	p.Set(Stall)
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := ask(t, c, "mn\r\n"); got != "" {
		t.Fatalf("a stalled proxy passed %q, %v", got, err)
	}
	p.Set(Pass)
	c.SetReadDeadline(time.Now().Add(startTimeout))
	buf := make([]byte, 4)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "MN\r\n" {
		t.Fatalf("after the stall: %q, %v", buf, err)
	}
}

func TestProxyRefusesAndComesBack(t *testing.T) {
	p := Proxy(t, Start(t).Addr())
	c := dial(t, p.Addr())
	wantReply(t, c, "mn\r\n", "MN\r\n")
	p.Set(Refuse)
	if got, err := ask(t, c, "mn\r\n"); err == nil {
		t.Errorf("an old connection still answers %q", got)
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial under Refuse: %v", err)
	}
	p.Set(Pass)
	wantReply(t, dial(t, p.Addr()), "mn\r\n", "MN\r\n")
}

func TestProxyCutEndsWhatIsOpen(t *testing.T) {
	p := Proxy(t, Start(t).Addr())
	c := dial(t, p.Addr())
	wantReply(t, c, "mn\r\n", "MN\r\n")
	if n := p.Conns(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
	p.Cut()
	if got, err := ask(t, c, "mn\r\n"); err == nil {
		t.Errorf("a cut connection still answers %q", got)
	}
	wantReply(t, dial(t, p.Addr()), "mn\r\n", "MN\r\n")
}

func TestReservedPortRefuses(t *testing.T) {
	addr := Reserve(t)
	if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial of a reserved address: %v", err)
	}
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("reserved %q, want loopback", addr)
	}
}
