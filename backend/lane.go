package backend

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"cacherouter/reactor"
)

// Reconnecting: when a connection that has answered is lost, the first attempt is made
// at once, the next after backoffMin, then twice as long each time up to backoffMax, each
// shortened by up to half at random so that many loops and routers do not come back in
// step. A connection that ends without having answered counts as a failed attempt: a
// server that takes clients only to hang up, as a full one does, must not be run down.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
)

// lane is one connection of a server and the calls that wait on it.
type lane struct {
	s       *Server
	name    Lane
	conn    *reactor.Conn // nil unless open
	dialing bool
	// greeting is set while user and password were said and not yet accepted.
	greeting bool
	greetBy  time.Time // when it must be accepted
	down     bool      // the last attempt failed: calls fail until one succeeds
	why      Failure   // of the last attempt
	givenUp  bool      // calls have failed by the present attempt already
	// expected says that the server is known to answer again: calls wait for the present attempt.
	expected bool
	stale    bool // the present attempt began before that was known, and is made anew
	tries    int  // attempts to connect since the last reply
	cancel   func()
	waiting  queue
	unsent   []byte // requests that wait for the connection to open
	line     line   // what was written last
	within   bool   // the reply that comes is to a line of which some keys are answered
	whole    []byte // a call's share of a line's reply, made whole
	moved    progress
	expiry   reactor.Timer // of the first waiting call, or earlier: to look how it gets on
	again    reactor.Timer // the next attempt to connect
}

// patient reports whether big values may take their time.
func (l *lane) patient() bool { return l.name == Bulk }

func (l *lane) init(s *Server, name Lane) {
	l.s, l.name = s, name
	l.expiry.Func = l.expire
	l.again.Func = l.connect
}

func (l *lane) send(c *Call, req []byte) {
	if f := l.refusal(len(req)); f != 0 {
		l.unclaim(c)
		l.s.fail(c, f)
		return
	}
	l.enqueue(c, req)
	if l.conn == nil && !l.again.Armed() {
		l.connect()
	}
}

// refusal says why a request of n bytes fails at once; 0 if it does not.
func (l *lane) refusal(n int) Failure {
	switch {
	case l.s.closed:
		return Lost
	case l.down && !l.expected:
		return l.why
	case l.queued()+n > l.s.cfg.MaxQueue:
		return Busy
	}
	return 0
}

// queued returns the bytes that wait to be sent.
func (l *lane) queued() int {
	if l.conn == nil || l.greeting {
		return len(l.unsent)
	}
	return l.conn.Buffered()
}

func (l *lane) enqueue(c *Call, req []byte) {
	c.more = false
	open := l.conn != nil && !l.greeting
	joined := open && l.s.cfg.Join && !l.patient() && !l.s.cfg.Health.apart.Load() && l.join(c, req)
	l.waiting.push(c)
	if !l.expiry.Armed() {
		l.wake(l.s.deadline(c))
	}
	switch {
	case joined:
	case open:
		l.conn.Write(req)
		l.line.begin(c)
	default:
		l.unsent = append(l.unsent, req...)
		l.line.last = nil
	}
}

// unclaim takes back what Claim has noted of a call.
func (l *lane) unclaim(c *Call) {
	if c.keys == 0 {
		return
	}
	l.s.slots[c.slot].calls[l.name]--
	if c.keys > 1 {
		for _, slot := range c.slots {
			l.s.slots[slot].calls[l.name]--
		}
		c.slots = c.slots[:0]
	}
	c.keys = 0
}

// take removes the first waiting call, which is over.
func (l *lane) take() *Call {
	c := l.waiting.pop()
	l.unclaim(c)
	return c
}

func (l *lane) connect() {
	if l.dialing || l.conn != nil || l.s.closed {
		return
	}
	l.dialing, l.givenUp = true, false
	l.tries++
	l.s.stats.Connects++
	l.cancel = l.s.loop.Dial(l.s.cfg.Address, l.s.cfg.ConnectTimeout, l.s.cfg.Dial, l.opened, l.dialed)
}

// reconnect makes an attempt to connect now, for which calls wait. One that is under way may
// have lost its first packet and be waiting to repeat it.
func (l *lane) reconnect() {
	l.expected = true
	if l.dialing {
		l.stale = true
		l.cancel() // dialed follows
		return
	}
	l.s.loop.Stop(&l.again)
	l.connect()
}

// opened makes the handler of the new connection.
func (l *lane) opened(c *reactor.Conn) reactor.Handler { return &link{lane: l, conn: c} }

// dialed is called when an attempt to connect has ended.
func (l *lane) dialed(c *reactor.Conn, err error) {
	l.dialing = false
	l.cancel = nil
	stale := l.stale
	l.stale = false
	switch {
	case l.s.closed && err != nil:
		return
	case stale && err != nil:
		l.connect()
		return
	case l.s.closed:
		c.Close()
		return
	case err != nil:
		l.unreachable(failureOf(err))
		return
	}
	l.conn = c
	if l.s.cfg.User == "" {
		l.open()
		return
	}
	l.greet()
}

// open sends what waited for the connection.
func (l *lane) open() {
	if l.down {
		l.setDown(false)
	}
	l.conn.Write(l.unsent)
	l.unsent = nil
	l.greeting, l.expected = false, false
	l.closeIfIdle()
}

