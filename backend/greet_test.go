package backend

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

const greeting = "set auth 0 0 12\r\nme pass word\r\n"

func asMe(addr string) Config {
	return Config{Address: addr, User: "me", Password: "pass word"}
}

// Nothing is asked before the server knows who asks, on either lane.
func TestGreeting(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(asMe(f.addr()))
		for lane := range NumLanes {
			a := newCall(t, "get a\r\n")
			l.do(func() { s.Send(&a.Call, lane, []byte("get a\r\n")) })
			p := f.accept()
			p.expect(greeting)
			l.do(func() {
				if got := string(s.lanes[lane].unsent); got != "get a\r\n" {
					t.Errorf("%q waits", got)
				}
			})
			p.send("STO")
			p.send("RED\r\n")
			p.expect("get a\r\n")
			p.send("END\r\n")
			a.want("END\r\n")
		}
	})
}

func TestGreetingOnMemcached(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("me:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := memcachedtest.Start(t, "-Y", file)
	engines(t, func(t *testing.T, l *loop) {
		me := asMe(m.Addr())
		me.Password = "secret"
		s := l.start(me)
		l.ask(s, "set a 0 0 1\r\nx\r\n")[0].want("STORED\r\n")
		l.ask(s, "get a\r\n")[0].want(hit("a", "x"))
		stranger := asMe(m.Addr())
		stranger.Password = "guess"
		l.ask(l.start(stranger), "get a\r\n")[0].want("failed: authentication failed")
	})
}

// A server that does not accept us, hangs up, or says nothing is down, and what waited
// for it fails; when it accepts us all is well.
func TestGreetingFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(p *peer)
		want   string
	}{
		"refused": {func(p *peer) { p.send("CLIENT_ERROR authentication failure\r\n") }, "failed: authentication failed"},
		"unknown": {func(p *peer) { p.send("ERROR\r\n") }, "failed: authentication failed"},
		"endless": {func(p *peer) { p.send(strings.Repeat("x", 600)) }, "failed: authentication failed"},
		"hang up": {func(p *peer) { p.nc.Close() }, "failed: connection lost"},
		"silence": {func(p *peer) { p.expectClosed() }, "failed: timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			engines(t, func(t *testing.T, l *loop) {
				f := listen(t, "127.0.0.1:0")
				var log logged
				cfg := asMe(f.addr())
				cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
				if name == "silence" {
					cfg.Timeout = 500 * time.Millisecond
				}
				s := l.start(cfg)
				a := l.ask(s, "get a\r\n")[0]
				p := f.accept()
				p.expect(greeting)
				c.answer(p)
				a.want(c.want)
				l.do(func() {
					if s.Up() || log.count("server unreachable") != 1 {
						t.Errorf("up is %v, the log says %s", s.Up(), log.buf.String())
					}
					s.cfg.Timeout = patience
				})
				p = f.accept()
				p.expect(greeting)
				p.send("STORED\r\n")
				l.until("the server is up", s.Up)
				b := l.ask(s, "get b\r\n")[0]
				p.expect("get b\r\n")
				p.send("END\r\n")
				b.want("END\r\n")
			})
		})
	}
}

// A greeting has as long as a call has, whatever was timed before it.
func TestGreetingHasItsTime(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(asMe(f.addr()))
		p := f.accept()
		p.expect(greeting)
		p.send("STORED\r\n")
		l.ask(s, "get a\r\n")
		p.expect("get a\r\n")
		p.send("END\r\n")
		p.reset()
		p = f.accept()
		p.expect(greeting)
		l.do(func() {
			lane := &s.lanes[Small]
			lane.expire() // as the timer does that was set for the call
			if !lane.greeting || !lane.expiry.Armed() {
				t.Error("the greeting was cut short")
			}
		})
		p.send("STORED\r\n")
		a := l.ask(s, "get a\r\n")[0]
		p.expect("get a\r\n")
		p.send("END\r\n")
		a.want("END\r\n")
	})
}

// A server that says it is full has not answered the request that waits. What is asked
// of it fails at once, until it has room again.
func TestServerThatIsFull(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		calls := l.ask(s, "get a\r\n", "incr n 1\r\n")
		p.expect("get a\r\nincr n 1\r\n")
		p.send(tooMany)
		p.nc.Close()
		calls[0].want("failed: connection refused")
		calls[1].want("failed: connection refused")
		p = f.accept()
		l.opened(s)
		again := l.ask(s, "get a\r\n")[0]
		p.expect("get a\r\n")
		p.send("END\r\n")
		again.want("END\r\n")
	})
}
