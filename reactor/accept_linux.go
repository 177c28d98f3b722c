package reactor

import (
	"net/netip"
	"syscall"

	"cacherouter/reactor/uring"

	"golang.org/x/sys/unix"
)

// acceptBatch is how many connections a loop accepts before it looks at its others.
const acceptBatch = 64

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
	a := &acceptor{fd: fd, loops: loops, ln: ln, poller: loops[0].poller.(fdPoller)}
	return a.start(), nil
}

// acceptor is a listening descriptor in the poller of the first loop.
type acceptor struct {
	fd     int
	poller fdPoller
	loops  []*Loop
	ln     Listener
	retry  Timer // its Func, which the poller sets, goes on with accepting
	closed bool
}

func (a *acceptor) start() (stop func()) {
	l := a.loops[0]
	l.Post(func() { a.poller.listen(a) })
	done := make(chan struct{})
	return func() {
		a.ln.Net.Close()
		if l.Post(func() { a.close(); close(done) }) {
			select {
			case <-done:
			case <-l.ended:
			}
		}
	}
}

func (a *acceptor) close() {
	a.closed = true
	a.loops[0].Stop(&a.retry)
	a.poller.unlisten(a)
}

// accepted takes a connection. from may be nil if it is not known.
func (a *acceptor) accepted(fd int, from unix.Sockaddr) {
	l := a.loops[0]
	if a.ln.Allow != nil {
		if from == nil {
			from, _ = unix.Getpeername(fd)
		}
		if !a.ln.Allow(addrOf(from)) {
			l.stats.Denied++
			unix.Close(fd)
			return
		}
	}
	a.place(fd)
}

// short has descriptors or memory waited for, as nothing will tell when there are more.
func (a *acceptor) short() {
	l := a.loops[0]
	l.stats.AcceptErrors++
	l.Set(&a.retry, l.Now().Add(acceptPause))
}

// place gives a connection to the loop that has the fewest.
func (a *acceptor) place(fd int) {
	l := leastLoaded(a.loops)
	l.load.Add(1)
	adopt := func() { l.attachFd(l.poller.(fdPoller).open(fd, false), true, a.ln.Handler) }
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

func (p *epoll) listen(a *acceptor) {
	a.retry.Func = func() { p.accept(a) }
	p.accepts[a.fd] = a.retry.Func
	p.add(a.fd, unix.EPOLLIN|unix.EPOLLET)
	p.accept(a) // what came before the descriptor was watched
}

func (p *epoll) unlisten(a *acceptor) {
	delete(p.accepts, a.fd)
	p.forget(a.fd)
	unix.Close(a.fd)
}

// accept takes a batch of connections.
func (p *epoll) accept(a *acceptor) {
	for range acceptBatch {
		p.made++
		fd, from, err := unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			a.accepted(fd, from)
		case unix.EAGAIN, unix.EBADF, unix.EINVAL:
			return
		case unix.ECONNABORTED, unix.EINTR:
		default:
			a.short()
			return
		}
	}
	a.loops[0].Set(&a.retry, a.loops[0].Now())
}

// ringListener is an acceptor that a ring serves.
type ringListener struct {
	*acceptor
	p       *ringPoller
	at      uint32 // its seat
	accepts bool   // accepting is under way
}

func (p *ringPoller) listen(a *acceptor) {
	r := &ringListener{acceptor: a, p: p}
	r.at = p.enrol(r)
	p.listeners[a] = r
	a.retry.Func = r.accept
	r.accept()
}

func (r *ringListener) accept() {
	r.accepts = true
	r.p.ring.Accept(r.fd, r.p.data(accepting, r.at))
}

// unlisten waits for the end of accepting, which would keep the socket open. It is not
// shut down, as another process may have it too.
func (p *ringPoller) unlisten(a *acceptor) {
	r := p.listeners[a]
	delete(p.listeners, a)
	if r.accepts {
		p.ring.CancelOne(p.data(accepting, r.at), p.data(other, r.at))
		p.await(&r.accepts)
	}
	p.leave(r.at)
	unix.Close(a.fd)
}

func (r *ringListener) completed(_ operation, c uring.Completion) {
	r.accepts = c.More()
	switch errno := unix.Errno(-c.Res); {
	case c.Res >= 0:
		r.accepted(int(c.Res), nil)
	case errno == unix.ECONNABORTED, errno == unix.EINTR, errno == unix.EAGAIN:
	case errno == unix.ECANCELED, errno == unix.EBADF, errno == unix.EINVAL:
		return
	default:
		r.short()
		return
	}
	if !r.accepts && !r.closed {
		r.accept()
	}
}
