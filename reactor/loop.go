package reactor

import (
	"context"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/latency"
)

// idle is how long a loop sleeps at most, to see that its context has ended.
const idle = time.Hour

// scratchSize is the size of the buffer that a loop lends each read, in bytes, and readSize how
// much of it is used while nothing is known of what comes.
const (
	scratchSize = 256 << 10
	readSize    = 64 << 10
)

// poller waits until sockets are ready or wake is called.
type poller interface {
	// begin is called once, on the thread of the loop.
	begin()
	// poll marks the ready connections, waiting for one at most d; d of 0 never sleeps.
	// It reports how many events came.
	poll(l *Loop, d time.Duration) (int, error)
	// wake ends a poll that waits. Any goroutine may call it.
	wake()
	// submit begins what a turn has left to be sent, if that is so much that it counts as
	// the turn's time.
	submit()
	// rest lets a moment pass in which events gather, n at most; it may do nothing.
	rest(n int)
	// calls returns how many system calls it and its sockets have made.
	calls() uint64
	close() error
}

// Stats counts what one loop has done. A snapshot is taken with [Loop.Stats].
type Stats struct {
	Turns  uint64 // turns that had something to do
	Reads  uint64 // reads of sockets
	Writes uint64 // writes of sockets
	Polls  uint64 // looks for events
	Rests  uint64 // moments of rest to let events gather
	// Calls counts the system calls of waiting, reading and writing; 0 if goroutines make
	// them.
	Calls       uint64
	BytesIn     uint64
	BytesOut    uint64
	Copied      uint64 // bytes moved from one buffer of a connection, or from its handler, to another
	Connections int64  // open now
	// AcceptErrors counts connections that could not be accepted for want of
	// descriptors or memory.
	AcceptErrors uint64
	// Denied counts connections that a Listener's Allow turned away.
	Denied uint64
	// HandshakeErrors counts connections whose TLS handshake failed.
	HandshakeErrors uint64
	BusyNanos       uint64
	// Lengths are those of the turns, from when events were there to when all was sent.
	Lengths latency.Histogram
	// Served counts connections that were served by turns, each as often as it was.
	Served uint64
	// Batches counts turns by how many connections they served: the first those with none,
	// and each of the others those with less than twice as many as the one before it may
	// have: 1, 2 to 3, 4 to 7. The last has all that are beyond.
	Batches [NumBatches]uint64
}

// NumBatches is how many sizes of a turn are told apart.
const NumBatches = 12

// Add adds the counters of another loop.
func (st *Stats) Add(o Stats) {
	st.Turns += o.Turns
	st.Reads += o.Reads
	st.Writes += o.Writes
	st.Polls += o.Polls
	st.Rests += o.Rests
	st.Calls += o.Calls
	st.BytesIn += o.BytesIn
	st.BytesOut += o.BytesOut
	st.Copied += o.Copied
	st.Connections += o.Connections
	st.AcceptErrors += o.AcceptErrors
	st.Denied += o.Denied
	st.HandshakeErrors += o.HandshakeErrors
	st.BusyNanos += o.BusyNanos
	st.Lengths.Add(&o.Lengths)
	st.Served += o.Served
	for i, n := range o.Batches {
		st.Batches[i] += n
	}
}

// Loop is one event loop. Except for Post and Load its methods may be called
// only from its own goroutine, which is where handlers and posted functions run.
type Loop struct {
	poller  poller
	engine  Engine
	refused error // why it is not another engine; see Engine
	began   time.Time
	elapsed time.Duration // from began to the beginning of the turn
	over    time.Duration // from began to the end of the turn before
	scratch []byte
	ready   []*Conn // to be read (or offered again) this turn
	next    []*Conn // to be read next turn
	dirty   []*Conn // to be flushed at the end of the turn
	timers  timerHeap
	buffers buffers
	conns   map[*Conn]struct{}
	onTurn  func()
	spare   bool // see Config.Spare
	begun   bool
	longest time.Duration // turn since Longest was called

	resting resting
	streams sync.WaitGroup // goroutines that dial, read and write for this loop
	ended   chan struct{}  // closed when Run has returned

	dials       context.Context // ended with the loop
	cancelDials context.CancelFunc

	running []func() // what was posted and is being done

	mu     sync.Mutex
	posted []func()    // guarded by mu
	closed bool        // guarded by mu
	mail   atomic.Bool // posted has something; set with mu held
	asleep atomic.Bool
	load   atomic.Int64

	stats Stats
}

// Config says how loops work.
type Config struct {
	// Engine says how sockets are served; the zero value is Auto.
	Engine Engine
	// Spare says that the Go runtime has at least one processor more than there are
	// loops (see runtime.GOMAXPROCS). A loop may then sleep for some milliseconds without
	// telling the scheduler, which is cheaper; without a spare one that would hold up
	// other goroutines.
	Spare bool

	auto   bool  // the engine may be refused where it works but is not worth it
	kernel uint8 // the uring.Kernel that io_uring is used as on, for tests
}

// NewLoop returns one loop; see [NewLoops].
func NewLoop(c Config) (*Loop, error) {
	loops, err := NewLoops(1, c)
	if err != nil {
		return nil, err
	}
	return loops[0], nil
}

