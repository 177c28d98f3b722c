package coalesce

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Leases let one client at a time fill a missing key. The first get that misses shows
// its miss: its client holds the lease and is expected to store the value. Gets of the
// key that miss meanwhile are parked until a write of the key passes, the lease has
// expired, or its holder is gone; then they are sent to the server again, as one flight,
// and the first to miss holds the next lease. The idea is that of Nishtala et al.,
// "Scaling Memcache at Facebook" (NSDI 2013), 3.2.1, without tokens that clients must know.
//
// Leases are shared by all loops of a router, so that a key has one holder. All methods
// may be called concurrently. Times are measured from any fixed instant, the same on
// all loops. W is a get that waits; it says whose it is, as any loop may wake it.
type Leases[W any] struct {
	cfg     LeaseConfig
	writes  atomic.Uint64               // the next ticket
	stripes [leaseStripes]atomic.Uint32 // leases by hash: most writes need no lock

	mu    sync.Mutex // guards all below
	keys  map[string]*lease[W]
	held  map[uint64]*lease[W] // by id
	due   dueHeap[W]
	ids   uint64
	stats LeaseStats
	begun bool // who expires leases knows that there are some
}

const leaseStripes = 4096

// lease is what is known of a key that was missed.
type lease[W any] struct {
	key       string
	stripe    *atomic.Uint32
	id        uint64 // 0 when nobody holds it
	client    uint64
	elsewhere bool          // the holder is no client of ours
	until     time.Duration // it expires, or is forgotten when nobody holds it
	written   uint64        // tickets below this are from before the last write
	fruitless int
	parked    []parked[W]
	due       time.Duration // until, or an earlier deadline of who is parked
	index     int           // in the heap
}

type parked[W any] struct {
	who      W
	deadline time.Duration
}

// NewLeases makes an empty set. It fails when a field of c makes no sense.
func NewLeases[W any](c LeaseConfig) (*Leases[W], error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.complete()
	return &Leases[W]{cfg: c, keys: make(map[string]*lease[W]), held: make(map[uint64]*lease[W])}, nil
}

// Ticket marks the present. A get takes one before it is sent to the server, so that a
// write that passes meanwhile is not waited for.
func (l *Leases[W]) Ticket() uint64 { return l.writes.Load() }

// Stats returns the counts so far.
func (l *Leases[W]) Stats() LeaseStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Keys = len(l.keys)
	return s
}

// Verdict is what to do with a miss.
type Verdict uint8

// The verdicts.
const (
	// Pass shows the miss to the client.
	Pass Verdict = iota
	// Hold shows the miss to the client, which now holds the lease.
	Hold
	// Park shows nothing; the get will be woken.
	Park
	// Reread sends the get to the server again, with a new ticket: there was a write.
	Reread
)

// Miss is a get that missed.
type Miss[W any] struct {
	Hash   uint64
	Key    []byte // is copied
	Ticket uint64 // from before the get was sent
	// Client identifies the connection. The holder's own gets are never parked.
	Client uint64
	// Won says that the server itself has chosen the get to fill or renew the item: it
	// gets the lease, whoever has it now.
	Won bool
	// Filling says that the server keeps the place of the item for somebody who fills it,
	// perhaps through another router: if nobody here holds the lease, nobody here gets it.
	Filling bool
	// Never says that the get must not be parked: its client would wait for it before
	// it stores what it holds leases for, as one does that asks for several keys at once.
	Never bool
	Who   W
	// Deadline is until when the get may be parked, over all its leases.
	Deadline time.Duration
	Now      time.Duration
}

// Missed says what to do with a miss. With Hold comes the lease's id, for [Leases.End];
// it is never 0.
func (l *Leases[W]) Missed(m *Miss[W]) (v Verdict, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.keys[string(m.Key)]
	patient := !m.Never && m.Deadline > m.Now
	switch {
	case e == nil && len(l.keys) >= l.cfg.MaxLeases:
		l.stats.Passed++
	case m.Won || e == nil && !m.Filling:
		if e == nil {
			e = l.remember(m)
		}
		return Hold, l.grant(e, m)
	case e == nil:
		e = l.remember(m)
		return l.leave(e, m, patient), 0
	case patient && m.Ticket < e.written:
		l.stats.Reread++
		return Reread, 0
	case e.id == 0 && m.Filling && e.fruitless == 0:
		return l.leave(e, m, patient), 0
	case e.id == 0 && !l.pausing(e):
		return Hold, l.grant(e, m)
	case e.id == 0 || e.client == m.Client && !e.elsewhere || !patient || l.stats.Waiting >= l.cfg.MaxParked:
		l.stats.Passed++
	default:
		l.park(e, m)
		return Park, 0
	}
	return Pass, 0
}

// pausing reports whether there seems to be nothing to store under a key.
func (l *Leases[W]) pausing(e *lease[W]) bool {
	return l.cfg.Fruitless > 0 && e.fruitless >= l.cfg.Fruitless
}

func (l *Leases[W]) remember(m *Miss[W]) *lease[W] {
	e := &lease[W]{key: string(m.Key), stripe: &l.stripes[m.Hash*0x9e3779b97f4a7c15>>52]}
	e.stripe.Add(1)
	l.keys[e.key] = e
	heap.Push(&l.due, e)
	if !l.begun {
		l.begun = true
		l.cfg.Began()
	}
	return e
}

func (l *Leases[W]) grant(e *lease[W], m *Miss[W]) uint64 {
	l.hold(e, m)
	l.stats.Granted++
	return e.id
}

