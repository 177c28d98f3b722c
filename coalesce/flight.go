package coalesce

import "time"

// Want says what the answer to a get must contain, one bit for each part that costs the
// server or the wire something; the bits mean what the caller wants them to. A flight
// asks for everything its gets want, and serves any get that wants no more.
type Want uint8

// Flight is one request to a server on behalf of one or more gets of the same key. The
// zero value is ready to be given to [Table.Join].
//
// Most flights have one get. What those need is at the beginning, in one cache line, and
// in the caller's own memory: to be touched is what a flight costs most.
type Flight[W any] struct {
	key      []byte
	hash     uint64
	next     *Flight[W]    // is led when this one is over
	who      W             // the first of the gets, if that led the flight itself
	deadline time.Duration // of who
	turn     uint32        // in which it was led
	want     Want
	attached bool // gets may still find it
	lent     bool // by who, who has led it; the others are in waiters

	waiters list[W]

	// In the inflight mode.
	epoch uint64
	led   time.Duration // when it was led

	older, newer *Flight[W] // in the list of late flights; nil if it is lent
}

// Ask says what a get asks that is given to [Table.Join]: which hash of the key does not matter, and
// by the deadline it must be answered. Gets of one key should come in the order of their deadlines.
func (f *Flight[W]) Ask(hash uint64, key []byte, want Want, who W, deadline time.Duration) {
	f.hash, f.key, f.want, f.who, f.deadline = hash, key, want, who, deadline
}

// Key returns the key. It is valid until the flight is over.
func (f *Flight[W]) Key() []byte { return f.key }

// Hash returns the key's hash, as it was given to Join.
func (f *Flight[W]) Hash() uint64 { return f.hash }

// Want returns what the request has to ask for. It is final when the flight is led.
func (f *Flight[W]) Want() Want { return f.want }

// Len returns how many gets the flight has yet to answer.
func (f *Flight[W]) Len() int {
	if f.lent {
		return f.waiters.n + 1
	}
	return f.waiters.n
}

// First returns who has waited longest, the zero value if nobody waits.
func (f *Flight[W]) First() (w W) {
	switch {
	case f.lent:
		w = f.who
	case f.waiters.head != nil:
		w = f.waiters.head.who
	}
	return w
}

// Deadline returns until when the last of the gets waits, 0 if none does.
func (f *Flight[W]) Deadline() time.Duration {
	switch {
	case f.waiters.tail != nil:
		return f.waiters.tail.deadline
	case f.lent:
		return f.deadline
	}
	return 0
}

// Crew is the gets of a flight that is over, which are to be answered; see [Table.Pop].
type Crew[W any] struct {
	who     W
	lent    bool // who is the first
	waiters list[W]
}

// Len returns how many are still to be answered.
func (c *Crew[W]) Len() int {
	if c.lent {
		return c.waiters.n + 1
	}
	return c.waiters.n
}

// leave takes the gets out of a flight.
func (f *Flight[W]) leave(c *Crew[W]) {
	if c.lent = f.lent; f.lent {
		c.who = f.who
	}
	if c.waiters.n = f.waiters.n; c.waiters.n > 0 {
		c.waiters, f.waiters = f.waiters, list[W]{}
	}
	f.lent = false
}
