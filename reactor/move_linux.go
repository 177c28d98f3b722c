package reactor

import (
	"net"
	"os"
	"syscall"
)

// movable is a socket that can be taken from its poller.
type movable interface {
	// detach ends all that is under way and returns the descriptor, which is the caller's
	// then, and what has come and was not read. It reports false, and the socket stays, if
	// the peer turns out to send no more.
	detach() (fd int, unread []byte, ok bool)
}

// Detach takes a connection from its loop, so that another process can go on with it: it
// returns the socket, and the bytes that have come and were not taken, which are the
// caller's. The connection is closed then, but for its peer, and its handler is not told. It
// reports false, and does nothing, if that cannot be done, or not yet: the socket is not a plain
// one, bytes are still to be sent, or the peer sends no more.
func (c *Conn) Detach() (f *os.File, rest []byte, ok bool) {
	s, plain := c.sock.(movable)
	if !plain || c.closed || c.finishing || c.ended || c.peerDone || c.Buffered() > 0 {
		return nil, nil, false
	}
	fd, unread, ok := s.detach()
	if !ok {
		return nil, nil, false
	}
	c.closed = true
	rest = append(c.in[c.taken:], unread...)
	c.part()
	return os.NewFile(uintptr(fd), "connection"), rest, true
}

// Movable reports whether Detach can ever take the connection.
func (c *Conn) Movable() bool {
	_, plain := c.sock.(movable)
	return plain && !c.closed && !c.finishing
}

func (s *fdSocket) detach() (fd int, unread []byte, ok bool) {
	s.poller.forget(s.fd)
	s.poller.remove(s.fd)
	return s.fd, nil, true
}

// adopt makes nc, which was accepted once, a connection of l; nil if that fails.
func (l *Loop) adopt(nc net.Conn, h func(*Conn) Handler) *Conn {
	p, polls := l.poller.(fdPoller)
	sc, plain := nc.(syscall.Conn)
	if !polls || !plain {
		return l.attachStream(nc, true, h)
	}
	fd, err := detach(sc)
	nc.Close()
	if err != nil {
		l.load.Add(-1)
		return nil
	}
	c, err := l.attachFd(p.open(fd, false), true, h)
	if err != nil {
		return nil
	}
	return c
}

// detach waits until the kernel receives no more for this process.
func (s *ringSocket) detach() (fd int, unread []byte, ok bool) {
	s.stopWatching()
	if s.done || s.err != nil {
		return -1, nil, false // which reading will tell
	}
	s.closed = true
	s.tryNoMore()
	s.reader = ringReader{}
	unread = make([]byte, s.left())
	s.read(unread)
	s.forget()
	s.unregister()
	s.p.leave(s.seat)
	return s.fd, unread, true
}

// stopWatching ends all that is under way.
func (s *ringSocket) stopWatching() {
	s.touch() // to go on if the socket stays
	s.p.ring.Cancel(s.fd, s.p.data(other, s.seat))
	for _, under := range []*bool{&s.receives, &s.watched, &s.watches, &s.reader.polls} {
		s.p.await(under)
	}
}
