package reactor

import "errors"

// Handler is the owner of a connection. Its methods run on the loop's goroutine.
type Handler interface {
	// Received is offered all bytes that have come and were not yet taken, and returns
	// how many it takes. The rest is offered again when more has come, or after Resume.
	// The slice is valid during the call only.
	Received(b []byte) int
	// Flushed is called when a paused connection has written most of what it was given.
	Flushed()
	// Ended is called when the peer has closed its sending half; nothing more comes, but
	// what is written is still sent.
	Ended()
	// Closed is called once when the connection is gone, for whatever reason; err is nil
	// if Close or Finish was asked for.
	Closed(err error)
}

// ErrFull means that a peer does not take what it is sent.
var ErrFull = errors.New("peer does not read")

// lowWater is how many unsent bytes a paused connection may have when its handler is
// told to go on.
const lowWater = 64 << 10

// latelyMost bounds the room that is made for what may come to as much as before, in bytes.
const latelyMost = 256 << 10

// socket is what a connection reads and writes without waiting.
type socket interface {
	// read fills p. Neither bytes, nor again, nor an error means the end of the stream.
	read(p []byte) (n int, again bool, err error)
	write(p []byte) (n int, again bool, err error)
	close()
	peer() string
	// more reports whether, after a read that did not fill its buffer, there may be bytes
	// that no event will tell of.
	more() bool
	// unsent reports whether bytes that write has taken are still to be sent, by another
	// write, be it of nothing.
	unsent() bool
	// unacknowledged returns how many of the bytes that write has taken the peer's system
	// does not yet have, as far as this one can tell.
	unacknowledged() int
	// woke is told of events.
	woke(event)
}

// async is a socket whose writes go on when write has returned, and which receives
// without being asked.
type async interface {
	// unpin makes bytes that write was given, and that wrote was not yet called for, free
	// to be moved.
	unpin()
	// fetch lets read see what has come since the turn began.
	fetch()
	// lend returns bytes that read would, without copying them, or none. They stay until
	// id is given back.
	lend() (b []byte, id int)
	giveBack(id int)
	// lends reports whether what comes can be lent. If not it is read as from other sockets.
	lends() bool
	// expect says that n bytes are wanted in one piece of memory. If that is much the socket
	// may lend no more.
	expect(n int)
}

// Conn is one connection of a loop. All methods belong to the loop's goroutine.
type Conn struct {
	loop    *Loop
	sock    socket
	async   async  // sock, if it is one
	direct  direct // the same
	handler Handler
	in      []byte // bytes that have come, not taken from taken on
	taken   int
	need    int    // do not offer in before it has so many of those
	out     []byte // bytes to be written, from sent on
	sent    int
	lately  int // bytes that out came to before, at most latelyMost
	written uint64
	came    uint64

	queued    bool // in loop.next
	dirty     bool // in loop.dirty
	readable  bool // the socket may have bytes
	blocked   bool // the socket took no more, or has not said how much it took
	paused    bool
	offer     bool // in shall be offered though nothing new came
	ended     bool
	finishing bool
	closed    bool
	accepted  bool
	peerDone  bool // the peer has sent its last byte
	hungUp    bool // the peer neither sends nor takes any more
}

func newConn(l *Loop, s socket, accepted bool) *Conn {
	c := &Conn{loop: l, sock: s, accepted: accepted}
	c.async, _ = s.(async)
	c.direct, _ = s.(direct)
	l.conns[c] = struct{}{}
	return c
}

// Loop returns the loop that owns the connection.
func (c *Conn) Loop() *Loop { return c.loop }

// Peer returns the address of the other side as memcached writes it: "tcp:" or "unix:" and
// an address.
func (c *Conn) Peer() string { return c.sock.peer() }

// Buffered returns the bytes given to Write that the socket has not taken.
func (c *Conn) Buffered() int { return len(c.out) - c.sent }

// Written returns the bytes that the socket has taken so far.
func (c *Conn) Written() uint64 { return c.written }

// Came returns the bytes that the socket has given so far, offered to the handler or not.
func (c *Conn) Came() uint64 { return c.came }

// Undelivered returns the bytes given to Write that the peer's system does not yet have.
// It asks the kernel, so it is for who looks now and then. Where that cannot tell, it is
// what Buffered says.
func (c *Conn) Undelivered() int {
	if c.closed {
		return 0
	}
	return c.Buffered() + c.sock.unacknowledged()
}

// Write appends p to what is sent at the end of the turn; p may change afterwards. If p is
// large it is sent at once, behind what was written before, so that it need not be kept.
func (c *Conn) Write(p []byte) {
	if c.closed || len(p) == 0 {
		return
	}
	if len(p) >= largeWrite {
		if p = c.writeNow(p); len(p) == 0 {
			return
		}
	}
	c.room(len(p))
	c.out = append(c.out, p...)
	c.loop.stats.Copied += uint64(len(p))
	c.touch()
}

// WriteString is Write for a string.
func (c *Conn) WriteString(s string) {
	if c.closed {
		return
	}
	c.room(len(s))
	c.out = append(c.out, s...)
	c.loop.stats.Copied += uint64(len(s))
	c.touch()
}

