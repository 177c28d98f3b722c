package backend

import (
	"io"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/reactor"
)

// slow is a fake server's bulk lane whose clock the test turns: the timeout is so long
// that no timer runs by itself.
type slow struct {
	*loop
	s    *Server
	lane *lane
	n    Lane
	f    *fake
	p    *peer
}

func (l *loop) slow(n Lane) *slow {
	l.t.Helper()
	f := listen(l.t, "127.0.0.1:0")
	x := &slow{loop: l, f: f, s: l.start(Config{Address: f.addr(), Timeout: time.Hour, ConnectTimeout: patience}), n: n}
	x.lane = &x.s.lanes[n]
	if n == Bulk {
		f.accept()
		l.do(x.lane.connect)
	}
	x.p = f.accept()
	l.until("the lane is connected", func() bool { return x.lane.conn != nil })
	return x
}

// ask sends requests and lets all of their time pass.
func (x *slow) ask(requests ...string) (all []*asked) {
	x.t.Helper()
	for _, r := range requests {
		all = append(all, newCall(x.t, r))
	}
	x.do(func() {
		for i, a := range all {
			x.s.Claim(&a.Call, x.n, uint64(i+1))
			x.s.Send(&a.Call, x.n, []byte(requests[i]))
			x.s.due(&a.Call, 0)
		}
	})
	return all
}

// came waits until so many bytes have come in all.
func (x *slow) came(n int) {
	x.t.Helper()
	x.until("the bytes are here", func() bool { return x.lane.conn.Came() == uint64(n) })
}

// look has the lane look for late calls, some time after bytes were last seen to move.
func (x *slow) look(after time.Duration) {
	x.do(func() {
		x.lane.moved.at = x.Now().Add(-after)
		x.lane.expire()
	})
}

// A reply that goes on coming is not late, nor is the one behind it before it had a
// chance to come.
func TestProgressOfReplies(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		x := l.slow(Bulk)
		first, second := hit("a", strings.Repeat("a", 5000)), hit("b", strings.Repeat("b", 5000))
		calls := x.ask("get a\r\n", "get b\r\n")
		x.p.expect("get a\r\nget b\r\n")
		for i := range 5 {
			x.p.send(first[i*1000 : (i+1)*1000])
			x.came((i + 1) * 1000)
			x.look(time.Hour)        // nothing had moved for long, but now it has
			x.look(29 * time.Minute) // nothing has, but not for long
		}
		x.p.send(first[5000:])
		calls[0].want(first)
		x.look(29 * time.Minute)
		calls[1].silent()
		x.p.send(second[:1000])
		x.came(len(first) + 1000)
		x.look(time.Hour)
		x.look(31 * time.Minute)
		calls[1].want("failed: timeout")
		x.p.expectClosed()
	})
}

// On another connection progress is counted anew.
func TestProgressAfterLoss(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	x := l.slow(Bulk)
	reply := hit("a", strings.Repeat("a", 5000))
	a := x.ask("get a\r\n")[0]
	x.p.expect("get a\r\n")
	x.p.send(reply[:4000])
	x.came(4000)
	x.look(time.Hour)
	x.do(func() { x.s.due(&a.Call, time.Hour) })
	x.p.reset()
	a.want("restarted")
	x.p = x.f.accept()
	x.p.expect("get a\r\n")
	x.do(func() { x.s.due(&a.Call, 0) })
	x.p.send(reply[:1000])
	x.came(1000)
	x.look(time.Hour)
	x.p.send(reply[1000:])
	a.want(reply)
}

// However steadily bytes come, there is an end.
func TestProgressIsBounded(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	x := l.slow(Bulk)
	a := x.ask("get a\r\n")[0]
	x.p.expect("get a\r\n")
	x.p.send("VALUE a 0 9999\r\n1")
	x.came(17)
	x.do(func() { x.s.due(&a.Call, -(maxTimeouts-2)*time.Hour) })
	x.look(0)
	a.silent()
	x.do(func() { x.s.due(&a.Call, -(maxTimeouts-1)*time.Hour) })
	x.look(0)
	a.want("failed: timeout")
}

