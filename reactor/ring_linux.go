package reactor

import (
	"errors"
	"fmt"
	"time"

	"cacherouter/reactor/uring"

	"golang.org/x/sys/unix"
)

// Sizes of a loop's ring. All of it is walked through again and again, so it is small
// enough to stay in the processor's cache.
const (
	ringEntries     = 256
	ringCompletions = 2048
	ringBuffers     = 8
	ringBufferSize  = 64 << 10
	ringFiles       = 4096
)

// ringPoller is the poller of a loop that works through io_uring. Receiving goes on by
// itself: the kernel puts what comes into buffers that all sockets share. What is written
// in a turn is submitted together with the wait that follows it.
type ringPoller struct {
	ring    *uring.Ring
	buffers *uring.Buffers
	wakeFd  int
	err     error // of begin, for the first poll
	seats   []seat
	free    []uint32      // seats that nobody has
	sending []*ringSocket // whose writes are not settled
	unsent  int           // bytes of those
	touched []*ringSocket // to be tidied before the next wait
	direct  uint64        // system calls beside the ring's
	places  int           // for registered files

	listeners map[*acceptor]*ringListener
}

// completer is whom completions are for.
type completer interface {
	completed(operation, uring.Completion)
}

// seat is where a completion finds its completer. The generation is another one for each
// who has the seat, so that what was for the one before him does not reach him.
type seat struct {
	generation uint32
	who        completer
}

// operation says what has completed. With a seat and its generation it is an entry's
// user data.
type operation uint8

const (
	receiving operation = iota
	sending
	becomingReadable
	becomingWritable
	ending
	accepting
	waking
	other // of which nobody wants to hear
)

// data returns the user data of an operation for who has a seat.
func (p *ringPoller) data(op operation, seat uint32) uint64 {
	return uint64(op)<<56 | uint64(p.seats[seat].generation&0xffffff)<<32 | uint64(seat)
}

// enrol gives who a seat.
func (p *ringPoller) enrol(who completer) uint32 {
	if last := len(p.free) - 1; last >= 0 {
		i := p.free[last]
		p.free = p.free[:last]
		p.seats[i].who = who
		return i
	}
	p.seats = append(p.seats, seat{who: who})
	return uint32(len(p.seats) - 1)
}

// leave gives a seat up.
func (p *ringPoller) leave(i uint32) {
	p.seats[i].who = nil
	p.seats[i].generation++
	p.free = append(p.free, i)
}

// errDear is why Auto does without a ring that works: where each receive takes a buffer of its own,
// sockets soon find none, are told so, and must ask again.
var errDear = errors.New("before Linux 6.12 it costs more than epoll")

func newRingPoller(c Config) (*ringPoller, error) {
	ring, err := uring.New(uring.Config{Entries: ringEntries, Completions: ringCompletions, Kernel: uring.Kernel(c.kernel)})
	if err != nil {
		return nil, fmt.Errorf("cannot use io_uring: %w", err)
	}
	p := &ringPoller{ring: ring, wakeFd: -1, listeners: make(map[*acceptor]*ringListener)}
	if p.buffers, err = ring.NewBuffers(ringBuffers, ringBufferSize); err == nil {
		p.wakeFd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err == nil && c.auto && !p.buffers.Piecemeal() {
		err = errDear
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("cannot use io_uring: %w", err)
	}
	if ring.NewFiles(ringFiles) == nil { // which are for speed only
		p.places = ringFiles
	}
	return p, nil
}

// begin makes the thread of the loop the one that uses the ring.
func (p *ringPoller) begin() {
	if p.err = p.ring.Enable(); p.err == nil {
		w := &waker{p, 0}
		w.seat = p.enrol(w)
		w.watch()
	}
}

// waker hears of the descriptor that ends a wait. The count in it is not read: each
// addition to it is told.
type waker struct {
	p    *ringPoller
	seat uint32
}

func (w *waker) watch() { w.p.ring.PollAll(w.p.wakeFd, unix.POLLIN, w.p.data(waking, w.seat)) }

func (w *waker) completed(_ operation, c uring.Completion) {
	if !c.More() {
		w.watch()
	}
}

func (p *ringPoller) wake() { wakeUp(p.wakeFd) }

func (p *ringPoller) poll(l *Loop, d time.Duration) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	p.tidy()
	if p.awaited() {
		d = 0
	}
	if err := p.enter(min(d, l.nap()), d, l.resting.lone()); err != nil {
		return 0, err
	}
	n := p.fetch()
	p.settle()
	return n, nil
}

