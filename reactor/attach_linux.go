package reactor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// acceptBatch is how many connections a loop accepts before it looks at its others.
const acceptBatch = 64

// attach makes nc, which was dialed, a connection of l. Its descriptor moves to the
// loop's poller if that can watch it; otherwise goroutines serve it.
func (l *Loop) attach(nc net.Conn, h func(*Conn) Handler) (*Conn, error) {
	p, ok := l.poller.(*epoll)
	sc, plain := nc.(syscall.Conn)
	if !ok || !plain {
		return l.attachStream(nc, false, h), nil
	}
	fd, err := detach(sc)
	nc.Close()
	if err != nil {
		return nil, err
	}
	return l.attachSocket(&fdSocket{fd: fd, poller: p}, fd, false, h)
}

// attachTLS makes an accepted TLS connection, whose handshake is over, one of l.
func (l *Loop) attachTLS(w *wire, tc *tls.Conn, h func(*Conn) Handler) {
	p, ok := l.poller.(*epoll)
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
	w.sock = &fdSocket{fd: fd, poller: p}
	if c, err := l.attachSocket(&tlsSocket{conn: tc, wire: w}, fd, true, h); err == nil {
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

// attachSocket makes a socket, to which fd belongs, a connection of l.
func (l *Loop) attachSocket(s socket, fd int, accepted bool, h func(*Conn) Handler) (*Conn, error) {
	c := newConn(l, s, accepted)
	c.handler = h(c)
	if err := l.poller.(*epoll).watch(fd, c); err != nil {
		c.fail(err)
		return nil, err
	}
	return c, nil
}

// listenFd accepts on ln in the loop itself and hands each connection to the loop that
// has the fewest. Options set on a listening socket are inherited on Linux, which saves
// a call per connection.
func listenFd(ln Listener, loops []*Loop) (stop func(), err error) {
	sc := ln.Net.(syscall.Conn)
	fd, err := detach(sc)
	if err != nil {
		return nil, err
	}
	unix.SetNonblock(fd, true)
	if ln.Net.Addr().Network() == "tcp" {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	}
	a := &acceptor{fd: fd, loops: loops, ln: ln}
	a.retry.Func = a.accept
	return a.start(), nil
}

// acceptor is a listening descriptor in the poller of the first loop.
type acceptor struct {
	fd    int
	loops []*Loop
	ln    Listener
	retry Timer
}

func (a *acceptor) start() (stop func()) {
	l := a.loops[0]
	p := l.poller.(*epoll)
	l.Post(func() {
		p.accepts[a.fd] = a.accept
		p.add(a.fd, unix.EPOLLIN|unix.EPOLLET)
		a.accept() // what came before the descriptor was watched
	})
	done := make(chan struct{})
	return func() {
		a.ln.Net.Close()
		if l.Post(func() { a.close(p); close(done) }) {
			select {
			case <-done:
			case <-l.ended:
			}
		}
	}
}

func (a *acceptor) close(p *epoll) {
	a.loops[0].Stop(&a.retry)
	delete(p.accepts, a.fd)
	p.forget(a.fd)
	unix.Close(a.fd)
}

// accept takes a batch of connections. When descriptors or memory are short it tries
// again after a while, as nothing else will tell when they are not.
func (a *acceptor) accept() {
	l := a.loops[0]
	for range acceptBatch {
		client, from, err := unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			if a.ln.Allow != nil && !a.ln.Allow(addrOf(from)) {
				l.stats.Denied++
				unix.Close(client)
				continue
			}
			a.place(client)
		case unix.EAGAIN, unix.EBADF, unix.EINVAL:
			return
		case unix.ECONNABORTED, unix.EINTR:
		default:
			l.stats.AcceptErrors++
			l.Set(&a.retry, l.now.Add(acceptPause))
			return
		}
	}
	l.Set(&a.retry, l.now)
}

// place gives a connection to the loop that has the fewest.
func (a *acceptor) place(fd int) {
	l := leastLoaded(a.loops)
	l.load.Add(1)
	adopt := func() { l.attachSocket(&fdSocket{fd: fd, poller: l.poller.(*epoll)}, fd, true, a.ln.Handler) }
	if l == a.loops[0] {
		adopt()
	} else if !l.Post(adopt) {
		unix.Close(fd)
	}
}

// addrOf returns the address of a client, the zero Addr if it has none.
func addrOf(sa unix.Sockaddr) netip.Addr {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap()
	}
	return netip.Addr{}
}