// Unwrite takes back the last n bytes that were given to Write in this turn, if the socket
// was not given them yet. It reports whether it has.
func (c *Conn) Unwrite(n int) bool {
	if !c.dirty || c.Buffered() < n {
		return false
	}
	c.out = c.out[:len(c.out)-n]
	return true
}

// room makes room for n more bytes behind c.out, which has it most often.
func (c *Conn) room(n int) {
	if cap(c.out)-len(c.out) < n {
		c.makeRoom(n)
	}
}

func (c *Conn) makeRoom(n int) {
	if c.out == nil {
		c.out = c.loop.buffers.take(max(n, c.lately))
		return
	}
	if c.async != nil {
		c.async.unpin()
	}
	out := append(c.loop.buffers.take(max(len(c.out)+n, 2*cap(c.out))), c.out[c.sent:]...)
	c.loop.stats.Copied += uint64(len(out))
	c.loop.buffers.give(c.out)
	c.out, c.sent = out, 0
}

func (c *Conn) touch() {
	if !c.dirty && !c.blocked {
		c.dirty = true
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

// ReadNow reads at once instead of in its turn, for who is about to give up waiting. It
// must not be called from Received.
func (c *Conn) ReadNow() {
	if c.closed || c.paused || c.ended {
		return
	}
	if c.async != nil {
		c.async.fetch()
	}
	c.readOn()
}

// Pause stops reading and offering until Resume.
func (c *Conn) Pause() { c.paused = true }

// Resume offers what was left untaken and reads on, from the next turn.
func (c *Conn) Resume() {
	if c.paused && !c.closed {
		c.paused = false
		c.offer = true
		c.queue()
	}
}

// Paused reports whether Pause is in force.
func (c *Conn) Paused() bool { return c.paused }

// Expect says that offering fewer than n bytes is pointless; it holds for one offer.
func (c *Conn) Expect(n int) { c.need = n }

// Finish closes the connection when all that was written has been sent. Nothing more is
// read.
func (c *Conn) Finish() {
	if !c.closed {
		c.finishing = true
		c.paused = true
		c.touch()
	}
}

// Close drops what is unsent and closes the connection at once.
func (c *Conn) Close() { c.fail(nil) }

func (c *Conn) fail(err error) {
	if c.closed {
		return
	}
	c.closed = true
	c.sock.close()
	c.loop.buffers.give(c.in)
	c.part()
	c.handler.Closed(err)
}

// part takes a closed connection off its loop.
func (c *Conn) part() {
	c.loop.buffers.give(c.out)
	c.in, c.taken, c.out, c.sent = nil, 0, nil, 0
	delete(c.loop.conns, c)
	if c.accepted {
		c.loop.load.Add(-1)
	}
}

func (c *Conn) queue() {
	if !c.queued {
		c.queued = true
		c.loop.next = append(c.loop.next, c)
	}
}

// flush writes what there is, once.
func (c *Conn) flush() {
	if c.closed || c.blocked {
		return
	}
	for c.sent < len(c.out) || c.sock.unsent() {
		n, again, err := c.sock.write(c.out[c.sent:])
		c.loop.stats.Writes++
		c.loop.stats.BytesOut += uint64(n)
		c.sent += n
		c.written += uint64(n)
		if err != nil {
			c.fail(err)
			return
		}
		if again {
			c.blocked = true
			break
		}
	}
	if c.async == nil || !c.blocked {
		c.flushed()
	}
}

// wrote is called when an async socket has done a write and taken n bytes. If it is full
// it took no more, and an event will tell when it does.
func (c *Conn) wrote(n int, full bool) {
	c.loop.stats.BytesOut += uint64(n)
	c.sent += n
	c.written += uint64(n)
	c.blocked = full
	if c.Buffered() > 0 {
		c.touch() // with what was given since
	}
	c.flushed()
}

// flushed does what follows a write.
func (c *Conn) flushed() {
	c.trim()
	if c.finishing && c.Buffered() == 0 && !c.sock.unsent() {
		c.fail(nil)
		return
	}
	if c.paused && !c.finishing && c.Buffered() < lowWater {
		c.handler.Flushed()
	}
}

// trim drops the bytes that were sent, and the buffer with the last of them.
func (c *Conn) trim() {
	switch {
	case c.out == nil:
	case c.sent == len(c.out):
		c.lately = min(len(c.out), latelyMost)
		c.loop.buffers.give(c.out)
		c.out, c.sent = nil, 0
	case c.sent > len(c.out)/2:
		c.out = c.out[:copy(c.out, c.out[c.sent:])]
		c.loop.stats.Copied += uint64(len(c.out))
		c.sent = 0
	}
}

// event is called by the poller when the socket's state has changed.
func (c *Conn) event(e event) {
	if c.closed {
		return
	}
	c.sock.woke(e)
	if e.writable && c.blocked {
		c.blocked = false
		c.touch()
	}
	c.peerDone = c.peerDone || e.peerDone
	c.hungUp = c.hungUp || e.hungUp
	if e.readable {
		c.readable = true
		if !c.paused || e.hungUp {
			c.queue()
		}
	}
}

// event is a change of a socket's state. peerDone and hungUp come with readable.
type event struct{ readable, writable, peerDone, hungUp bool }
