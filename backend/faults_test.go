package backend

import (
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/reactor"
)

// A connection that is reset: reads go out once more, in order and alone; a write may
// have been done and fails; a read that has had its second chance fails too.
func TestReset(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		calls := l.ask(s, "get a\r\n", "incr n 1\r\n", "mg v N30\r\n", "get b\r\n")
		p.expect("get a\r\nincr n 1\r\nmg v N30\r\nget b\r\n")
		p.reset()
		calls[0].want("restarted")
		calls[1].want("failed: connection lost")
		calls[2].want("failed: connection lost")
		calls[3].want("restarted")
		p = f.accept()
		p.expect("get a\r\nget b\r\n")
		p.send("END\r\n")
		calls[0].want("END\r\n")
		late := l.ask(s, "get c\r\n")[0]
		p.expect("get c\r\n")
		p.reset()
		calls[3].want("failed: connection lost")
		late.want("restarted")
		p = f.accept()
		p.expect("get c\r\n")
		p.send(hit("c", "3"))
		late.want(hit("c", "3"))
		l.do(func() {
			if st := s.Stats(); st.Retries != 3 || st.Failures[Lost] != 3 || st.InFlight != 0 {
				t.Errorf("stats are %+v", st)
			}
		})
	})
}

// The server ends the connection properly, in the middle of a reply.
func TestHalfAReply(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		calls := l.ask(s, "get a\r\n", "delete b\r\n")
		p.expect("get a\r\ndelete b\r\n")
		p.send("VALUE a 0 5\r\nhel")
		p.nc.Close()
		calls[0].want("restarted")
		calls[1].want("failed: connection lost")
		p = f.accept()
		p.expect("get a\r\n")
		p.send(hit("a", "hello"))
		calls[0].want(hit("a", "hello"))
	})
}

// Whatever makes no sense ends the connection; nothing of it is passed on.
func TestBadReplies(t *testing.T) {
	for _, reply := range []string{
		"WHAT\r\n", "STORED\r\n", "\r\n", "VALUE a 0 x\r\n", "VALUE a 0 1\r\nxyz\r\nEND\r\n", hit("b", "not asked for"),
		"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n", " END\r\n", "\x80\x00\r\n", strings.Repeat("x", 9000),
	} {
		engines(t, func(t *testing.T, l *loop) {
			f := listen(t, "127.0.0.1:0")
			s := l.start(Config{Address: f.addr()})
			p := f.accept()
			calls := l.ask(s, "get a\r\n", "incr n 1\r\n")
			p.send(reply + "5\r\n")
			calls[0].want("restarted")
			calls[1].want("failed: bad reply")
			p = f.accept()
			p.expect("get a\r\n")
			p.send(reply)
			calls[0].want("failed: bad reply")
			p = f.accept()
			last := l.ask(s, "get a\r\n")[0]
			p.expect("get a\r\n")
			p.send(hit("a", "1"))
			last.want(hit("a", "1"))
		})
	}
}

// Bytes that nobody asked for put the connection out of step before it is used.
func TestUnsolicited(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		p.send(hit("a", "old"))
		p.expectClosed()
		p = f.accept()
		a := l.ask(s, "get a\r\n")[0]
		p.expect("get a\r\n")
		p.send(hit("a", "new") + "END\r\n") // one more than was asked
		a.want(hit("a", "new"))
		p.expectClosed()
		f.accept()
		l.do(func() {
			if n := s.Stats().Unsolicited; n != 2 {
				t.Errorf("%d connections were dropped", n)
			}
		})
	})
}