func newLoop(p poller) *Loop {
	l := &Loop{
		poller:  p,
		began:   time.Now(),
		scratch: make([]byte, scratchSize),
		conns:   make(map[*Conn]struct{}),
		ended:   make(chan struct{}),
	}
	l.dials, l.cancelDials = context.WithCancel(context.Background())
	return l
}

// Now returns the time at which the current turn began. It is for measuring, and for timers: its
// calendar is that of when the loop was made, and does not follow a clock that is set.
func (l *Loop) Now() time.Time { return l.began.Add(l.elapsed) }

// Elapsed returns the time from the making of the loop to the beginning of the current turn:
// what is cheaper to subtract than Now. What passes within a turn is therefore not seen, and
// what it is used to measure may be off by the length of a turn either way.
func (l *Loop) Elapsed() time.Duration { return l.elapsed }

// OnTurn sets a function to be called before what was written in a turn leaves: at its end, and
// earlier if something large is written; see [Conn.Write].
func (l *Loop) OnTurn(f func()) { l.onTurn = f }

// Longest returns the length of the longest turn since it was last called.
func (l *Loop) Longest() time.Duration {
	d := l.longest
	l.longest = 0
	return d
}

// Load returns the number of open accepted connections; any goroutine may ask.
func (l *Loop) Load() int64 { return l.load.Load() }

// Stats returns the counters.
func (l *Loop) Stats() Stats {
	st := l.stats
	st.Connections = int64(len(l.conns))
	st.Calls = l.poller.calls()
	return st
}

// Post hands f to the loop's goroutine. Any goroutine may call it. Functions run in the
// order posted; after the loop has ended they are dropped and Post reports false.
func (l *Loop) Post(f func()) bool {
	l.mu.Lock()
	ok := !l.closed
	if ok {
		l.posted = append(l.posted, f)
		l.mail.Store(true)
	}
	l.mu.Unlock()
	// The loop sets asleep before it looks for mail for the last time, so either it
	// sees f or it is woken here.
	if ok && l.asleep.CompareAndSwap(true, false) {
		l.poller.wake()
	}
	return ok
}

// Run turns the loop until ctx ends, then closes every connection and returns.
func (l *Loop) Run(ctx context.Context) error {
	runtime.LockOSThread() // the thread's timers are set up for the loop
	defer runtime.UnlockOSThread()
	l.begin()
	stop := context.AfterFunc(ctx, func() { l.Post(func() {}) })
	defer stop()
	defer l.close()
	for ctx.Err() == nil {
		if err := l.turn(); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) begin() {
	if !l.begun {
		l.begun = true
		l.poller.begin()
	}
	l.over = time.Since(l.began)
}

// Turn turns the loop once, waiting as long as Run would. It is for who drives a loop by hand, so that the
// same happens each time, on one thread. What is open is closed by Run with a context that has
// ended.
func (l *Loop) Turn() error {
	l.begin()
	return l.turn()
}

func (l *Loop) turn() error {
	if err := l.wait(); err != nil {
		return err
	}
	l.elapsed = time.Since(l.began)
	l.stats.Turns++
	l.runPosted()
	l.ready, l.next = l.next, l.ready[:0]
	l.stats.Served += uint64(len(l.ready))
	l.stats.Batches[min(bits.Len(uint(len(l.ready))), NumBatches-1)]++
	for _, c := range l.ready {
		c.queued = false
		c.serve()
	}
	l.runTimers() // after what has come: nothing is late that is already here
	if l.onTurn != nil {
		l.onTurn()
	}
	l.flush()
	l.poller.submit()
	l.over = time.Since(l.began)
	took := l.over - l.elapsed
	l.stats.BusyNanos += uint64(took)
	l.stats.Lengths.Observe(took)
	l.longest = max(l.longest, took)
	return nil
}

// Expect says how many events are known to be on their way, such as replies to requests
// that were sent. It holds until it is called again.
func (l *Loop) Expect(n int) { l.resting.expected = n }

// wait collects events, sleeping only when there is nothing else to do.
func (l *Loop) wait() error {
	l.stats.Polls++
	if len(l.next) > 0 {
		n, err := l.poller.poll(l, 0)
		l.resting.found(n)
		return err
	}
	if l.resting.due() {
		l.stats.Rests++
		l.poller.rest(l.resting.expected)
	}
	l.asleep.Store(true)
	d := l.untilTimer()
	if l.mail.Load() {
		d = 0
	}
	n, err := l.poller.poll(l, d)
	l.asleep.Store(false)
	l.resting.found(n)
	return err
}

func (l *Loop) runPosted() {
	if !l.mail.Load() {
		return
	}
	l.mu.Lock()
	l.posted, l.running = l.running[:0], l.posted
	l.mail.Store(false)
	l.mu.Unlock()
	for i, f := range l.running {
		l.running[i] = nil
		f()
	}
}

// flush writes every touched connection once. A write that fails closes its connection,
// whose handler may touch others, so it goes on until none is left.
func (l *Loop) flush() {
	for i := 0; i < len(l.dirty); i++ {
		c := l.dirty[i]
		c.dirty = false
		c.flush()
	}
	l.dirty = l.dirty[:0]
}

// close ends what the loop owns. Work that was posted is still done, as it may bring
// connections that must be closed.
func (l *Loop) close() {
	defer close(l.ended)
	l.cancelDials()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.runPosted()
	for c := range l.conns {
		c.Close()
	}
	l.streams.Wait()
	l.poller.close()
}
