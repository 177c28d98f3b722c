package backend

import (
	"io"
	"testing"
	"time"

	"cacherouter/memproto"
	"cacherouter/reactor"
)

// answering is the owner of calls that need nothing.
type answering struct{}

func (answering) Replied(*Call, memproto.Unit, []byte) bool { return true }
func (answering) Failed(*Call, Failure)                     {}
func (answering) Restarted(*Call)                           {}

// callPath is what a call costs apart from sockets: the returned function sends one and
// brings its reply. It must run on the loop.
func callPath(l *loop, observe func(Observation)) (s *Server, call func()) {
	f := listen(l.t, "127.0.0.1:0")
	s = l.start(Config{Address: f.addr(), Observe: observe})
	nc := f.accept().nc
	nc.SetDeadline(time.Time{})
	go io.Copy(io.Discard, nc)
	l.opened(s)
	k := &link{lane: &s.lanes[Small], conn: s.lanes[Small].conn}
	c := &Call{Owner: answering{}, Verb: memproto.Get, Key: []byte("user:profile:00000001234"), Repeatable: true}
	request, reply := []byte("get user:profile:00000001234\r\n"), []byte(hit("user:profile:00000001234", "some value"))
	return s, func() {
		s.Send(c, Small, request)
		if k.Received(reply) != len(reply) {
			l.t.Fatal("the reply is not taken")
		}
	}
}

func TestObservingDoesNotAllocate(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	told := 0
	s, call := callPath(l, func(Observation) { told++ })
	l.do(func() {
		call()
		if n := testing.AllocsPerRun(1000, call); n != 0 {
			t.Errorf("%v allocations a call", n)
		}
		call = func() { s.watch.failed(Lost); s.watch.report() }
		if n := testing.AllocsPerRun(1000, call); n != 0 {
			t.Errorf("%v allocations a failure", n)
		}
		if told < 1000 {
			t.Errorf("told %d times", told)
		}
	})
}

// BenchmarkCall compares what a call costs with and without somebody who wants to know.
// The metric is the time on the loop; ns/op has the sockets in it.
func BenchmarkCall(b *testing.B) {
	for name, observe := range map[string]func(Observation){"unobserved": nil, "observed": func(Observation) {}} {
		b.Run(name, func(b *testing.B) {
			l := startLoop(b, reactor.Config{})
			_, call := callPath(l, observe)
			b.ReportAllocs()
			b.ResetTimer()
			var took time.Duration
			for left := b.N; left > 0; left -= 256 {
				l.do(func() { // a turn, at whose end the requests are written
					began := time.Now()
					for range min(left, 256) {
						call()
					}
					took += time.Since(began)
				})
			}
			b.ReportMetric(float64(took)/float64(b.N), "loop-ns/call")
		})
	}
}