// A reply that does not come in time fails its call and costs the connection, so that it
// cannot be taken for another's when it comes after all.
func TestTimeout(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr(), Timeout: 50 * time.Millisecond})
		p := f.accept()
		l.opened(s)
		began := time.Now()
		calls := l.ask(s, "get a\r\n", "set a 0 0 1\r\nx\r\n")
		calls[0].want("failed: timeout")
		calls[1].want("failed: timeout")
		if took := time.Since(began); took < 25*time.Millisecond {
			t.Errorf("timed out after %v", took)
		}
		p.expect("get a\r\nset a 0 0 1\r\nx\r\n")
		p.expectClosed()
		p = f.accept()
		// This one is late only if the machine is; the reply is there before the request.
		l.do(func() { s.cfg.Timeout = patience })
		a := l.ask(s, "get a\r\n")[0]
		p.expect("get a\r\n")
		p.send(hit("a", "1"))
		a.want(hit("a", "1"))
	})
}

// When the first of several calls is late, a read that still has time goes out again.
func TestTimeoutOfHeadRetriesRest(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr(), Timeout: 50 * time.Millisecond})
		p := f.accept()
		l.opened(s)
		head := newCall(t, "get a\r\n")
		read, write := newCall(t, "get b\r\n"), newCall(t, "incr n 1\r\n")
		l.do(func() {
			s.Send(&head.Call, Small, []byte("get a\r\n"))
			timeout := s.cfg.Timeout
			s.cfg.Timeout = patience
			s.due(&head.Call, timeout)
			s.Send(&read.Call, Small, []byte("get b\r\n"))
			s.Send(&write.Call, Small, []byte("incr n 1\r\n"))
		})
		head.want("failed: timeout")
		read.want("restarted")
		write.want("failed: timeout")
		p.expect("get a\r\nget b\r\nincr n 1\r\n")
		p.expectClosed()
		p = f.accept()
		p.expect("get b\r\n")
		p.send("END\r\n")
		read.want("END\r\n")
	})
}

// A reply that came in time is taken even if the loop has been too busy to look before
// the time was up.
func TestSlowLoopIsNotTheServersFault(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	f := listen(t, "127.0.0.1:0")
	s := l.start(Config{Address: f.addr()})
	p := f.accept()
	calls := l.ask(s, "get a\r\n", "get b\r\n")
	p.expect("get a\r\nget b\r\n")
	busy, done := make(chan struct{}), make(chan struct{})
	l.Post(func() {
		<-busy
		lane := &s.lanes[Small]
		s.due(lane.waiting.head, 0)
		s.due(lane.waiting.tail, 0)
		lane.expire()
		close(done)
	})
	p.send(hit("a", "1")) // and nothing for b
	close(busy)
	<-done
	calls[0].want(hit("a", "1"))
	calls[1].want("failed: timeout")
}

// A paused memcached keeps its connections open and answers nothing.
func TestPausedMemcached(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		m := memcachedtest.Start(t)
		s := l.start(Config{Address: m.Addr(), Timeout: 100 * time.Millisecond})
		l.askUntil(s, "set a 0 0 1\r\nx\r\n", "STORED\r\n")
		m.Pause()
		l.askUntil(s, "get a\r\n", "failed: timeout")
		m.Resume()
		l.askUntil(s, "get a\r\n", hit("a", "x"))
	})
}

// A killed memcached is noticed and, when it is there again, used again.
func TestKilledMemcached(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		m := memcachedtest.Start(t)
		s := l.start(Config{Address: m.Addr()})
		l.ask(s, "set a 0 0 1\r\nx\r\n")[0].want("STORED\r\n")
		m.Stop()
		l.until("the server is down", func() bool { return !s.Up() })
		m.Restart()
		l.until("the server is up", s.Up)
		l.ask(s, "get a\r\n")[0].want("END\r\n")
	})
}

