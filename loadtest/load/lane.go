//go:build linux

package load

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pollEvery  = 50 * time.Millisecond // how often a lane looks for batches that are late
	eventBatch = 256
)

var (
	errLate   = errors.New("no reply in time")
	errClosed = fmt.Errorf("connection closed by the other side: %w", io.ErrUnexpectedEOF)
)

// lane is one thread that drives its share of the connections: one wait per turn, one read for
// each ready connection, one write for each batch.
type lane struct {
	inbox   // its time is set once a turn
	poll    int
	clients []*client
	batch   int // requests
	churn   int // requests after which a connection is made anew, 0 for never
	events  []unix.EpollEvent
	limit   time.Duration // how long a batch may take

	next  source
	check int64 // when to look for batches that are out of patience
	busy  int   // clients that wait for replies
	sends sends // of an open loop
}

func newLane(k *keyspace, d dialect, p Plan) (*lane, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create epoll descriptor: %w", err)
	}
	return &lane{
		inbox: newInbox(k, d), poll: poll, batch: p.Pipeline, churn: p.Churn, limit: patience,
		events: make([]unix.EpollEvent, eventBatch),
	}, nil
}

func (l *lane) depth(n int) { l.batch = n }

// adopt adds a connected non-blocking socket. The lane owns it from here on.
func (l *lane) adopt(fd int) error {
	c := &client{fd: fd, slot: len(l.clients)}
	l.clients = append(l.clients, c)
	return l.control(unix.EPOLL_CTL_ADD, c, unix.EPOLLIN)
}

func (l *lane) control(what int, c *client, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(c.slot)}
	if err := unix.EpollCtl(l.poll, what, c.fd, &e); err != nil {
		return fmt.Errorf("cannot watch connection: %w", err)
	}
	return nil
}

func (l *lane) close() {
	for _, c := range l.clients {
		if !c.closed {
			c.closed = true
			unix.Close(c.fd)
		}
	}
	unix.Close(l.poll)
}

// offer sends what next yields until it yields nothing or the run is stopped, and waits for the replies
// that are then outstanding.
func (l *lane) offer(r *run, driver int, next source) *tally {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.enter(r, driver)
	l.busy, l.check = 0, 0
	l.next = l.withFills(next.until(&r.stop))
	l.now = r.clock()
	if r.schedule != nil {
		l.openLoop(next)
		return l.leave()
	}
	for _, c := range l.clients {
		if !c.closed {
			l.ask(c)
		}
	}
	for l.busy > 0 {
		l.turn(pollEvery)
	}
	return l.leave()
}

// withFills yields what the origin gave before anything else.
func (l *lane) withFills(next source) source {
	amid := false // a multiget
	return func(at int64) (call, bool) {
		if !amid {
			if q, ok := l.filled(); ok {
				return q, true
			}
		}
		q, ok := next(at)
		amid = q.more
		return q, ok
	}
}

// ask composes and writes a batch for an idle client.
func (l *lane) ask(c *client) {
	if l.churn > 0 && c.made >= l.churn {
		if err := l.reopen(c); err != nil {
			l.drop(c, err)
			return
		}
	}
	if l.compose(c, l.batch, l.next, l.now) == 0 {
		return
	}
	l.busy++
	c.since, l.tally.lastSent = l.now, l.now
	l.write(c)
}

// turn waits for replies, at most so long, and takes them in.
func (l *lane) turn(patience time.Duration) {
	n, err := l.wait(patience)
	l.now = l.run.clock()
	l.tally.pulse.beat(l.now, l.tally.Counts)
	if err != nil {
		l.abandon(fmt.Errorf("cannot wait for replies: %w", err), l.now)
		return
	}
	if l.now >= l.check {
		l.check = l.now + int64(pollEvery)
		l.abandon(errLate, l.now-int64(l.limit))
	}
	for _, e := range l.events[:n] {
		c := l.clients[e.Fd]
		if c.closed {
			continue
		}
		if e.Events&unix.EPOLLOUT != 0 {
			l.writable(c)
		}
		if e.Events&^unix.EPOLLOUT != 0 && !c.closed {
			l.readable(c)
		}
	}
}

func (l *lane) wait(patience time.Duration) (int, error) {
	n, err := waitRaw(l.poll, l.events, patience)
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return n, err
}

// readable reads once, takes the whole replies, and sends the next batch when this one is answered.
func (l *lane) readable(c *client) {
	n, err := readRaw(c.fd, l.space(c))
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return
	case err != nil:
		l.drop(c, fmt.Errorf("cannot read reply: %w", err))
		return
	case n == 0:
		l.drop(c, errClosed)
		return
	}
	waited := c.waiting() > 0
	if err := l.digest(c, n); err != nil {
		l.drop(c, err)
		return
	}
	if waited && c.waiting() == 0 {
		l.busy--
		if l.run.schedule == nil {
			l.ask(c)
		}
	} else if l.run.schedule != nil {
		c.since = l.now
	}
}

// write sends what it can of c's batch; the rest waits until the socket is writable.
func (l *lane) write(c *client) {
	if c.connecting || c.sent == len(c.out) {
		return
	}
	n, err := writeRaw(c.fd, c.out[c.sent:])
	if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
		l.drop(c, fmt.Errorf("cannot write request: %w", err))
		return
	}
	c.sent += max(n, 0)
	if c.sent < len(c.out) {
		if err := l.control(unix.EPOLL_CTL_MOD, c, unix.EPOLLIN|unix.EPOLLOUT); err != nil {
			l.drop(c, err)
		}
	}
}

func (l *lane) writable(c *client) {
	c.connecting = false
	l.write(c)
	if !c.closed && c.sent == len(c.out) {
		if err := l.control(unix.EPOLL_CTL_MOD, c, unix.EPOLLIN); err != nil {
			l.drop(c, err)
		}
	}
}

// reopen closes a connection that waits for nothing and begins to connect anew.
func (l *lane) reopen(c *client) error {
	fd, err := connectAgain(c.fd)
	if err != nil {
		return err
	}
	unix.Close(c.fd)
	c.fd, c.made, c.connecting, c.in = fd, 0, true, c.in[:0]
	l.tally.Connects++
	return l.control(unix.EPOLL_CTL_ADD, c, unix.EPOLLIN|unix.EPOLLOUT)
}

// drop closes a connection that is of no more use; what it waited for gets no answer.
func (l *lane) drop(c *client, why error) {
	if c.waiting() > 0 {
		l.busy--
	}
	l.lose(c, why)
	unix.Close(c.fd)
}

// abandon drops the clients that have waited since before the given time.
func (l *lane) abandon(why error, before int64) {
	for _, c := range l.clients {
		if !c.closed && c.waiting() > 0 && c.since <= before {
			l.drop(c, why)
		}
	}
}
