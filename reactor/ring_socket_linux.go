package reactor

import (
	"net"
	"syscall"
	"time"

	"cacherouter/reactor/uring"

	"golang.org/x/sys/unix"
)

// keptMost is how many bytes are kept for a connection that is slow to take them before
// its socket is no longer received from.
const keptMost = 256 << 10

// partsKept is how long a list of parts may be to be kept for the next turn.
const partsKept = 8

// ringSocket is a socket that is received from all the time, and whose writes are done at
// the end of the turn.
type ringSocket struct {
	p    *ringPoller
	fd   int
	seat uint32
	conn *Conn

	// What has come and was not read: a copy of what came in earlier turns, and parts of the
	// kernel's buffers, which are few, with what came in this one.
	kept   []byte
	keptAt int // from where on kept is not read
	parts  []uring.Part
	first  int   // of the parts that were not read
	size   int   // of them, in bytes
	err    error // to be told by the next read

	length int   // of the write that is under way; 0 if none is
	wrote  int32 // what has become of it
	// direct makes writes system calls of their own, for who must know at once.
	direct bool
	file   ringFile
	reader ringReader

	receives bool // receiving is under way
	stopping bool // and was cancelled
	watched  bool // becomingWritable is under way
	watches  bool // ending is under way
	done     bool // the peer has sent its last byte
	touched  bool // in p.touched
	closed   bool
	retry    *Timer // see tryLater; nil if it was never needed
}

// open makes a descriptor a socket.
func (p *ringPoller) open(fd int, direct bool) fdSock {
	s := &ringSocket{p: p, fd: fd, direct: direct}
	s.seat = p.enrol(s)
	s.file.never = int(s.seat) >= p.places
	return s
}

func (s *ringSocket) watch(c *Conn) error {
	if s.closed {
		return net.ErrClosed
	}
	s.conn = c
	s.receive()
	return nil
}

func (s *ringSocket) receive() {
	s.receives = true
	s.p.ring.Receive(s.fd, s.p.buffers, s.p.data(receiving, s.seat))
}

// touch has the socket tidied at the end of the turn.
func (s *ringSocket) touch() {
	if !s.touched {
		s.touched = true
		s.p.touched = append(s.p.touched, s)
	}
}

// left returns how many bytes have come and were not read.
func (s *ringSocket) left() int { return s.size + len(s.kept) - s.keptAt }

func (s *ringSocket) read(p []byte) (n int, again bool, err error) {
	if s.reader.on {
		return s.readNow(p)
	}
	s.touch()
	if len(s.kept) > 0 {
		n = copy(p, s.kept[s.keptAt:])
		if s.keptAt += n; s.keptAt == len(s.kept) {
			s.drop()
		}
	}
	for n < len(p) && s.size > 0 {
		part := &s.parts[s.first]
		m := copy(p[n:], part.Bytes)
		part.Bytes = part.Bytes[m:]
		n, s.size = n+m, s.size-m
		if len(part.Bytes) == 0 {
			s.p.buffers.Release(s.next().ID)
		}
	}
	s.conn.loop.stats.Copied += uint64(n)
	switch {
	case n > 0:
		return n, false, nil
	case s.err != nil:
		return 0, false, s.err
	}
	return 0, !s.done, nil
}

// lend lends the first part, if nothing came before it.
func (s *ringSocket) lend() (b []byte, id int) {
	if len(s.kept) > 0 || s.size == 0 {
		return nil, 0
	}
	s.touch()
	p := s.next()
	s.size -= len(p.Bytes)
	return p.Bytes, p.ID
}

func (s *ringSocket) giveBack(id int) { s.p.buffers.Release(id) }

// next takes the first part off the list.
func (s *ringSocket) next() uring.Part {
	p := s.parts[s.first]
	if s.first++; s.first == len(s.parts) {
		s.parts, s.first = s.parts[:0], 0
		if cap(s.parts) > partsKept {
			s.parts = nil
		}
	}
	return p
}