// On the small lane nobody is made to wait for a big value. That it is big is remembered,
// though it never came.
func TestNoProgressOnTheSmallLane(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	x := l.slow(Small)
	a := x.ask("get a\r\n")[0]
	x.p.expect("get a\r\n")
	x.p.send("VALUE a 0 9999\r\n1")
	x.came(17)
	x.do(func() {
		if n := x.s.LaneOf(1, 0); n != Small {
			t.Error("a key changes lanes with a call outstanding")
		}
	})
	x.do(x.lane.expire)
	a.want("failed: timeout")
	x.do(func() {
		if n := x.s.LaneOf(1, 0); n != Bulk {
			t.Error("a big value is not remembered")
		}
	})
}

// A big request that the server goes on reading is not late; one that it has stopped
// reading is, once the systems between have taken what they hold.
func TestProgressOfRequests(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		x := l.slow(Bulk)
		value := strings.Repeat("v", 32<<20)
		a := x.ask("set a 0 0 33554432\r\n" + value + "\r\n")[0]
		x.until("the systems between are full", func() bool { return x.lane.conn.Undelivered() > x.lane.conn.Buffered() })
		x.look(0)
		for range 3 {
			var before uint64
			x.do(func() { before = x.lane.conn.Written() })
			if _, err := io.CopyN(io.Discard, x.p.nc, 8<<20); err != nil {
				t.Fatal(err)
			}
			x.until("more is written", func() bool { return x.lane.conn.Written() > before })
			x.look(time.Hour)
			a.silent()
		}
		for deadline := time.Now().Add(patience); len(a.events) == 0; x.look(time.Hour) {
			if time.Now().After(deadline) {
				t.Fatal("a server that reads no more is waited for")
			}
		}
		a.want("failed: timeout")
	})
}

// The system of a server that is stopped still takes small requests. That is no progress.
func TestSmallRequestsAreNoProgress(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	x := l.slow(Bulk)
	calls := x.ask("get a\r\n", "get b\r\n")
	x.until("they are delivered", func() bool { return x.lane.conn.Written() == 14 && x.lane.conn.Undelivered() == 0 })
	x.look(time.Hour)
	calls[0].want("failed: timeout")
	calls[1].want("failed: timeout")
}

// A real server behind a slow link: a value that takes longer than the timeout comes at
// the second try, and a stalled link is noticed all the same.
func TestBigValueOnASlowLink(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	m := memcachedtest.Start(t)
	direct := l.start(Config{Address: m.Addr()})
	value := strings.Repeat("v", 1_000_000)
	l.ask(direct, "set a 0 0 1000000\r\n"+value+"\r\n")[0].want("STORED\r\n")

	p := memcachedtest.Proxy(t, m.Addr())
	p.Set(memcachedtest.Delay) // of 100 ms for each 32 KiB: three seconds for the value
	s := l.start(Config{Address: p.Addr(), Timeout: 1500 * time.Millisecond, ConnectTimeout: patience})
	l.opened(s)
	get := func() (*asked, Lane) {
		a, lane := newCall(t, "get a\r\n"), Small
		l.do(func() {
			lane = s.LaneOf(7, 0)
			s.Claim(&a.Call, lane, 7)
			s.Send(&a.Call, lane, []byte("get a\r\n"))
		})
		return a, lane
	}
	a, lane := get()
	a.want("failed: timeout")
	began := time.Now()
	b, next := get()
	b.want(hit("a", value))
	if took := time.Since(began); lane != Small || next != Bulk || took < s.cfg.Timeout {
		t.Errorf("by lane %d, then by %d in %v", lane, next, took)
	}
	p.Set(memcachedtest.Stall)
	c, _ := get()
	c.want("failed: timeout")
}
