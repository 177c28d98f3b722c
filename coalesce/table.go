package coalesce

import (
	"cmp"
	"time"
)

// Table is the flights of one event loop. It is for one goroutine. Times are measured
// from any fixed instant of the caller's choice. W is a get that waits.
type Table[W any] struct {
	cfg     Config
	flights places[W] // by key, the one that is led; its next hangs on it
	turn    uint32    // wraps, long after all flights of a turn are over
	late    Flight[W] // sentinel of the list of flights whose gets may wait too long
	stats   Stats

	freeFlights []*Flight[W]
	freeNodes   *node[W]
	freeCount   int
}

// New makes a table. It fails when a field of c makes no sense.
func New[W any](c Config) (*Table[W], error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.MaxAge = cmp.Or(c.MaxAge, 10*time.Millisecond)
	c.MaxFlights = cmp.Or(c.MaxFlights, 65536)
	c.MaxTries = cmp.Or(c.MaxTries, 2)
	t := &Table[W]{cfg: c, flights: newPlaces[W](minPlaces)}
	t.late.older, t.late.newer = &t.late, &t.late
	return t, nil
}

// Len returns how many keys have flights that may still be found.
func (t *Table[W]) Len() int { return t.flights.n }

// Has reports whether a get of a key would find a flight, to join it or to wait for it.
func (t *Table[W]) Has(hash uint64, key []byte) bool {
	f, _ := t.flights.find(hash, key)
	return f != nil
}

// Waits reports whether there are gets for Expire to look at.
func (t *Table[W]) Waits() bool { return t.late.newer != &t.late }

// Stats returns the counts so far.
func (t *Table[W]) Stats() Stats { return t.stats }

// Role is what a get becomes.
type Role uint8

// The roles.
const (
	// Alone has no flight: the caller sends the get as if there were no table.
	Alone Role = iota
	// Leader is the first get of a new flight, which the caller must send before it
	// does anything else with the table.
	Leader
	// Follower is answered with the flight.
	Follower
)

// Join finds a flight for a get, or makes one, and says what the get has become. Except
// for Alone, the get will come out of [Table.Pop] or [Table.Expire] exactly once. The
// flight is nil for Alone.
//
// What the get asks is said by own, with [Flight.Ask]. A Leader's flight is own, which together
// with its key is lent to the table until the flight is over, be the get itself forgotten by then.
// In all other cases nothing is kept of own but who asks.
//
// Epoch is a number that differs before and after any write of the key through this
// router, on whatever loop, and 0 while such a write is on its way. Only the inflight
// mode looks at it; 0 joins nothing that has left.
func (t *Table[W]) Join(own *Flight[W], epoch uint64, now time.Duration) (*Flight[W], Role) {
	f, place := t.flights.find(own.hash, own.key)
	switch {
	case f == nil && t.flights.n >= t.cfg.MaxFlights:
		t.stats.Alone++
		return nil, Alone
	case f == nil:
		own.lent = true
		if t.cfg.Mode == Inflight {
			own.epoch = epoch
		}
		t.flights.insert(place, own)
		t.lead(own, now)
		return own, Leader
	case f.next == nil && t.joinable(f, own.want, epoch, now):
		t.stats.Joined++
	default:
		f = t.nextOf(f, own, epoch)
		t.stats.Waited++
	}
	f.waiters.push(t.node(own.who, own.deadline))
	return f, Follower
}

// joinable reports whether a get may join a flight that was led. Once one get had to
// wait for the next flight, all do: a client's second get of a key must not be answered
// by an earlier flight than its first.
func (t *Table[W]) joinable(f *Flight[W], want Want, epoch uint64, now time.Duration) bool {
	switch {
	case want&^f.want != 0:
		return false
	case f.turn == t.turn:
		return true
	case t.cfg.Mode == Inflight:
		return epoch != 0 && epoch == f.epoch && now-f.led < t.cfg.MaxAge
	}
	return false
}

// nextOf returns the flight that will follow f, for a get. Its epoch stays that of the first get
// that waits for it: too old is safe.
func (t *Table[W]) nextOf(f, own *Flight[W], epoch uint64) *Flight[W] {
	if f.next == nil {
		f.next = t.take(own.hash, own.key)
		f.next.epoch = epoch
	}
	f.next.want |= own.want
	return f.next
}

func (t *Table[W]) lead(f *Flight[W], now time.Duration) {
	f.turn = t.turn
	if t.cfg.Mode == Inflight {
		f.led = now
	}
	t.stats.Led++
}

// Sent says that the requests of all flights led so far may leave the router from now
// on. The caller says so at the end of each turn, and before any earlier flush.
func (t *Table[W]) Sent() { t.turn++ }

// Seal prepares for a request on a key that is not a plain get, such as a write: no
// later get joins a flight of before, and gets that wait are sent first. It returns a
// flight that the caller must send at once, before the request, or nil if there is none.
//
// The interleaving it is for: a client sends get and set of one key in one packet. The
// get waits for a flight that was sent by others; were the set to overtake it, the get
// would return what its own client wrote after it.
func (t *Table[W]) Seal(hash uint64, key []byte, now time.Duration) *Flight[W] {
	f, _ := t.flights.find(hash, key)
	if f == nil {
		return nil
	}
	t.flights.remove(f)
	return t.sever(f, now)
}

