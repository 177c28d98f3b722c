package backend

import "time"

// A big value on a slow link takes longer than a call may, though nothing is wrong. So on
// the bulk lane a call that has had its time is not late yet while bytes move: it may go
// on until none has for half a timeout. As the lane looks four times in a timeout, a
// server that stops is found out within one timeout after its last byte, like any other.
//
// The bound is maxTimeouts: a minute with the default timeout of a second, in which 100 MiB
// pass at 14 Mbit/s. Clients wait no longer, and a server that dribbles must not hold up
// the calls behind it for ever.
//
// The small lane knows no such patience, because calls on small values would have to wait
// too. A value that turns out to be big there is remembered before it is whole, so that
// the next request for it goes by the bulk lane.
const maxTimeouts = 60

// progress is what a lane saw of its connection when it last looked. The zero value is for
// a new connection.
type progress struct {
	came      uint64    // bytes received
	delivered uint64    // bytes that the server's system has
	at        time.Time // of the last look at which more had moved
}

// look notes whether bytes of big values have moved. What is received is progress of the
// first waiting call. What is sent is so only while much is unsent: the system of a server
// that is stopped goes on taking small requests for long.
func (l *lane) look() {
	if !l.patient() || l.conn == nil || l.greeting {
		return
	}
	unsent := l.conn.Undelivered()
	came := l.conn.Came()
	delivered := l.conn.Written() + uint64(l.conn.Buffered()) - uint64(unsent)
	if came > l.moved.came || delivered > l.moved.delivered && unsent >= l.s.cfg.BulkSize {
		l.moved.at = l.s.loop.Now()
	}
	l.moved.came, l.moved.delivered = came, delivered
}

// late returns when a call, the first that waits, will have waited too long.
func (l *lane) late(c *Call) time.Time {
	timeout, deadline := l.s.cfg.Timeout, l.s.deadline(c)
	stalled := l.moved.at.Add(timeout / 2)
	if !stalled.After(deadline) {
		return deadline
	}
	if most := deadline.Add((maxTimeouts - 1) * timeout); stalled.After(most) {
		return most
	}
	return stalled
}

// wake sets the timer for when something may be overdue, or for the next look.
func (l *lane) wake(due time.Time) {
	if next := l.s.loop.Now().Add(l.s.cfg.Timeout / 4); l.patient() && next.Before(due) {
		due = next
	}
	l.s.loop.Set(&l.expiry, due)
}

// expecting learns the size of a reply that has only begun to come.
func (s *Server) expecting(c *Call, size int) {
	if c.keys == 1 && size >= s.cfg.BulkSize {
		s.Saw(c.hash, size)
	}
}