// drop forgets what is kept.
func (s *ringSocket) drop() {
	if s.kept != nil {
		s.conn.loop.buffers.give(s.kept)
		s.kept, s.keptAt = nil, 0
	}
}

// keep copies the parts, to give them back.
func (s *ringSocket) keep() {
	for s.size > 0 {
		p := s.next()
		s.size -= len(p.Bytes)
		s.add(p.Bytes)
		s.p.buffers.Release(p.ID)
	}
}

// add puts bytes behind those that are kept.
func (s *ringSocket) add(b []byte) {
	if cap(s.kept)-len(s.kept) < len(b) {
		stock := &s.conn.loop.buffers
		left := s.kept[s.keptAt:]
		kept := append(stock.take(max(len(left)+len(b), 2*len(left))), left...)
		stock.give(s.kept)
		s.kept, s.keptAt = kept, 0
	}
	s.kept = append(s.kept, b...)
	s.conn.loop.stats.Copied += uint64(len(b))
}

// write puts a write among those that are done at the end of the turn. Its result comes
// by settle; until then Conn leaves the bytes where they are.
func (s *ringSocket) write(p []byte) (n int, again bool, err error) {
	if s.direct {
		return s.writeNow(p)
	}
	s.length, s.wrote = len(p), int32(len(p))
	s.p.sending = append(s.p.sending, s)
	s.p.unsent += len(p)
	s.send(p)
	return 0, true, nil
}

// settle tells the connection what its write has done.
func (s *ringSocket) settle() {
	if s.closed {
		return
	}
	n, whole := int(s.wrote), int(s.wrote) == s.length
	s.length = 0
	switch {
	case n >= 0:
	case n == -int(unix.EAGAIN), n == -int(unix.EINTR), n == -int(unix.EBADF) && s.unregistered():
		n = 0
	default:
		s.conn.fail(syscall.Errno(-n))
		return
	}
	if !whole {
		s.awaitWritable()
	}
	s.conn.wrote(n, !whole)
}

// awaitWritable has the connection told when the socket takes bytes again. A poll is over at
// once if the peer has sent its last byte: then the socket is tried again after a while.
func (s *ringSocket) awaitWritable() {
	switch {
	case s.watched:
	case s.conn.peerDone:
		s.tryLater()
	default:
		s.watched = true
		s.p.ring.Poll(s.fd, unix.POLLOUT, s.p.data(becomingWritable, s.seat))
	}
}

// tryAgain is how long a socket is left alone that cannot be watched.
const tryAgain = time.Millisecond

func (s *ringSocket) tryLater() {
	if s.retry == nil {
		s.retry = &Timer{Func: func() { s.tell(event{writable: true}) }}
	}
	s.conn.loop.Set(s.retry, s.conn.loop.Now().Add(tryAgain))
}

func (s *ringSocket) tryNoMore() {
	if s.retry != nil {
		s.conn.loop.Stop(s.retry)
	}
}

// unpin makes the bytes of a write that is under way free to be moved.
func (s *ringSocket) unpin() {
	if s.length > 0 {
		s.p.ring.Submit()
	}
}

// fetch takes in what has come since the turn began.
func (s *ringSocket) fetch() {
	if s.p.ring.Collect() == nil {
		s.p.fetch()
	}
}

func (s *ringSocket) completed(op operation, c uring.Completion) {
	switch op {
	case receiving:
		s.received(c)
	case sending:
		s.wrote = c.Res
	case becomingReadable:
		s.reader.polls = c.More()
		s.polled(c.Res)
		if !s.reader.polls {
			s.touch()
		}
	case becomingWritable:
		s.watched = false
		s.polled(c.Res)
		if c.Res >= 0 && s.conn.blocked && s.length == 0 && !s.closed { // it was the peer's end
			s.awaitWritable()
		}
	case ending:
		s.watches = false
		s.polled(c.Res)
		s.touch()
	}
}