// SealAll is Seal for all keys at once, for the likes of flush_all. It appends to dst the
// flights that the caller must send at once, before the request.
func (t *Table[W]) SealAll(dst []*Flight[W], now time.Duration) []*Flight[W] {
	for _, x := range t.flights.at {
		if x.flight == nil {
			continue
		}
		x.flight.attached = false
		if next := t.sever(x.flight, now); next != nil {
			dst = append(dst, next)
		}
	}
	t.flights.clear()
	return dst
}

// sever parts a flight that is hidden from gets from the one that follows it, if any,
// which is led.
func (t *Table[W]) sever(f *Flight[W], now time.Duration) *Flight[W] {
	t.stats.Sealed++
	next := t.waiting(f)
	f.next = nil
	if next != nil {
		t.lead(next, now)
	}
	return next
}

// waiting returns the flight that follows f if anybody still waits for it.
func (t *Table[W]) waiting(f *Flight[W]) *Flight[W] {
	if f.next != nil && f.next.waiters.n == 0 {
		t.give(f.next)
		f.next = nil
	}
	return f.next
}

// Landed ends a flight with an answer, which may be an error that trying again would
// not help. The caller first sends the flight that is returned, unless it is nil, then
// answers the crew, which replaces the contents of c.
func (t *Table[W]) Landed(f *Flight[W], c *Crew[W], now time.Duration) *Flight[W] {
	next := t.waiting(f)
	t.end(f, next, c, now)
	return next
}

// LandedAlone is Landed for a flight with one get, that of its leader, for which no other waits. It
// does nothing and reports false for any other.
func (t *Table[W]) LandedAlone(f *Flight[W]) bool {
	if !f.lent || f.waiters.n > 0 || f.next != nil {
		return false
	}
	if f.attached {
		t.flights.remove(f)
	}
	f.lent = false
	return true
}

// Failed ends a flight without an answer. Gets that have time left, and have not yet
// lost MaxTries flights, move to the flight that is returned, ahead of those that waited
// for it; the caller sends it at once. If none did Config.Retry says whether there is one.
// Those in the crew get the error.
//
// A get that moves may be answered by a value that was written by a request its own
// client sent after it, but only if that write was on the connection that failed.
func (t *Table[W]) Failed(f *Flight[W], c *Crew[W], now time.Duration) *Flight[W] {
	next := t.waiting(f)
	alive := t.survivors(f, now)
	if alive.n > 0 && next == nil && t.cfg.Retry != nil && !t.cfg.Retry() {
		f.waiters.prepend(&alive) // who get the error then
	}
	if alive.n > 0 {
		t.stats.Again += uint64(alive.n)
		if next == nil {
			next = t.take(f.hash, f.key)
			next.epoch = f.epoch
		}
		next.want |= f.want
		next.waiters.prepend(&alive)
	}
	t.end(f, next, c, now)
	return next
}

// survivors takes those who may try once more out of a flight that has failed.
func (t *Table[W]) survivors(f *Flight[W], now time.Duration) list[W] {
	alive := f.waiters.survivors(now, uint8(t.cfg.MaxTries))
	if f.lent && t.cfg.MaxTries > 1 && f.deadline > now {
		n := t.node(f.who, f.deadline)
		n.tries = 1
		alive.prepend(&list[W]{head: n, tail: n, n: 1})
		f.lent = false
	}
	return alive
}

// end takes the gets out of a flight that is over, and puts next, which may be nil, in
// its place.
func (t *Table[W]) end(f, next *Flight[W], c *Crew[W], now time.Duration) {
	if next != nil {
		t.lead(next, now)
	}
	switch {
	case !f.attached:
	case next != nil:
		t.flights.replace(f, next)
	default:
		t.flights.remove(f)
	}
	f.next = nil
	f.leave(c)
	if f.older != nil {
		t.give(f)
	}
}

// Pop takes the next get to answer out of a crew, in the order they came.
func (t *Table[W]) Pop(c *Crew[W]) (who W, ok bool) {
	if c.lent {
		c.lent = false
		return c.who, true
	}
	n := c.waiters.pop()
	if n == nil {
		return who, false
	}
	who = n.who
	t.giveNode(n)
	return who, true
}

// Expire appends to dst the gets whose deadline has passed while they waited for a
// flight before theirs, and forgets them; the caller fails them. A get that led, or
// joined in the turn of the leader, is not among them: the deadline of the flight's
// request is its own. Expire looks at every flight that gets had to wait for, which are
// few, and is meant to be called every few milliseconds.
func (t *Table[W]) Expire(dst []W, now time.Duration) []W {
	for f := t.late.newer; f != &t.late; f = f.newer {
		for h := f.waiters.head; h != nil && h.deadline <= now; h = f.waiters.head {
			dst = append(dst, h.who)
			t.giveNode(f.waiters.pop())
			t.stats.Expired++
		}
	}
	return dst
}

// watch puts a flight on the list of late flights.
func (t *Table[W]) watch(f *Flight[W]) {
	f.older, f.newer = t.late.older, &t.late
	f.older.newer, t.late.older = f, f
}
