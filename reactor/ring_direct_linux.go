package reactor

import "golang.org/x/sys/unix"

// What is large a socket of a ring reads and writes by system calls, as with epoll, which few are
// needed for. The ring would receive it into several of its buffers, and it would have to be copied
// to lie in one piece.

// ringReader says who receives what comes to a socket: the ring, or the loop, whom a poll tells when
// there is something. It changes between two tasks of the ring: one ends before the other is put, so
// that bytes stay in order.
type ringReader struct {
	wanted   bool // large things come: the loop is to read
	on       bool // it does
	polls    bool // the poll is under way
	stopping bool // and was cancelled
	small    int  // reads in a row that were small
}

// largeReceive is the size, in bytes, of what is better read than received by the ring: what is less is copied
// for less than a read takes.
const largeReceive = 32 << 10

// A socket of which so many reads in a row have brought less than so many bytes each is the ring's again.
const (
	smallReads = 64
	smallRead  = 16 << 10
)

func (s *ringSocket) lends() bool { return !s.reader.on }

func (s *ringSocket) expect(n int) {
	if n >= largeReceive && !s.reader.wanted {
		s.reader.wanted = true
		s.touch()
	}
}

// changeOver sees to it, at the end of a turn, that the one who is to receive does.
func (s *ringSocket) changeOver() {
	r := &s.reader
	switch {
	case !r.wanted && !r.stopping: // and the poll is under way
		r.stopping = true
		s.p.ring.CancelOne(s.p.data(becomingReadable, s.seat), s.p.data(other, s.seat))
	case !r.wanted:
	case s.receives:
		s.stopReceiving()
	case !r.polls && s.left() == 0 && !s.done && s.err == nil && !(r.on && s.conn.peerDone):
		*r = ringReader{wanted: true, on: true, polls: true}
		s.p.ring.PollAll(s.fd, unix.POLLIN|unix.POLLRDHUP, s.p.data(becomingReadable, s.seat))
	}
}

func (s *ringSocket) readNow(p []byte) (n int, again bool, err error) {
	s.p.direct++
	n, again, err = receive(s.fd, p)
	if n >= smallRead {
		s.reader.small = 0
	} else if s.reader.small++; s.reader.small == smallReads {
		s.reader.wanted, s.reader.on = false, false
		s.touch()
	}
	return n, again, err
}

func (s *ringSocket) writeNow(p []byte) (n int, again bool, err error) {
	s.p.direct++
	if n, again, err = send(s.fd, p); again {
		s.awaitWritable()
	}
	return n, again, err
}

// writeBoth is called between the ring's sends only, as the connection is not blocked then.
func (s *ringSocket) writeBoth(a, b []byte) (n int, again bool, err error) {
	s.p.direct++
	return sendBoth(s.fd, a, b)
}
