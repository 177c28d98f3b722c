//go:build linux

package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// sends is what a lane does in an open loop: it holds the next request that nobody has taken until that is
// due, and gives it to the next connection with room. All that is due by then for one connection is one write.
type sends struct {
	next   source
	held   bool  // there is a request
	due    int64 // its time
	full   bool  // no connection had room when it was looked for last
	free   int64 // since when one has
	cursor int   // the client to begin with
	dirty  []dirty
}

// dirty is a client with something to be written.
type dirty struct {
	c    *client
	from int // the first of its calls that was not written
}

func (l *lane) openLoop(next source) {
	// Without it the kernel would wake us up to 50 us late.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	l.sends = sends{next: next, dirty: l.sends.dirty[:0]}
	l.take()
	for l.sends.held || l.busy > 0 {
		l.dispatch()
		l.turn(l.leisure())
	}
}

// take takes the next request off the schedule.
func (l *lane) take() {
	l.sends.due, l.sends.held = l.run.schedule.take()
}

// leisure is how long there is nothing to do but to wait for replies.
func (l *lane) leisure() time.Duration {
	until := l.now + int64(pollEvery)
	if l.sends.held && !l.sends.full {
		until = min(until, l.sends.due)
	}
	if at, ok := l.nextFill(); ok && !l.sends.full {
		until = min(until, at)
	}
	return time.Duration(max(0, until-l.run.clock()))
}

// dispatch sends what is due.
func (l *lane) dispatch() {
	l.now = l.run.clock()
	if l.run.stop.Load() {
		l.sends.held = false
	}
	if l.sends.held || l.busy > 0 { // nobody waits for what the origin gives after the end
		for at, ok := l.nextFill(); ok && at <= l.now && l.hand(at, false); at, ok = l.nextFill() {
		}
	}
	for l.sends.held && l.sends.due <= l.now && l.hand(l.sends.due, true) {
		l.take()
	}
	for _, d := range l.sends.dirty {
		l.write(d.c)
		l.written(d)
	}
	if len(l.sends.dirty) > 0 {
		l.sends.cursor = (l.sends.cursor + 1) % len(l.clients)
		l.sends.dirty = l.sends.dirty[:0]
	}
}

// written records how late the calls of a client were written.
func (l *lane) written(d dirty) {
	if d.c.closed {
		return
	}
	now := l.run.clock()
	l.tally.lastSent = now
	for _, q := range d.c.asked[d.from:] {
		if !q.more && !q.loose {
			record(l.tally.delay, time.Duration(now-q.due))
		}
	}
}

// hand gives a request that was due to a connection, and reports whether one had room. It is the next of the mix, or
// else what the origin gave.
func (l *lane) hand(due int64, mix bool) bool {
	s := &l.sends
	c := l.withRoom()
	if c == nil {
		s.full = true
		s.held = s.held && l.busy > 0 // else all are closed
		return false
	}
	if s.full {
		s.full, s.free = false, l.now
	}
	from := len(c.asked)
	if c.waiting() == 0 {
		l.busy++
		c.since, from = l.now, 0
	}
	if len(s.dirty) == 0 || s.dirty[len(s.dirty)-1].c != c {
		s.dirty = append(s.dirty, dirty{c, from})
	}
	next := s.next
	if !mix {
		next = func(int64) (call, bool) { return l.filled() }
	}
	l.compose(c, 1, next, due)
	last := &c.asked[len(c.asked)-1]
	last.loose = !mix || due < s.free
	if mix {
		l.tally.started++
	}
	if mix && last.loose {
		l.tally.NotInTime++
	}
	return true
}

// withRoom is the client that the next request goes to, nil if all have as much on their way as they may. It
// stays with one while that has room, so that what is due at a time takes few writes.
func (l *lane) withRoom() *client {
	for range l.clients {
		c := l.clients[l.sends.cursor]
		if l.ready(c) {
			return c
		}
		l.sends.cursor = (l.sends.cursor + 1) % len(l.clients)
	}
	return nil
}

// ready reports whether a client may ask one more. One that has to connect anew does so when all is answered.
func (l *lane) ready(c *client) bool {
	if c.closed || c.open >= l.batch {
		return false
	}
	if l.churn == 0 || c.made < l.churn {
		return true
	}
	if c.waiting() > 0 {
		return false
	}
	if err := l.reopen(c); err != nil {
		l.drop(c, err)
		return false
	}
	return true
}