// hold begins a lease, in place of the one there may be.
func (l *Leases[W]) hold(e *lease[W], m *Miss[W]) {
	delete(l.held, e.id)
	l.ids++
	e.id, e.client, e.elsewhere = l.ids, m.Client, false
	l.held[e.id] = e
	l.keepUntil(e, m.Now+l.cfg.Duration)
}

// leave begins a lease that somebody elsewhere holds. Nobody says when it ends, so those
// who wait ask now and then.
func (l *Leases[W]) leave(e *lease[W], m *Miss[W], patient bool) Verdict {
	l.hold(e, m)
	e.elsewhere = true
	if !patient || l.stats.Waiting >= l.cfg.MaxParked {
		l.stats.Passed++
		return Pass
	}
	l.park(e, m)
	return Park
}

// looks is how often in the time of a lease that is held elsewhere those who wait look
// whether the item is there.
const looks = 8

func (l *Leases[W]) park(e *lease[W], m *Miss[W]) {
	e.parked = append(e.parked, parked[W]{m.Who, m.Deadline})
	l.stats.Parked++
	l.stats.Waiting++
	due := m.Deadline
	if e.elsewhere && len(e.parked) == 1 {
		due = min(due, m.Now+l.cfg.Duration/looks)
	}
	if due < e.due {
		e.due = due
		heap.Fix(&l.due, e.index)
	}
}

func (l *Leases[W]) keepUntil(e *lease[W], t time.Duration) {
	e.until, e.due = t, t
	heap.Fix(&l.due, e.index)
}

// Woken is a get that is no longer parked.
type Woken[W any] struct {
	Who W
	// Reread says that the get is sent to the server again, with a new ticket; otherwise
	// its miss is shown.
	Reread bool
}

// Written says that a write of a key, of whatever kind, was done by the server. It is
// called before the write's own client is answered. Those it wakes are appended to dst.
func (l *Leases[W]) Written(dst []Woken[W], hash uint64, key []byte, now time.Duration) []Woken[W] {
	if l.stripes[hash*0x9e3779b97f4a7c15>>52].Load() == 0 {
		return dst
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.keys[string(key)]
	if e == nil {
		return dst
	}
	if e.id != 0 && !e.elsewhere {
		l.stats.Used++
	}
	// The key is remembered a little longer: gets may be on their way back that missed
	// it before the write, and must not take the next lease.
	e.written, e.fruitless = l.writes.Add(1), 0
	return l.end(dst, e, now)
}

// End says that the holder of a lease is gone. It does nothing when the lease has ended.
func (l *Leases[W]) End(dst []Woken[W], id uint64, now time.Duration) []Woken[W] {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.held[id]
	if e == nil {
		return dst
	}
	l.stats.Gone++
	return l.end(dst, e, now)
}

// Held removes from ids those of leases that have ended, and returns what is left.
func (l *Leases[W]) Held(ids []uint64) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(ids, func(id uint64) bool { return l.held[id] == nil })
}

// end takes the lease from its holder, if there is one, and wakes those who wait.
func (l *Leases[W]) end(dst []Woken[W], e *lease[W], now time.Duration) []Woken[W] {
	delete(l.held, e.id)
	e.id = 0
	stay := l.cfg.Duration
	if l.pausing(e) {
		stay = l.cfg.Pause
	}
	for _, p := range e.parked {
		dst = append(dst, Woken[W]{p.who, p.deadline > now && !l.pausing(e)})
	}
	l.stats.Waiting -= len(e.parked)
	e.parked = nil
	l.keepUntil(e, now+stay)
	return dst
}

// Expire ends the leases whose time has come, and forgets keys that nothing happened to
// for as long. Those it wakes are appended to dst. It is meant to be called every few
// milliseconds while there are more; when there are again, [LeaseConfig.Began] is called.
func (l *Leases[W]) Expire(dst []Woken[W], now time.Duration) (woken []Woken[W], more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.due) > 0 && l.due[0].due <= now {
		switch e := l.due[0]; {
		case e.until > now:
			dst = l.unpark(dst, e, now)
		case e.id == 0:
			l.forget(e)
		default:
			l.expired(e)
			dst = l.end(dst, e, now)
		}
	}
	l.begun = len(l.due) > 0
	return dst, l.begun
}

// expired counts a lease that nobody has used. What somebody elsewhere has stored nobody
// here hears of, but then nobody waits any more.
func (l *Leases[W]) expired(e *lease[W]) {
	if !e.elsewhere {
		l.stats.Expired++
		e.fruitless++
	} else if len(e.parked) > 0 {
		e.fruitless++
	}
}

// unpark wakes those who have been parked long enough, and all who wait for somebody
// elsewhere.
func (l *Leases[W]) unpark(dst []Woken[W], e *lease[W], now time.Duration) []Woken[W] {
	due, rest := e.until, e.parked[:0]
	for _, p := range e.parked {
		if p.deadline <= now || e.elsewhere {
			dst = append(dst, Woken[W]{p.who, p.deadline > now})
			continue
		}
		rest = append(rest, p)
		due = min(due, p.deadline)
	}
	l.stats.Waiting -= len(e.parked) - len(rest)
	clear(e.parked[len(rest):])
	e.parked, e.due = rest, due
	heap.Fix(&l.due, e.index)
	return dst
}

func (l *Leases[W]) forget(e *lease[W]) {
	heap.Remove(&l.due, e.index)
	delete(l.keys, e.key)
	e.stripe.Add(^uint32(0))
}

// dueHeap orders leases by when something is due, for container/heap.
type dueHeap[W any] []*lease[W]

func (h dueHeap[W]) Len() int           { return len(h) }
func (h dueHeap[W]) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap[W]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is called by container/heap.
func (h *dueHeap[W]) Push(x any) {
	e := x.(*lease[W])
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop is called by container/heap.
func (h *dueHeap[W]) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
