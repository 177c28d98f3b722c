package reactor

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const maxEvents = 1024

// epoll is the poller of a loop on Linux.
type epoll struct {
	fd     int
	wakeFd int
	events [maxEvents]unix.EpollEvent
	// conns is indexed by descriptor. An event that was collected before its connection
	// closed cannot reach another one, as events are handed out before any handler runs.
	conns []*Conn
	// accepts is called for listening descriptors.
	accepts map[int]func()
	made    uint64 // system calls
}

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create epoll descriptor: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot create event descriptor: %w", err)
	}
	p := &epoll{fd: fd, wakeFd: wake, accepts: make(map[int]func())}
	if err := p.add(wake, unix.EPOLLIN|unix.EPOLLET); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *epoll) add(fd int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("cannot watch descriptor %d: %w", fd, err)
	}
	return nil
}

// watch registers a connection. Edge-triggered for all it may ever wait for, so the
// registration never changes.
func (p *epoll) watch(fd int, c *Conn) error {
	for len(p.conns) <= fd {
		p.conns = append(p.conns, nil)
	}
	p.conns[fd] = c
	return p.add(fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET)
}

func (p *epoll) open(fd int, _ bool) fdSock { return &fdSocket{fd: fd, poller: p} }

func (p *epoll) remove(fd int) {
	if fd < len(p.conns) {
		p.conns[fd] = nil
	}
}

// forget ends a registration that closing the descriptor would not end, as another process
// may have the socket too.
func (p *epoll) forget(fd int) {
	unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil)
}

func (p *epoll) poll(l *Loop, d time.Duration) (int, error) {
	n, err := p.collect(min(d, l.nap()), d)
	if err != nil {
		return 0, err
	}
	for i := range p.events[:n] {
		p.handOut(&p.events[i])
	}
	return n, nil
}

// begin makes short sleeps of the loop's thread short: by default Linux adds 50 us.
func (p *epoll) begin() { unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(time.Microsecond), 0, 0, 0) }

// submit has nothing to do, as writes are made at once.
func (p *epoll) submit() {}

// rest sleeps in a raw system call, as the scheduler need not hear of so short a time.
func (p *epoll) rest(int) {
	p.made++
	t := unix.NsecToTimespec(int64(restTime))
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// collect fetches events, waiting at most d, of which raw in a raw system call (see nap).
func (p *epoll) collect(raw, d time.Duration) (int, error) {
	n, err := p.rawWait(raw)
	if n > 0 || err != nil || d <= raw {
		return n, err
	}
	p.made++
	n, err = unix.EpollWait(p.fd, p.events[:], milliseconds(d-raw))
	if err == unix.EINTR {
		return 0, nil
	}
	return n, os.NewSyscallError("epoll_wait", err)
}

func (p *epoll) rawWait(d time.Duration) (int, error) {
	p.made++
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), maxEvents, uintptr(milliseconds(d)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("epoll_wait", errno)
}

// milliseconds rounds up, so that a timer that is due later is not polled for.
func milliseconds(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }

func (p *epoll) handOut(e *unix.EpollEvent) {
	fd := int(e.Fd)
	if fd < len(p.conns) && p.conns[fd] != nil {
		hungUp := e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0
		done := hungUp || e.Events&unix.EPOLLRDHUP != 0
		p.conns[fd].event(event{
			readable: done || e.Events&unix.EPOLLIN != 0,
			writable: hungUp || e.Events&unix.EPOLLOUT != 0,
			peerDone: done,
			hungUp:   hungUp,
		})
		return
	}
	if accept := p.accepts[fd]; accept != nil {
		accept()
	} // else it was woken: by an edge, so the counter need not be read
}

func (p *epoll) wake() { wakeUp(p.wakeFd) }

// wakeUp ends a wait in which an event descriptor is watched.
func wakeUp(fd int) {
	one := [8]byte{1}
	unix.Write(fd, one[:])
}

func (p *epoll) calls() uint64 { return p.made }

func (p *epoll) close() error {
	unix.Close(p.wakeFd)
	return os.NewSyscallError("close", unix.Close(p.fd))
}
