package backend

import (
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/reactor"
)

// diary is what a server's Observe was told, and when. It belongs to the loop.
type diary struct {
	l    *loop
	all  []Observation
	when []time.Time
}

// watch starts a server whose observations are kept.
func (l *loop) watch(c Config) (*Server, *diary) {
	l.t.Helper()
	d := &diary{l: l}
	c.Observe = func(o Observation) {
		d.all = append(d.all, o)
		d.when = append(d.when, l.Now())
	}
	return l.start(c), d
}

// total adds all up that was told. It runs on the loop.
func (d *diary) total() (sum Observation) {
	for _, o := range d.all {
		sum.OK += o.OK
		sum.Latency += o.Latency
		for f, n := range o.Failures {
			sum.Failures[f] += n
		}
	}
	return sum
}

// want waits for something to be told and checks that it is this, apart from the latency,
// and nothing else. It is forgotten then.
func (d *diary) want(want Observation) {
	d.l.t.Helper()
	d.l.until("something is told", func() bool { return len(d.all) > 0 })
	d.l.do(func() {
		d.l.t.Helper()
		got := d.all[0]
		got.Latency = 0
		if got != want || len(d.all) > 1 {
			d.l.t.Errorf("told %+v, want %+v", d.all, want)
		}
		d.all, d.when = nil, nil
	})
}

// nothing checks that nothing was told, and nothing is about to be.
func (d *diary) nothing(s *Server) {
	d.l.t.Helper()
	d.l.do(func() {
		d.l.t.Helper()
		if len(d.all) > 0 || s.watch.timer.Armed() {
			d.l.t.Errorf("told %+v, want nothing", d.all)
		}
	})
}

func failures(f Failure, n, streak int) (o Observation) {
	o.Failures[f], o.Streak = n, streak
	return o
}

// Successes of a real server are told all, now and then, and with their latency.
func TestObserveSuccesses(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		s, d := l.watch(Config{Address: memcachedtest.Start(t).Addr()})
		began := time.Now()
		asked := 0
		for told := 0; told < 3; {
			for _, a := range l.ask(s, "get a\r\n", "incr n 1\r\n", "get b c\r\n") {
				<-a.events
				asked++
			}
			l.do(func() { told = len(d.all) })
		}
		l.until("all are told", func() bool { return d.total().OK == asked })
		took := time.Since(began)
		l.do(func() {
			sum := d.total()
			if sum.Latency <= 0 || sum.Latency > took*time.Duration(asked) {
				t.Errorf("%d calls in %v took %v in all", asked, took, sum.Latency)
			}
			if sum.Failures != (Observation{}).Failures || s.Stats().Calls != uint64(asked) {
				t.Errorf("told %+v of %d calls", sum, asked)
			}
			for i := 1; i < len(d.when); i++ {
				if gap := d.when[i].Sub(d.when[i-1]); gap < observeEvery {
					t.Errorf("told again after %v", gap)
				}
			}
			if s.watch.timer.Armed() {
				t.Error("a server without calls has a timer")
			}
		})
	})
}

// The latency is that of the replies: a proxy makes them slow.
func TestObserveLatency(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	p := memcachedtest.Proxy(t, memcachedtest.Start(t).Addr())
	s, d := l.watch(Config{Address: p.Addr()})
	l.opened(s)
	p.Set(memcachedtest.Delay)
	l.ask(s, "get a\r\n")[0].want("END\r\n")
	l.until("it is told", func() bool { return d.total().OK == 1 })
	l.do(func() {
		// The loop's clock stands still during a turn, so it may have begun a bit earlier.
		if got := d.total().Latency; got < memcachedtest.ReplyDelay || got > patience {
			t.Errorf("a reply delayed by %v took %v", memcachedtest.ReplyDelay, got)
		}
	})
}