// received takes what has come.
func (s *ringSocket) received(c uring.Completion) {
	s.touch()
	if !c.More() {
		s.receives, s.stopping = false, false
	}
	part := s.p.buffers.Received(c)
	switch {
	case c.Res > 0:
		s.parts = append(s.parts, part)
		s.size += len(part.Bytes)
		s.tell(event{readable: true})
	case c.Res == 0:
		s.done = true
		s.tell(event{readable: true, peerDone: true})
	case s.passing(-c.Res):
	default:
		s.err = syscall.Errno(-c.Res)
		s.tell(event{readable: true, writable: true, peerDone: true, hungUp: true})
	}
}

// tell tells the connection of an event. While a write is under way its bytes must not be
// written again; what becomes of it will be known soon.
func (s *ringSocket) tell(e event) {
	e.writable = e.writable && s.length == 0
	s.conn.event(e)
}

// passing reports whether an error says nothing of the connection: receiving was
// cancelled, or has found no free buffer.
func (*ringSocket) passing(err int32) bool {
	switch unix.Errno(err) {
	case unix.ECANCELED, unix.ENOBUFS, unix.EAGAIN, unix.EINTR:
		return true
	}
	return false
}

// polled tells the connection what a poll has found.
func (s *ringSocket) polled(found int32) {
	if found < 0 {
		return // cancelled
	}
	hungUp := found&(unix.POLLHUP|unix.POLLERR) != 0
	done := hungUp || found&unix.POLLRDHUP != 0
	s.tell(event{readable: done || found&unix.POLLIN != 0, writable: hungUp || found&unix.POLLOUT != 0, peerDone: done, hungUp: hungUp})
}

// tidy gives buffers back at the end of a turn, and sees to it that the socket is
// received from if, and only if, its connection takes what comes.
func (s *ringSocket) tidy() {
	s.touched = false
	if s.closed {
		return
	}
	s.keep()
	left := s.left()
	switch {
	case left > 0 && (s.conn.paused || left > keptMost):
		s.stop()
	case s.reader.wanted || s.reader.polls:
		s.changeOver()
	case !s.receives && left == 0 && !s.done && s.err == nil:
		s.receive()
	}
}

// stop stops receiving. The end of the connection is watched for instead, as the one that
// is not received from would not be heard.
func (s *ringSocket) stop() {
	s.stopReceiving()
	if !s.watches && !s.conn.peerDone { // after that only a write can tell more
		s.watches = true
		s.p.ring.Poll(s.fd, unix.POLLRDHUP, s.p.data(ending, s.seat))
	}
}

func (s *ringSocket) stopReceiving() {
	if s.receives && !s.stopping {
		s.stopping = true
		s.p.ring.CancelOne(s.p.data(receiving, s.seat), s.p.data(other, s.seat))
	}
}

// close cancels what is under way and closes the descriptor, in that order, at the end of
// the turn.
func (s *ringSocket) close() {
	s.closed = true
	s.unpin()
	s.tryNoMore()
	s.forget()
	s.unregister()
	ignored := s.p.data(other, s.seat)
	if s.receives || s.watched || s.watches || s.reader.polls {
		s.p.ring.Cancel(s.fd, ignored)
	}
	s.p.ring.CloseFd(s.fd, ignored)
	s.p.leave(s.seat)
}

// forget gives back all memory.
func (s *ringSocket) forget() {
	for s.size > 0 {
		p := s.next()
		s.size -= len(p.Bytes)
		s.p.buffers.Release(p.ID)
	}
	s.drop()
}

func (s *ringSocket) peer() string        { return peerOf(s.fd) }
func (s *ringSocket) more() bool          { return s.left() > 0 || s.done || s.err != nil }
func (s *ringSocket) unsent() bool        { return false }
func (s *ringSocket) woke(event)          {}
func (s *ringSocket) unacknowledged() int { return unacknowledged(s.fd) }
