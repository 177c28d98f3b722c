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