// A lost connection: calls that fail by it are told of at once and together, after what
// had succeeded. Calls that are sent again count one loss, and what becomes of them.
func TestObserveLoss(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s, d := l.watch(Config{Address: f.addr()})
		p := f.accept()
		calls := l.ask(s, "get a\r\n", "incr n 1\r\n", "get b\r\n", "incr m 1\r\n", "incr o 1\r\n")
		p.expect("get a\r\nincr n 1\r\nget b\r\nincr m 1\r\nincr o 1\r\n")
		p.send("END\r\n")
		calls[0].want("END\r\n")
		p.reset()
		l.until("the loss is told", func() bool { return d.total().Failures[Lost] > 0 })
		l.do(func() {
			last, sum := d.all[len(d.all)-1], d.total()
			if last.Failures[Lost] != 3 || last.Streak != 3 || sum.OK != 1 {
				t.Errorf("told %+v", d.all)
			}
			d.all = nil
		})
		p = f.accept()
		p.expect("get b\r\n")
		p.send("END\r\n")
		calls[2].want("restarted", "END\r\n")
		d.want(Observation{OK: 1})

		again := l.ask(s, "get a\r\n", "get b\r\n")
		p.expect("get a\r\nget b\r\n")
		p.reset()
		d.want(failures(Lost, 1, 1))
		p = f.accept()
		p.expect("get a\r\nget b\r\n")
		p.send("END\r\nEND\r\n")
		again[1].want("restarted", "END\r\n")
		d.want(Observation{OK: 2})

		p.nc.Close() // nobody waits for anything: servers close idle connections
		f.accept()
		l.opened(s)
		d.nothing(s)
	})
}

// A failure before a success is no streak.
func TestObserveStreakEnds(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	s, d := l.watch(Config{Address: memcachedtest.Start(t).Addr()})
	l.opened(s)
	l.do(func() {
		s.watch.failed(Lost)
		s.watch.failed(TimedOut)
		s.watch.answered(time.Second)
		s.watch.failed(Lost)
	})
	want := failures(Lost, 2, 1)
	want.Failures[TimedOut], want.OK = 1, 1
	d.want(want)
}

// While a server refuses, each attempt to connect is told of, though nobody calls; that
// one succeeds is told by a call only. Calls that fail at once are told of by turns.
func TestObserveRefused(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		memcachedtest.Need(t, "memcached")
		m := memcachedtest.StartLater(t)
		s, d := l.watch(Config{Address: m.Addr()})
		l.until("three attempts have failed", func() bool {
			lane := &s.lanes[Small]
			if s.Stats().Connects < 3 || lane.dialing {
				return false
			}
			l.Stop(&lane.again)
			return true
		})
		l.do(func() {
			if got, want := d.total(), failures(Refused, 3, 0); got != want {
				t.Errorf("three attempts make %+v", got)
			}
			for _, o := range d.all {
				if o != failures(Refused, 1, 1) {
					t.Errorf("told %+v", o)
				}
			}
			d.all = nil
		})
		l.ask(s, "get a\r\n", "incr n 1\r\n")[1].want("failed: connection refused")
		d.want(failures(Refused, 2, 2))
		m.Restart()
		l.do(s.lanes[Small].connect)
		l.opened(s)
		d.nothing(s)
		l.ask(s, "get a\r\n")[0].want("END\r\n")
		d.want(Observation{OK: 1})
	})
}

// A stalled server: all calls that are late are told of together.
func TestObserveTimeout(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		p := memcachedtest.Proxy(t, memcachedtest.Start(t).Addr())
		s, d := l.watch(Config{Address: p.Addr(), Timeout: 100 * time.Millisecond, ConnectTimeout: patience})
		l.opened(s)
		p.Set(memcachedtest.Stall)
		for _, a := range l.ask(s, "get a\r\n", "incr n 1\r\n", "get b\r\n") {
			a.want("failed: timeout")
		}
		d.want(failures(TimedOut, 3, 3))
	})
}

