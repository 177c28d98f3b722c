package reactor

import "io"

// readRoom is the least room for a read, in bytes.
const readRoom = 4 << 10

// keptRoom is the room behind what is kept when more is expected, in bytes: as what comes is read to
// there only, little room would mean many reads.
const keptRoom = 12 << 10

// lineRoom is how much of what an async socket has is copied to complete what is kept, while
// it is not known how much that takes, in bytes.
const lineRoom = 256

// keptShare is how many times as much memory a connection may have for what is expected as has come,
// if that is more than readSize: it is only announced.
const keptShare = 4

// serve gives the handler one read's worth of bytes.
func (c *Conn) serve() {
	switch {
	case c.closed:
	case c.paused:
		if c.hungUp && !c.finishing {
			c.fail(io.ErrUnexpectedEOF) // nobody is left to answer
		}
	case c.offer:
		c.offer = false
		c.reoffer()
		if c.readable && !c.closed && !c.paused {
			c.queue()
		}
	case c.readable && !c.ended:
		c.readOn()
	}
}

// readOn reads once, and then in the next turn, for fairness. What an async socket has is
// read at once, as it lies where there is little room, and so is the rest of what is large.
func (c *Conn) readOn() {
	more := c.read()
	for more && (c.lends() || c.midway()) {
		more = c.read()
	}
	if more {
		c.queue()
	}
}

// reoffer gives the handler the bytes it did not take before.
func (c *Conn) reoffer() {
	if len(c.in) == 0 || c.untaken() < c.need {
		return
	}
	c.need = 0
	n := c.handler.Received(c.in[c.taken:])
	if c.closed {
		return
	}
	c.taken += n
	switch left := c.untaken(); {
	case left == 0:
		c.loop.giveRead(c.in)
		c.in, c.taken = nil, 0
	case left <= readRoom && n > 0: // so that there is room for the rest
		c.in = c.in[:copy(c.in, c.in[c.taken:])]
		c.taken = 0
		c.loop.stats.Copied += uint64(left)
	}
}

// untaken returns how many bytes were offered and not taken.
func (c *Conn) untaken() int { return len(c.in) - c.taken }

// lends reports whether the socket lends what has come.
func (c *Conn) lends() bool { return c.async != nil && c.async.lends() }

// read takes one read from the socket, and reports whether there may be more. While
// nothing is kept from earlier it goes to the loop's scratch buffer, so that connections
// between requests hold no memory.
func (c *Conn) read() (more bool) {
	kept, lends := len(c.in) > 0, c.lends()
	if !kept && lends {
		if b, id := c.async.lend(); len(b) > 0 {
			more = c.readLent(b)
			c.async.giveBack(id)
			return more
		}
	}
	buf := c.loop.scratch[:readSize]
	if kept {
		buf = c.roomToRead(lends)
	}
	n, again, err := c.sock.read(buf)
	c.count(n)
	// A read that did not fill the buffer has emptied the socket: the next bytes make
	// a new edge. The end of the stream may have come with the last edge, though.
	c.readable = n == len(buf) && !lends || c.peerDone || !again && c.sock.more()
	switch {
	case err != nil:
		c.fail(err)
		return false
	case again:
		return false
	case n == 0:
		c.ended = true
		c.handler.Ended()
		return false
	case kept:
		c.in = c.in[:len(c.in)+n]
		c.reoffer()
	default:
		if left := c.received(buf[:n]); left > 0 {
			c.keepScratch(buf[:n], left)
		}
	}
	return c.readable && !c.closed && !c.paused
}

// roomToRead returns room behind what is kept, for what is expected if that is known.
func (c *Conn) roomToRead(lends bool) []byte {
	have := c.untaken()
	missing := c.need - have
	c.grow(max(c.worth(have)-have, readRoom))
	buf := c.in[len(c.in):cap(c.in)]
	switch {
	case lends: // the rest
		buf = buf[:min(len(buf), max(missing, lineRoom))]
		c.async.expect(c.need)
	case c.need >= largeRead: // what comes behind it may be large too, and begins a buffer then
		buf = buf[:min(len(buf), missing+readRoom)]
	}
	return buf
}

// readLent is read for bytes that an async socket lends.
func (c *Conn) readLent(b []byte) (more bool) {
	c.count(len(b))
	if left := c.received(b); left > 0 {
		c.keep(b[len(b)-left:])
	}
	c.readable = c.peerDone || c.sock.more()
	return c.readable && !c.closed && !c.paused
}

func (c *Conn) count(n int) {
	c.loop.stats.Reads++
	c.loop.stats.BytesIn += uint64(n)
	c.came += uint64(n)
}

// received offers bytes while none are kept, and returns how many of them are left.
func (c *Conn) received(b []byte) (left int) {
	c.need = 0
	n := c.handler.Received(b)
	if c.closed {
		return 0
	}
	return len(b) - n
}

// keep copies what was not taken.
func (c *Conn) keep(rest []byte) {
	room := len(rest)
	if c.need > 0 {
		room = max(c.worth(room), room+keptRoom)
	}
	c.in = c.loop.buffers.take(room)
	c.in, c.taken = append(c.in, rest...), 0
	c.loop.stats.Copied += uint64(len(rest))
}

// worth returns how much memory there may be for what is expected when so many bytes of it have come.
func (c *Conn) worth(have int) int { return min(c.need, max(keptShare*have, readSize)) }

// grow makes room for n more bytes behind c.in.
func (c *Conn) grow(n int) {
	if cap(c.in)-len(c.in) >= n {
		return
	}
	rest := c.in[c.taken:]
	in := append(c.loop.buffers.take(max(len(rest)+n, 2*len(rest))), rest...)
	c.loop.stats.Copied += uint64(len(in))
	c.loop.buffers.give(c.in)
	c.in, c.taken = in, 0
}
