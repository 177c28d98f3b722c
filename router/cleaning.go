package router

import (
	"time"

	"cacherouter/backend"
	"cacherouter/memproto"
)

// cleaning deletes a key on the servers that may hold an older item than the one that
// was written. The client is answered when that is done.
type cleaning struct {
	w      *worker
	q      *request
	reply  []byte // for the client
	sweeps []sweep
	passed []*node // were passed over when the write was placed
	left   int
	failed bool // where it must not
	// refilled says that a copy may have come to the home after the write.
	refilled bool
	line     []byte
}

// sweep is the deletion on one server.
type sweep struct {
	call backend.Call
	c    *cleaning
	node *node
	must bool // the write is in doubt when this fails
}

// cleaning returns the request's cleaning, which is made when first asked for.
func (q *request) cleaning() *cleaning {
	if q.clean == nil {
		q.clean = q.w.cleanings.take()
		q.clean.w, q.clean.q = q.w, q
	}
	return q.clean
}

// add notes a server to clean, once.
func (c *cleaning) add(n *node, must bool) {
	if n == c.q.node {
		return
	}
	for i := range c.sweeps {
		if c.sweeps[i].node == n {
			c.sweeps[i].must = c.sweeps[i].must || must
			return
		}
	}
	c.push(n, must)
}

func (c *cleaning) push(n *node, must bool) {
	if len(c.sweeps) < cap(c.sweeps) {
		c.sweeps = c.sweeps[:len(c.sweeps)+1] // whose calls keep their buffers
	} else {
		c.sweeps = append(c.sweeps, sweep{})
	}
	s := &c.sweeps[len(c.sweeps)-1]
	s.c, s.node, s.must = c, n, must
}

// start begins with the reply to the write, which is kept. Copies that are being made
// are waited for: the deletion must come after them.
func (c *cleaning) start(reply []byte) {
	c.reply = append(c.reply[:0], reply...)
	w, q := c.w, c.q
	if q.version != w.r.version.Load() { // those that were passed over may serve again
		for _, n := range c.passed {
			c.add(n, true)
		}
	}
	if w.epochs.Fills(q.hash) {
		c.refilled = deletes(q.verb) || w.table.Before != nil
		w.holds.keep(w, func() bool {
			if w.epochs.Fills(q.hash) {
				return false
			}
			c.sweep()
			return true
		})
		return
	}
	c.sweep()
}

// sweep sends the deletions.
func (c *cleaning) sweep() {
	w, q := c.w, c.q
	if c.refilled { // the home may have got an older item after the write
		c.push(q.node, true)
	}
	var verb memproto.Verb
	c.line, verb = memproto.AppendDelete(c.line[:0], q.key, q.coded)
	c.left = 1 // held while some are not sent yet, as one may fail at once
	for i := range c.sweeps {
		s := &c.sweeps[i]
		switch {
		case s.node.Retired():
		case !s.must && !s.node.answers():
			w.uncleaned(s.node, q.hash, q.key)
		default:
			c.left++
			w.stats.Cleaned++
			w.errand(s.node, &s.call, s, verb, q.hash, c.line)
		}
	}
	c.arrived()
}

func (s *sweep) Replied(_ *backend.Call, u memproto.Unit, _ []byte) bool {
	if u.Fault {
		s.failed()
	}
	s.c.arrived()
	return true
}

func (s *sweep) Failed(*backend.Call, backend.Failure) {
	s.failed()
	s.c.arrived()
}

func (s *sweep) Restarted(*backend.Call) {}

func (s *sweep) failed() {
	s.c.w.uncleaned(s.node, s.c.q.hash, s.c.q.key)
	s.c.failed = s.c.failed || s.must
}

// uncleaned deals with a server that may hold an old item: until that has expired no copy
// is read from it, and it is to forget the key before it serves again.
func (w *worker) uncleaned(n *node, hash uint64, key []byte) {
	w.stats.Uncleaned++
	until := w.now() + copyTTL*time.Second + w.r.copyMargin()
	if w.table.Before != nil { // it may hold more than a copy
		until = max(until, w.table.Until.Sub(w.r.started))
	}
	n.standing.distrust(until)
	w.missed(n, hash, key)
}

// uncertain is said when a write was done but an old item may be left where it is read.
var uncertain = []byte("SERVER_ERROR backend not cleaned\r\n")

// arrived counts one reply less to wait for; with the last the client is answered.
func (c *cleaning) arrived() {
	c.left--
	if c.left > 0 {
		return
	}
	q, reply := c.q, c.reply
	if c.failed {
		reply = uncertain
	}
	q.ended()
	q.conclude(reply)
}

// release takes back a cleaning that is over, or was not needed.
func (c *cleaning) release() {
	for i := range c.sweeps {
		c.sweeps[i].call.Reset()
		c.sweeps[i] = sweep{call: c.sweeps[i].call}
	}
	reply := c.reply[:0]
	if cap(reply) > keepReply {
		reply = nil
	}
	w := c.w
	*c = cleaning{reply: reply, sweeps: c.sweeps[:0], passed: c.passed[:0], line: c.line[:0]}
	w.cleanings.give(c)
}
