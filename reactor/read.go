package reactor

import "io"

// readRoom is the least room for a read, in bytes.
const readRoom = 4 << 10

// lineRoom is how much of what an async socket has is copied to complete what is kept, while
// it is not known how much that takes, in bytes.
const lineRoom = 256

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
// read at once, as it lies where there is little room.
func (c *Conn) readOn() {
	more := c.read()
	for more && c.async != nil {
		more = c.read()
	}
	if more {
		c.queue()
	}
}

// reoffer gives the handler the bytes it did not take before.
func (c *Conn) reoffer() {
	if len(c.in) == 0 || len(c.in) < c.need {
		return
	}
	c.need = 0
	n := c.handler.Received(c.in)
	if c.closed {
		return
	}
	c.in = c.in[:copy(c.in, c.in[n:])]
	c.loop.stats.Copied += uint64(len(c.in))
	if len(c.in) == 0 {
		c.loop.buffers.give(c.in)
		c.in = nil
	}
}

// read takes one read from the socket, and reports whether there may be more. While
// nothing is kept from earlier it goes to the loop's scratch buffer, so that connections
// between requests hold no memory.
func (c *Conn) read() (more bool) {
	kept := len(c.in) > 0
	if !kept && c.async != nil {
		if b, id := c.async.lend(); len(b) > 0 {
			more = c.readLent(b)
			c.async.giveBack(id)
			return more
		}
	}
	buf := c.loop.scratch
	if kept {
		// What is expected is only announced: memory follows what has come, by doubling.
		c.grow(max(min(c.need-len(c.in), len(c.in)), readRoom))
		buf = c.in[len(c.in):cap(c.in)]
		if c.async != nil { // which lends the rest
			buf = buf[:min(len(buf), max(c.need-len(c.in), lineRoom))]
		}
	}
	n, again, err := c.sock.read(buf)
	c.count(n)
	// A read that did not fill the buffer has emptied the socket: the next bytes make
	// a new edge. The end of the stream may have come with the last edge, though.
	c.readable = n == len(buf) && c.async == nil || c.peerDone || !again && c.sock.more()
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
		c.received(buf[:n])
	}
	return c.readable && !c.closed && !c.paused
}

// readLent is read for bytes that an async socket lends.
func (c *Conn) readLent(b []byte) (more bool) {
	c.count(len(b))
	c.received(b)
	c.readable = c.peerDone || c.sock.more()
	return c.readable && !c.closed && !c.paused
}

func (c *Conn) count(n int) {
	c.loop.stats.Reads++
	c.loop.stats.BytesIn += uint64(n)
	c.came += uint64(n)
}

// received offers bytes from the scratch buffer and keeps what is not taken.
func (c *Conn) received(b []byte) {
	c.need = 0
	n := c.handler.Received(b)
	if c.closed || n == len(b) {
		return
	}
	rest := b[n:]
	c.in = c.loop.buffers.take(max(min(c.need, scratchSize), len(rest)))
	c.in = append(c.in, rest...)
	c.loop.stats.Copied += uint64(len(rest))
}

// grow makes room for n more bytes behind c.in.
func (c *Conn) grow(n int) {
	if cap(c.in)-len(c.in) >= n {
		return
	}
	in := append(c.loop.buffers.take(max(len(c.in)+n, 2*cap(c.in))), c.in...)
	c.loop.stats.Copied += uint64(len(in))
	c.loop.buffers.give(c.in)
	c.in = in
}