// From so many writes or bytes on a turn's sending is done in the turn, by a call of its own,
// and not by the wait that follows: so what is said of how long turns take includes it. What is
// less takes some microseconds.
const (
	manyWrites = 8
	manyBytes  = 64 << 10
)

// submit does the sending of a turn that sends much.
func (p *ringPoller) submit() {
	if p.err == nil && (len(p.sending) >= manyWrites || p.unsent >= manyBytes) {
		p.ring.Submit()
	}
}

// rest submits what there is and waits a moment, or until n events have come.
func (p *ringPoller) rest(n int) {
	p.tidy()
	if !p.awaited() {
		p.ring.Wait(min(n, ringCompletions), restTime, false)
	}
}

// awaited reports whether somebody waits for his bytes to be sent.
func (p *ringPoller) awaited() bool {
	for _, s := range p.sending {
		if s.conn.finishing || s.conn.paused {
			return true
		}
	}
	return false
}

// enter submits what there is and waits at most d for completions, of which raw in a raw
// system call (see nap). A call that has slept brings one completion, and one that has not no
// more than a batch: unless the loop is lone the rest is asked for.
func (p *ringPoller) enter(raw, d time.Duration, lone bool) (err error) {
	ring := p.ring
	switch {
	case ring.Ready() > 0 && ring.Queued() == 0:
		return nil // found when resting
	case ring.Ready() > 0 || raw == 0:
		err = ring.Collect()
	default:
		err = ring.Wait(1, raw, false)
	}
	if err == nil && ring.Ready() == 0 && d > raw {
		err = ring.Wait(1, d-raw, true)
	}
	for more := ring.Ready() > 0 && (d > 0 && !lone || ring.Ready() >= uring.Batch); err == nil && more; {
		was := ring.Ready()
		err = ring.Collect()
		more = ring.Ready()-was >= uring.Batch
	}
	return err
}

// fetch hands out completions.
func (p *ringPoller) fetch() (n int) {
	for {
		c, ok := p.ring.Next()
		if !ok {
			return n
		}
		n++
		op, i := operation(c.UserData>>56), uint32(c.UserData)
		if op == other {
			continue
		}
		if at := &p.seats[i]; at.who != nil && at.generation&0xffffff == uint32(c.UserData>>32)&0xffffff {
			at.who.completed(op, c)
			continue
		}
		p.late(op, c)
	}
}

// await waits for the end of an operation that was cancelled, which ends with under false.
func (p *ringPoller) await(under *bool) {
	for *under && p.ring.Collect() == nil {
		p.fetch()
	}
}

// late deals with what comes for someone who is gone.
func (p *ringPoller) late(op operation, c uring.Completion) {
	switch {
	case op == receiving:
		if part := p.buffers.Received(c); len(part.Bytes) > 0 {
			p.buffers.Release(part.ID)
		}
	case op == accepting && c.Res >= 0:
		unix.Close(int(c.Res))
	}
}

// settle tells connections what has become of their writes. All that were submitted are
// done, and those that sent less than all have said so.
func (p *ringPoller) settle() {
	for i, s := range p.sending {
		p.sending[i] = nil
		s.settle()
	}
	p.sending, p.unsent = p.sending[:0], 0
}

// tidy prepares sockets whose state has changed for the wait.
func (p *ringPoller) tidy() {
	for i, s := range p.touched {
		p.touched[i] = nil
		s.tidy()
	}
	p.touched = p.touched[:0]
}

// calls returns how many system calls were made.
func (p *ringPoller) calls() uint64 { return p.ring.Calls() + p.direct }

func (p *ringPoller) close() error {
	if p.wakeFd >= 0 {
		if p.err == nil {
			p.ring.Collect() // closes what is to be closed
		}
		unix.Close(p.wakeFd)
	}
	err := p.ring.Close()
	if p.buffers != nil {
		p.buffers.Close()
	}
	return err
}
