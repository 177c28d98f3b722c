package router

import (
	"cacherouter/backend"
	"cacherouter/memproto"
)

// cleaning deletes a key on the servers that may hold an older item than the one that was
// written, or stores the new one there. The client is answered when that is done, or
// before if it may be.
type cleaning struct {
	w      *worker
	q      *request // nil when it has been answered
	reply  []byte   // for the client
	sweeps []sweep
	passed []*node // were passed over when the write was placed
	left   int
	failed bool // where it must not
	// refilled says that a copy may have come to the home after the write.
	refilled bool
	line     []byte

	// What is left of the write.
	hash    uint64
	key     []byte
	coded   bool
	node    *node
	version uint64
	mark    uint64
	began   bool

	spread    []byte // what stores the new item; empty if it is not known
	spreading bool
}

// sweep is what is done on one server.
type sweep struct {
	call backend.Call
	c    *cleaning
	node *node
	must bool // the write is in doubt when this fails
	copy bool // the server is to hold a copy
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
func (c *cleaning) add(n *node, must bool) *sweep {
	for i := range c.sweeps {
		if s := &c.sweeps[i]; s.node == n {
			s.must = s.must || must
			return s
		}
	}
	if len(c.sweeps) < cap(c.sweeps) {
		c.sweeps = c.sweeps[:len(c.sweeps)+1] // whose calls keep their buffers
	} else {
		c.sweeps = append(c.sweeps, sweep{})
	}
	s := &c.sweeps[len(c.sweeps)-1]
	s.c, s.node, s.must = c, n, must
	return s
}

// addOther is add for a server that is not the one that takes the write.
func (c *cleaning) addOther(n *node, must bool) {
	if n != c.q.node {
		c.add(n, must)
	}
}

// start begins with the reply to the write, which is kept. Copies that are being made
// are waited for: the deletion must come after them.
func (c *cleaning) start(reply []byte) {
	c.reply = append(c.reply[:0], reply...)
	w, q := c.w, c.q
	c.hash, c.coded, c.node, c.mark = q.hash, q.coded, q.node, q.mark
	c.key = append(c.key[:0], q.call.Key...)
	c.began, q.began = q.began, false
	c.version = q.version
	c.refilled = q.mayBeRefilled(reply)
	if w.p.cfg.AnswerEarly && q.unmoved() && c.mayBeLate() {
		q.clean, c.q = nil, nil
		q.conclude(c.reply)
	}
	if !c.begin() {
		w.holds.keep(w, c.begin)
	}
}

// begin sweeps, and reports false if it is too early: copies are on their way, or the loop
// has not yet the table by which others read.
func (c *cleaning) begin() bool {
	w, version := c.w, c.w.p.version.Load()
	if w.epochs.Fills(c.hash) || w.version != version {
		return false
	}
	if c.version != version {
		c.addPassed()
	}
	c.sweep()
	return true
}

// addPassed adds the servers that were passed over when the write was placed and serve
// again by the table of now. The others are to forget the key before they do.
func (c *cleaning) addPassed() {
	for _, n := range c.passed {
		if n.use.answers() {
			c.add(n, true)
		}
	}
}

// mayBeLate reports whether the client may be answered before the cleaning is done: if
// it is all about copies, which are not read before that.
func (c *cleaning) mayBeLate() bool {
	for i := range c.sweeps {
		if !c.sweeps[i].copy {
			return false
		}
	}
	return !c.refilled
}

// sweep stores the copies, or sends the deletions. Copies are stored only while no other
// write is on its way: it could reach the servers in another order.
func (c *cleaning) sweep() {
	w := c.w
	c.spreading = len(c.spread) > 0 && c.began && w.epochs.Alone(c.hash, c.mark)
	if c.refilled { // the home may have got an older item after the write
		c.add(c.node, true)
	}
	var verb memproto.Verb
	c.line, verb = memproto.AppendDelete(c.line[:0], c.key, c.coded)
	c.left = 1 // held while some are not sent yet, as one may fail at once
	for i := range c.sweeps {
		s := &c.sweeps[i]
		switch {
		case s.node.Retired() || seededBug && !s.must:
		case !s.must && !s.node.use.answers():
			w.uncleaned(s.node, c.hash, c.key)
		case c.spreading && s.copy:
			c.left++
			w.stats.Spread++
			w.errand(s.node, &s.call, s, c.spreadVerb(), c.hash, c.key, c.spread)
		default:
			c.left++
			w.stats.Cleaned++
			w.errand(s.node, &s.call, s, verb, c.hash, c.key, c.line)
		}
	}
	c.arrived()
}

// spreadVerb returns the verb of what stores the new item.
func (c *cleaning) spreadVerb() memproto.Verb {
	if c.spread[0] == 'm' {
		return memproto.MetaSet
	}
	return memproto.Set
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
	s.c.w.uncleaned(s.node, s.c.hash, s.c.key)
	s.c.failed = s.c.failed || s.must
}

// uncleaned deals with a server that may hold an old item: until that has expired no copy
// is read from it, and it is to forget the key before it serves again.
func (w *worker) uncleaned(n *node, hash uint64, key []byte) {
	w.stats.Uncleaned++
	until := w.now() + w.p.copyLife()
	if w.table.Before.Picker != nil { // it may hold more than a copy
		until = max(until, w.table.Until.Sub(w.r.started))
	}
	n.standing.distrust(until)
	w.missed(n, hash, key)
}

// uncertain is said when a write was done but an old item may be left where it is read.
var uncertain = []byte("SERVER_ERROR backend not cleaned\r\n")

// arrived counts one reply less to wait for; with the last the client is answered, unless
// another write came in between while copies were stored: then they go.
func (c *cleaning) arrived() {
	c.left--
	if c.left > 0 {
		return
	}
	w, q, reply := c.w, c.q, c.reply
	if c.spreading && !w.epochs.Alone(c.hash, c.mark) {
		c.spread = c.spread[:0]
		c.sweep()
		return
	}
	if c.began {
		w.epochs.Ended(c.hash)
	}
	if c.failed {
		reply = uncertain
	}
	if q == nil {
		c.release()
		return
	}
	q.conclude(reply)
}

// release takes back a cleaning that is over, or was not needed.
func (c *cleaning) release() {
	for i := range c.sweeps {
		c.sweeps[i].call.Reset()
		c.sweeps[i] = sweep{call: c.sweeps[i].call}
	}
	w := c.w
	*c = cleaning{
		reply: spare(c.reply), sweeps: c.sweeps[:0], passed: c.passed[:0],
		key: c.key[:0], line: c.line[:0], spread: spare(c.spread),
	}
	w.cleanings.give(c)
}
