package reactor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// fdPoller is a poller of descriptors.
type fdPoller interface {
	poller
	// open makes fd a socket. If direct is set its writes are done when they return.
	open(fd int, direct bool) fdSock
	// listen has a.accepted called for each connection, on the loop's goroutine, until
	// unlisten, which closes a.fd.
	listen(a *acceptor)
	unlisten(a *acceptor)
}

// fdSock is a socket that a poller serves once it is told for which connection.
type fdSock interface {
	socket
	watch(*Conn) error
}

// attach makes nc, which was dialed, a connection of l. Its descriptor moves to the
// loop's poller if that can watch it; otherwise goroutines serve it.
func (l *Loop) attach(nc net.Conn, h func(*Conn) Handler) (*Conn, error) {
	p, ok := l.poller.(fdPoller)
	sc, plain := nc.(syscall.Conn)
	if !ok || !plain {
		return l.attachStream(nc, false, h), nil
	}
	fd, err := detach(sc)
	nc.Close()
	if err != nil {
		return nil, err
	}
	return l.attachFd(p.open(fd, false), false, h)
}

// attachTLS makes an accepted TLS connection, whose handshake is over, one of l.
func (l *Loop) attachTLS(w *wire, tc *tls.Conn, h func(*Conn) Handler) {
	p, ok := l.poller.(fdPoller)
	sc, plain := w.Conn.(syscall.Conn)
	if !ok || !plain {
		l.attachStream(tc, true, h)
		return
	}
	fd, err := detach(sc)
	w.Conn.Close()
	if err != nil {
		l.load.Add(-1)
		return
	}
	below := p.open(fd, true)
	w.sock = below
	if c, err := l.attachSocket(&tlsSocket{conn: tc, wire: w}, below, true, h); err == nil {
		c.readable = true // what came with the handshake was read then, and makes no event
		c.queue()
	}
}

// detach returns a duplicate of the connection's descriptor, which net then lets go.
func detach(sc syscall.Conn) (fd int, err error) {
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	ctlErr := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(ctlErr, err); err != nil {
		return 0, fmt.Errorf("cannot duplicate descriptor: %w", err)
	}
	return fd, nil
}

// attachFd makes a socket a connection of l.
func (l *Loop) attachFd(s fdSock, accepted bool, h func(*Conn) Handler) (*Conn, error) {
	return l.attachSocket(s, s, accepted, h)
}

// attachSocket makes a socket, below which is that of a descriptor, a connection of l.
func (l *Loop) attachSocket(s socket, below fdSock, accepted bool, h func(*Conn) Handler) (*Conn, error) {
	c := newConn(l, s, accepted)
	c.handler = h(c)
	if err := below.watch(c); err != nil {
		c.fail(err)
		return nil, err
	}
	return c, nil
}
