package reactor

// What is large is not moved between buffers on its way through a loop. It is received into one
// buffer, which a connection keeps until the last byte has come, and written from there at once. Only
// what a socket does not take is copied.
const (
	// largeWrite is the size of a write, in bytes, that does not wait for the end of the turn. What is
	// less costs little to copy, and fewer packets if it leaves with what is written after it.
	largeWrite = 32 << 10
	// largeRead is the expected size, in bytes, of what is read to its end in one turn, and no
	// further: one more read costs less than to copy the beginning of what comes behind it.
	largeRead = 16 << 10
	// largeTurn is how many bytes of it end the reading in one turn.
	largeTurn = 1 << 20
)

// direct is a socket whose writes are done when they return.
type direct interface {
	// writeBoth writes a and then b by one call.
	writeBoth(a, b []byte) (n int, again bool, err error)
}

// writeNow writes what is unsent and p at once, if the socket may take it, and returns what it did not
// take of p, for the flush. An error is left to that too, which will meet it: a handler is not told of
// it while it writes.
func (c *Conn) writeNow(p []byte) (rest []byte) {
	if c.direct == nil || c.blocked {
		return p
	}
	if c.loop.onTurn != nil {
		c.loop.onTurn()
	}
	n, _, err := c.direct.writeBoth(c.out[c.sent:], p)
	if err != nil {
		return p
	}
	c.loop.stats.Writes++
	c.loop.stats.BytesOut += uint64(n)
	c.written += uint64(n)
	earlier := min(n, c.Buffered())
	c.sent += earlier
	c.trim()
	return p[n-earlier:]
}

// midway reports whether something large has come in part, which is then read on without
// waiting for the next turn, in which it would have left the processor's cache.
func (c *Conn) midway() bool {
	return c.need >= largeRead && c.untaken() < min(c.need, largeTurn)
}

// keepScratch keeps what was left of b, which lies in the loop's scratch buffer: in there, if
// it is the beginning of something large, and enough for the size of the buffer.
func (c *Conn) keepScratch(b []byte, left int) {
	l := c.loop
	if c.need < largeRead || len(b)*keptShare < cap(l.scratch) || left < len(b)/2 {
		c.keep(b[len(b)-left:])
		return
	}
	c.in, c.taken = b, len(b)-left
	l.scratch = l.buffers.take(scratchSize)[:scratchSize]
}

// giveRead takes back a buffer of what was received: for the next read, if it can be, as the
// processor still has it in its cache.
func (l *Loop) giveRead(b []byte) {
	if cap(b) == scratchSize {
		b, l.scratch = l.scratch, b[:scratchSize]
	}
	l.buffers.give(b)
}