// fullBacklog returns an address whose kernel answers no more connection attempts.
func fullBacklog(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "listener")
	t.Cleanup(func() { file.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	ln, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	addr := ln.Addr().String()
	for { // until no more are taken
		c, err := net.DialTimeout("tcp", addr, 500*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
}

// A host that does not answer at all is a timeout, for the calls that wait for the
// connection and for those that come later.
func TestConnectTimeout(t *testing.T) {
	addr := fullBacklog(t)
	engines(t, func(t *testing.T, l *loop) {
		var log logged
		s := l.start(Config{Address: addr, Timeout: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
		l.ask(s, "get a\r\n")[0].want("failed: timeout")
		l.until("the server is down", func() bool { return !s.Up() })
		l.ask(s, "get a\r\n")[0].want("failed: timeout")
		if log.count("err=timeout") != 1 {
			t.Errorf("the log says %s", log.buf.String())
		}
	})
}

// A server that takes every connection only to end it, as one with too many clients
// does, is not run down with attempts.
func TestServerThatHangsUp(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		began := time.Now()
		s := l.start(Config{Address: f.addr()})
		for range 5 {
			p := f.accept()
			io.WriteString(p.nc, "ERROR Too many open connections\r\n")
			p.nc.Close()
		}
		if took, least := time.Since(began), (50+100+200)*time.Millisecond/2; took < least {
			t.Errorf("five attempts in %v, want at least %v", took, least)
		}
		// Calls may have failed meanwhile; when the server takes clients again all is well.
		p := f.accept()
		l.until("the server is up", s.Up)
		a := l.ask(s, "get a\r\n")[0]
		p.expect("get a\r\n")
		p.send("END\r\n")
		a.want("END\r\n")
	})
}

// Two loops, one server: what changes is logged once.
func TestHealthIsLoggedOnce(t *testing.T) {
	for _, e := range reactor.Engines() {
		var log logged
		m := memcachedtest.Start(t)
		health := new(Health)
		var told atomic.Int32
		var loops []*loop
		var views []*Server
		for range 2 {
			l := startLoop(t, reactor.Config{Engine: e})
			loops = append(loops, l)
			views = append(views, l.start(Config{Name: "n1", Address: m.Addr(), Health: health, Log: slog.New(slog.NewTextHandler(&log, nil)), Reached: func() { told.Add(1) }}))
			l.ask(views[len(views)-1], "get a\r\n")[0].want("END\r\n")
		}
		all := func(what string, up bool) {
			t.Helper()
			for i, l := range loops {
				l.until(what, func() bool { return views[i].Up() == up })
			}
		}
		for round := 1; round <= 2; round++ {
			m.Stop()
			all("down", false)
			if health.Down() != 2 || log.count("server unreachable") != round || log.count("server reachable") != round-1 {
				t.Errorf("round %d, down: %d views down, the log says\n%s", round, health.Down(), log.buf.String())
			}
			m.Restart()
			all("up", true)
			if health.Down() != 0 || log.count("server unreachable") != round || log.count("server reachable") != round {
				t.Errorf("round %d, up: %d views down, the log says\n%s", round, health.Down(), log.buf.String())
			}
			if n := told.Load(); n != int32(2*round) {
				t.Errorf("round %d: who wants to know was told %d times", round, n)
			}
		}
		if !strings.Contains(log.buf.String(), "server=n1 addr="+m.Addr()) {
			t.Errorf("the log does not say which server: %s", log.buf.String())
		}
	}
}

// A view that is closed or retired while the server is down no longer counts as down,
// and says nothing more.
func TestHealthAfterClose(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		for name, end := range map[string]func(*Server){"close": (*Server).Close, "retire": (*Server).Retire} {
			health := new(Health)
			s := l.start(Config{Address: memcachedtest.Reserve(t), Health: health})
			l.until("down", func() bool { return !s.Up() })
			l.do(func() { end(s) })
			l.until(name+"d views are forgotten", func() bool { return health.Down() == 0 })
		}
	})
}

// Closing while connecting is not the server's fault.
func TestCloseWhileConnecting(t *testing.T) {
	addr := fullBacklog(t)
	engines(t, func(t *testing.T, l *loop) {
		var log logged
		s := l.start(Config{Address: addr, Log: slog.New(slog.NewTextHandler(&log, nil))})
		a := l.ask(s, "get a\r\n")[0]
		l.do(s.Close)
		a.want("failed: connection lost")
		l.until("the attempt has ended", func() bool { return !s.lanes[Small].dialing })
		if log.buf.Len() > 0 {
			t.Errorf("the log says %s", log.buf.String())
		}
	})
}
