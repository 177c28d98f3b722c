package backend

import (
	"testing"
	"time"
)

// hold waits until the loop's clock has gone on by d.
func (l *loop) hold(d time.Duration) {
	l.t.Helper()
	var from time.Duration
	l.do(func() { from = l.Elapsed() })
	l.until("time passes", func() bool { return l.Elapsed()-from > d })
}

// A reply that is late is counted with the time that it took, and a call that failed is not.
func TestLatency(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		const held = 20 * time.Millisecond
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		l.opened(s)
		before := time.Now()
		call := l.ask(s, "get a\r\n")[0]
		p.expect("get a\r\n")
		l.hold(held)
		p.send("END\r\n")
		call.want("END\r\n")
		most := time.Since(before)

		call = l.ask(s, "set a 0 0 1\r\n1\r\n")[0]
		p.expect("set a 0 0 1\r\n1\r\n")
		p.reset()
		call.want("failed: connection lost")
		l.do(func() {
			h := s.Stats().Latency
			if h.Count() != 1 || h.Sum() < held || h.Sum() > most {
				t.Errorf("%d calls took %v, want one of %v to %v", h.Count(), h.Sum(), held, most)
			}
		})
	})
}

// A call tells when it was sent and, if its reply has come bit by bit, when that began.
func TestTimesOfCall(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		const held = 20 * time.Millisecond
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		l.opened(s)
		ask := func(first, rest string) *asked {
			call := l.ask(s, "get a\r\n")[0]
			p.expect("get a\r\n")
			l.hold(held)
			p.send(first)
			if rest != "" {
				l.until("some of it is there", func() bool { return call.waited > 0 })
				l.hold(held)
				p.send(rest)
			}
			call.want(first + rest)
			return call
		}
		slow := ask("VALUE a 0 1\r\n", "1\r\nEND\r\n")
		quick := ask("END\r\n", "")
		l.do(func() {
			if slow.First() < slow.Sent()+held || slow.First()+held > l.Elapsed() {
				t.Errorf("sent at %v, and the reply began at %v; now it is %v", slow.Sent(), slow.First(), l.Elapsed())
			}
			if quick.First() != 0 || quick.Sent() < slow.First()+held {
				t.Errorf("what came at once began at %v; it was sent at %v", quick.First(), quick.Sent())
			}
		})
	})
}
