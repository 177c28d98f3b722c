package backend

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/memproto"
)

func hit(key, value string) string {
	return fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value)
}

// Requests sent in one turn are answered in order, by a real server, on both lanes.
func TestPipelineOnMemcached(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		s := l.start(Config{Address: memcachedtest.Start(t).Addr()})
		for lane := range NumLanes {
			var calls []*asked
			var want []string
			l.do(func() {
				for i := range 300 {
					key, value := fmt.Sprintf("k%d", i), strings.Repeat("v", i*40)
					for _, r := range []string{
						fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value),
						"get " + key + "\r\n", "mg " + key + " s\r\n",
					} {
						a := newCall(t, r)
						calls = append(calls, a)
						s.Send(&a.Call, lane, []byte(r))
					}
					want = append(want, "STORED\r\n", hit(key, value), fmt.Sprintf("HD s%d\r\n", len(value)))
				}
			})
			for i, a := range calls {
				a.want(want[i])
			}
		}
		l.do(func() {
			if st := s.Stats(); st.Calls != 1800 || st.InFlight != 0 || st.Connects != 2 || st.Up != 1 || st.Retries != 0 {
				t.Errorf("stats are %+v", st)
			}
		})
	})
}

// A call sent before the connection stands waits for it.
func TestCallWaitsForConnection(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		calls := l.ask(s, "get a\r\n", "get b\r\n")
		p := f.accept()
		p.expect("get a\r\nget b\r\n")
		calls[1].silent()
		p.send(hit("a", "1") + "END\r\n")
		calls[0].want(hit("a", "1"))
		calls[1].want("END\r\n")
	})
}

func TestRefusedThenUp(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		m := memcachedtest.StartLater(t)
		memcachedtest.Need(t, "memcached")
		s := l.start(Config{Address: m.Addr()})
		l.ask(s, "get a\r\n")[0].want("failed: connection refused")
		l.do(func() {
			if s.Up() {
				t.Error("up after a refused connection")
			}
			a := newCall(t, "get b\r\n")
			s.Send(&a.Call, Small, []byte("get b\r\n"))
			a.want("failed: connection refused") // at once
		})
		m.Restart()
		l.until("the server comes up", s.Up)
		l.ask(s, "get a\r\n")[0].want("END\r\n")
	})
}

// Who knows that a server answers again need not wait for the next attempt.
func TestReconnect(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		memcachedtest.Need(t, "memcached")
		m := memcachedtest.StartLater(t)
		s := l.start(Config{Address: m.Addr()})
		lane := &s.lanes[Small]
		l.until("the next attempt is an hour away", func() bool {
			if !lane.again.Armed() {
				return false
			}
			l.Set(&lane.again, l.Now().Add(time.Hour))
			return true
		})
		m.Restart()
		l.do(s.Reconnect)
		l.do(s.Reconnect) // once is enough
		l.until("the server is up", s.Up)
		l.ask(s, "get a\r\n")[0].want("END\r\n")
		l.do(func() {
			s.Reconnect()
			if n := s.Stats().Connects; n != 2 {
				t.Errorf("%d attempts", n)
			}
		})
	})
}

// What is asked of a server that is known to answer again waits for the connection, also where an
// attempt from before is still under way. When the attempt fails calls fail at once, as before.
func TestCallsWaitForReconnect(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		var attempts atomic.Int32
		lost, free := make(chan struct{}), make(chan error)
		s := l.start(Config{Address: f.addr(), Timeout: patience, ConnectTimeout: patience,
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				switch attempts.Add(1) {
				case 1:
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				case 2: // of which no packet arrives
					close(lost)
					<-ctx.Done()
					return nil, ctx.Err()
				}
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case err := <-free:
					if err != nil {
						return nil, err
					}
					return net.Dial(network, addr)
				}
			}})
		<-lost
		l.ask(s, "get a\r\n")[0].want("failed: connection refused")
		l.do(s.Reconnect)
		a := l.ask(s, "get a\r\n")[0]
		free <- &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		a.want("failed: connection refused")
		l.ask(s, "get a\r\n")[0].want("failed: connection refused")
		l.do(s.Reconnect)
		a = l.ask(s, "get a\r\n")[0]
		free <- nil
		p := f.accept()
		p.expect("get a\r\n")
		p.send("END\r\n")
		a.want("END\r\n")
	})
}

// While a server refuses, attempts grow apart.
func TestBackoff(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		began := time.Now()
		s := l.start(Config{Address: memcachedtest.Reserve(t)})
		l.until("the fourth attempt", func() bool { return s.Stats().Connects >= 4 })
		if took, least := time.Since(began), (50+100+200)*time.Millisecond/2; took < least {
			t.Errorf("four attempts in %v, want at least %v", took, least)
		}
	})
}

// The second lane connects when it is first used.
func TestBulkConnectsLate(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		small := f.accept()
		a := l.ask(s, "get a\r\n")[0]
		small.expect("get a\r\n")
		b := newCall(t, "get b\r\n")
		l.do(func() { s.Send(&b.Call, Bulk, []byte("get b\r\n")) })
		bulk := f.accept()
		bulk.expect("get b\r\n")
		bulk.send(hit("b", "2"))
		b.want(hit("b", "2"))
		a.silent()
		small.send(hit("a", "1"))
		a.want(hit("a", "1"))
	})
}

func TestSlowReplyInPieces(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		a := l.ask(s, "get a\r\n")[0]
		reply := hit("a", "\r\nEND\r\n")
		for i := range reply {
			a.silent()
			p.send(reply[i : i+1])
		}
		a.want(reply)
	})
}