// An attempt to connect that a call has given up is not counted besides the call.
func TestObserveGivenUp(t *testing.T) {
	addr := fullBacklog(t)
	engines(t, func(t *testing.T, l *loop) {
		s, d := l.watch(Config{Address: addr, Timeout: 50 * time.Millisecond, ConnectTimeout: patience})
		l.ask(s, "get a\r\n")[0].want("failed: timeout")
		l.until("the attempt has ended", func() bool { return !s.Up() })
		d.want(failures(TimedOut, 1, 1))
		l.do(func() { l.Stop(&s.lanes[Small].again); s.lanes[Small].connect() })
		l.do(func() { s.lanes[Small].cancel() }) // as if its own time were up
		d.want(failures(TimedOut, 1, 1))
	})
}

// Garbage counts each time, be it asked for or not.
func TestObserveBadReply(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		p := memcachedtest.Proxy(t, memcachedtest.Start(t).Addr())
		s, d := l.watch(Config{Address: p.Addr()})
		l.opened(s)
		p.Set(memcachedtest.Garbage)
		l.ask(s, "get a\r\n")[0].want("restarted", "failed: bad reply")
		l.until("both are told", func() bool { return d.total() == failures(BadReply, 2, 0) })

		f := listen(t, "127.0.0.1:0")
		_, d = l.watch(Config{Address: f.addr()})
		f.accept().send(hit("a", "unasked"))
		d.want(failures(BadReply, 1, 1))
	})
}

// What says nothing about the server's life can wait, and makes no streak.
func TestObserveBusyAndDenied(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	f := listen(t, "127.0.0.1:0")
	s, d := l.watch(Config{Address: f.addr(), MaxQueue: 10})
	l.opened(s)
	var asked time.Time
	l.do(func() {
		asked = l.Now()
		for range 3 {
			a := newCall(t, "get a\r\n")
			s.Send(&a.Call, Small, []byte("get a\r\n"))
		}
	})
	l.until("it is told", func() bool { return len(d.all) > 0 })
	l.do(func() {
		if after := d.when[0].Sub(asked); after < observeEvery {
			t.Errorf("told after %v", after)
		}
	})
	d.want(failures(Busy, 2, 0))

	f = listen(t, "127.0.0.1:0")
	_, d = l.watch(Config{Address: f.addr(), User: "u", Password: "p"})
	p := f.accept()
	p.expect("set auth 0 0 3\r\nu p\r\n")
	p.send("CLIENT_ERROR authentication failure\r\n")
	l.until("it is told", func() bool { return len(d.all) > 0 })
	l.do(func() {
		if o := d.all[0]; o != failures(Denied, o.Failures[Denied], 0) || o.Failures[Denied] == 0 {
			t.Errorf("told %+v", o)
		}
	})
}

// Retire and Close tell what is left. What ends later says nothing about the server.
func TestObserveEnds(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		for name, end := range map[string]func(*Server){"close": (*Server).Close, "retire": (*Server).Retire} {
			f := listen(t, "127.0.0.1:0")
			s, d := l.watch(Config{Address: f.addr()})
			p := f.accept()
			calls := l.ask(s, "get a\r\n", "incr n 1\r\n")
			p.expect("get a\r\nincr n 1\r\n")
			p.send("END\r\n")
			calls[0].want("END\r\n")
			l.do(func() { end(s) })
			d.want(Observation{OK: 1})
			p.reset()
			calls[1].want("failed: connection lost")
			d.nothing(s)
			l.do(func() {
				if s.Retired() != (name == "retire") {
					t.Errorf("after %s: retired is %v", name, s.Retired())
				}
			})
		}
	})
}

func TestNameAndAddress(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	addr := memcachedtest.Reserve(t)
	s := l.start(Config{Name: "cache-7", Address: addr})
	l.do(func() {
		if s.Name() != "cache-7" || s.Address() != addr || s.Retired() {
			t.Errorf("%q at %q, retired %v", s.Name(), s.Address(), s.Retired())
		}
	})
}