// unreachable fails what waits, and sets the time of the next attempt. An attempt that
// nobody waited for is observed like a call.
func (l *lane) unreachable(f Failure) {
	l.why, l.expected = f, false
	if l.waiting.n == 0 && !l.givenUp {
		l.s.watch.failed(f)
	}
	if !l.down {
		l.setDown(true)
	}
	l.failAll(f)
	if l.s.closed || l.s.retired {
		l.close()
		return
	}
	l.connectLater()
}

func (l *lane) connectLater() {
	wait := min(backoffMax, backoffMin<<min(l.tries-1, 10))
	wait -= rand.N(wait / 2)
	l.s.loop.Set(&l.again, l.s.loop.Now().Add(wait))
}

func (l *lane) setDown(down bool) {
	l.down = down
	h, log := l.s.cfg.Health, l.s.cfg.Log
	if !down {
		if h.down.Add(-1) == 0 {
			log.Info("server reachable", "server", l.s.cfg.Name, "addr", l.s.cfg.Address)
			l.s.reached()
		}
	} else if h.down.Add(1) == 1 {
		log.Warn("server unreachable", "server", l.s.cfg.Name, "addr", l.s.cfg.Address, "err", l.why)
		l.s.reached()
	}
}

// failAll fails every waiting call, and those that owners make of them meanwhile. Nothing of
// them is left to be sent: the present attempt to connect may yet succeed.
func (l *lane) failAll(f Failure) {
	for l.waiting.n > 0 {
		l.s.fail(l.take(), f)
	}
	l.unsent = nil
}

// lost is called when the open connection is of no more use.
func (l *lane) lost(f Failure) {
	conn := l.conn
	l.conn, l.greeting = nil, false
	l.unsent, l.moved, l.within = nil, progress{}, false
	conn.Close()
	unused := l.waiting.n == 0
	if l.resend(f) == 0 && !(unused && f == Lost) { // a server may hang up on who asks nothing
		l.s.watch.failed(f)
	}
	switch {
	case l.s.retired && l.waiting.n == 0:
	case l.tries == 0:
		l.connect()
	default:
		l.connectLater()
	}
}

// resend sends the reads that waited and can still be answered in time again, once, on the
// next connection, where they come first. It fails everything else and returns how many
// calls that were.
func (l *lane) resend(f Failure) (failed int) {
	calls := l.waiting
	l.waiting = queue{}
	for calls.n > 0 {
		c := calls.pop()
		if l.s.took(c) < l.s.cfg.Timeout && c.Repeatable && !c.retried && !l.s.closed && l.s.cfg.Retry() {
			c.retried = true
			l.s.stats.Retries++
			c.Owner.Restarted(c)
			l.enqueue(c, c.Raw())
			continue
		}
		failed++
		l.unclaim(c)
		l.s.fail(c, f)
	}
	return failed
}

// expire is called when the first waiting call may be overdue. The timer is set by the
// call that finds it unset, not by each, so it may also be early.
func (l *lane) expire() {
	l.look()
	if l.overdue() && l.conn != nil {
		// The reply may be here and only this loop be slow to look.
		l.conn.ReadNow()
		l.look()
	}
	switch {
	case !l.overdue():
	case l.greeting:
		l.dismiss(TimedOut)
	case l.conn != nil:
		l.lost(TimedOut)
	default: // still connecting
		l.giveUp(TimedOut)
	}
	if due := l.due(); !due.IsZero() && !l.expiry.Armed() {
		l.wake(due)
	}
}

// due returns when the lane will have waited too long; the zero time if it waits for
// nothing.
func (l *lane) due() (t time.Time) {
	if l.greeting {
		t = l.greetBy
	}
	if l.waiting.head == nil {
		return t
	}
	if late := l.late(l.waiting.head); t.IsZero() || late.Before(t) {
		t = late
	}
	return t
}

func (l *lane) overdue() bool {
	due := l.due()
	return !due.IsZero() && !due.After(l.s.loop.Now())
}

// giveUp ends an attempt to connect that has taken as long as a call may take.
func (l *lane) giveUp(f Failure) {
	if l.cancel != nil {
		l.cancel() // dialed follows, and fails what comes until then
		l.givenUp = true
	}
	l.expected = false
	l.failAll(f)
}

func (l *lane) closeIfIdle() {
	if l.s.retired && l.waiting.n == 0 && !l.dialing {
		l.close()
	}
}

func (l *lane) close() {
	l.s.loop.Stop(&l.again)
	l.s.loop.Stop(&l.expiry)
	if l.cancel != nil {
		l.cancel()
	}
	if l.down {
		l.down = false
		l.s.cfg.Health.down.Add(-1)
	}
	if conn := l.conn; conn != nil {
		l.conn = nil
		conn.Close()
	}
	l.failAll(Lost)
}

// failureOf tells what kind of failure an error of dialing or reading is.
func failureOf(err error) Failure {
	var ne net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return TimedOut
	case errors.Is(err, context.Canceled): // by giveUp
		return TimedOut
	case isDialError(err):
		return Refused
	}
	return Lost
}

func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