func TestBusy(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr(), MaxQueue: 20})
		calls := l.ask(s, "get a\r\n", "get b\r\n", "get c\r\n")
		calls[2].want("failed: busy") // 21 bytes
		p := f.accept()
		p.expect("get a\r\nget b\r\n")
		p.send("END\r\nEND\r\n")
		calls[1].want("END\r\n")
		l.ask(s, "get d\r\n")
		p.expect("get d\r\n")
	})
}

// A retrieval of several keys comes in units, and the owner may find one wrong.
func TestUnitsAndOwnersVeto(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		a := l.ask(s, "get a b\r\n")[0]
		p.expect("get a b\r\n")
		p.send("VALUE a 0 1\r\n1\r\nVALUE b 0 1\r\n2\r\nEND\r\n")
		a.want("VALUE a 0 1\r\n1\r\n", "VALUE b 0 1\r\n2\r\n", "END\r\n")

		a = newCall(t, "get a b\r\n")
		a.refuse = true
		l.do(func() { s.Send(&a.Call, Small, []byte("get a b\r\n")) })
		p.expect("get a b\r\n")
		p.send("VALUE c 0 1\r\n3\r\nEND\r\n")
		a.want("VALUE c 0 1\r\n3\r\n", "restarted")
		p.expectClosed()
		p = f.accept()
		p.expect("get a b\r\n")
		p.send("VALUE c 0 1\r\n3\r\n")
		a.want("VALUE c 0 1\r\n3\r\n", "failed: bad reply")
	})
}

func TestClose(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		calls := l.ask(s, "get a\r\n", "incr n 1\r\n")
		p.expect("get a\r\nincr n 1\r\n")
		l.do(s.Close)
		calls[0].want("failed: connection lost")
		calls[1].want("failed: connection lost")
		p.expectClosed()
		l.ask(s, "get a\r\n")[0].want("failed: connection lost")
	})
}

// A retired server ends what it has been asked, on both lanes, and then is gone.
func TestRetire(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		small := f.accept()
		a := l.ask(s, "get a\r\n")[0]
		b := newCall(t, "get b\r\n")
		l.do(func() {
			s.Send(&b.Call, Bulk, []byte("get b\r\n"))
			s.Retire()
		})
		bulk := f.accept()
		small.expect("get a\r\n")
		bulk.expect("get b\r\n")
		small.send("END\r\n")
		a.want("END\r\n")
		small.expectClosed()
		b.silent()
		bulk.send("END\r\n")
		b.want("END\r\n")
		bulk.expectClosed()
	})
}

func TestRetireIdle(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		l.opened(s)
		l.do(s.Retire)
		p.expectClosed()
		if len(f.peers) > 0 {
			t.Error("a retired server is connected to again")
		}
	})
}

// A retired server that dies does not keep anybody waiting, nor is it looked for.
func TestRetireThenLost(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr()})
		p := f.accept()
		calls := l.ask(s, "incr n 1\r\n", "get a\r\n")
		p.expect("incr n 1\r\nget a\r\n")
		l.do(s.Retire)
		p.reset()
		calls[0].want("failed: connection lost")
		calls[1].want("restarted")
		p = f.accept()
		p.expect("get a\r\n")
		p.send("END\r\n")
		calls[1].want("END\r\n")
		p.expectClosed()
		l.until("it rests", func() bool { return s.lanes[Small].conn == nil && !s.lanes[Small].dialing })
	})
}

func TestStatsAdd(t *testing.T) {
	a := Stats{Calls: 1, Retries: 2, Joined: 8, BytesOut: 3, BytesIn: 4, Connects: 5, Unsolicited: 6, InFlight: 7, Up: 1}
	a.Failures[BadReply] = 8
	sum := a
	sum.Add(a)
	want := Stats{Calls: 2, Retries: 4, Joined: 16, BytesOut: 6, BytesIn: 8, Connects: 10, Unsolicited: 12, InFlight: 14, Up: 2}
	want.Failures[BadReply] = 16
	if sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

func TestFailureNames(t *testing.T) {
	seen := make(map[string]bool)
	for f := Refused; f < NumFailures; f++ {
		if f.Error() == "" || f.Label() == "" || seen[f.Label()] {
			t.Errorf("failure %d is named %q, %q", f, f.Error(), f.Label())
		}
		seen[f.Label()] = true
	}
}

// A value is checked against the key that was asked for, however the line is spelled.
func TestAnsweredBy(t *testing.T) {
	f := func(request, unit string, want bool) {
		t.Helper()
		a := newCall(t, request)
		if got := a.answeredBy([]byte(unit)); got != want {
			t.Errorf("%q answered by %q: %v", request, unit, got)
		}
	}
	value := "VALUE a 0 1\r\nx\r\nEND\r\n"
	for _, same := range []string{"get a\r\n", "get a\n", "get  a  \r\n", "gets a \r\n", "gat 10 a\r\n", "gats  -1  a\n"} {
		f(same, value, true)
		f(same, "END\r\n", true)
		f(same, "VALUE b 0 1\r\nx\r\nEND\r\n", false)
		f(same, "VALUE aa 0 1\r\nx\r\nEND\r\n", false)
	}
	f("get aa\r\n", value, false)
	f("gat 10 10\r\n", value, false)
	f("get a\r\r\n", "VALUE a\r 0 1\r\nx\r\nEND\r\n", true)
	f("get a\r\r\n", value, false)
	f("get VALUE\r\n", "VALUE VALUE 0 1\r\nx\r\nEND\r\n", true)
	if memproto.ValueKey([]byte(value)) == nil {
		t.Error("no key")
	}
}
