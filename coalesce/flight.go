package coalesce

import (
	"bytes"
	"time"
)

// Want says what the answer to a get must contain, one bit for each part that costs the
// server or the wire something; the bits mean what the caller wants them to. A flight
// asks for everything its gets want, and serves any get that wants no more.
type Want uint8

// Flight is one request to a server on behalf of one or more gets of the same key. C is
// the caller's part of it, such as the call that waits for the server's reply.
type Flight[W, C any] struct {
	// Call is the caller's. It is kept when a flight is used again, as the caller left it.
	Call C

	key      []byte
	hash     uint64
	epoch    uint64
	want     Want
	attached bool          // gets may still find it
	late     bool          // in the table's list of late flights
	turn     uint64        // in which it was led
	led      time.Duration // when it was led
	waiters  list[W]
	next     *Flight[W, C] // is led when this one is over
	chain    *Flight[W, C] // the next in the same bucket

	older, newer *Flight[W, C] // in the list of late flights
}

// Key returns the key. It is valid until the flight is over.
func (f *Flight[W, C]) Key() []byte { return f.key }

// Hash returns the key's hash, as it was given to Join.
func (f *Flight[W, C]) Hash() uint64 { return f.hash }

// Want returns what the request has to ask for. It is final when the flight is led.
func (f *Flight[W, C]) Want() Want { return f.want }

// Len returns how many gets the flight has yet to answer.
func (f *Flight[W, C]) Len() int { return f.waiters.n }

// First returns who has waited longest, the zero value if nobody waits.
func (f *Flight[W, C]) First() (w W) {
	if f.waiters.head != nil {
		w = f.waiters.head.who
	}
	return w
}

// Deadline returns until when the last of the gets waits, 0 if none does.
func (f *Flight[W, C]) Deadline() time.Duration {
	if f.waiters.tail == nil {
		return 0
	}
	return f.waiters.tail.deadline
}

func (f *Flight[W, C]) is(hash uint64, key []byte) bool {
	return f.hash == hash && bytes.Equal(f.key, key)
}

// buckets is a hash table of flights by key. It grows and never shrinks.
type buckets[W, C any] struct {
	heads []*Flight[W, C] // a power of two
	shift uint
	n     int
}

const minBuckets = 256

func newBuckets[W, C any](n int) buckets[W, C] {
	b := buckets[W, C]{shift: 64}
	for size := 1; ; size *= 2 {
		if size >= n {
			b.heads = make([]*Flight[W, C], size)
			return b
		}
		b.shift--
	}
}

// at returns the bucket of a hash. The hash may be any that callers place keys by, and
// some of those have few bits, or all of them low; the multiplication spreads them.
func (b *buckets[W, C]) at(hash uint64) **Flight[W, C] {
	return &b.heads[hash*0x9e3779b97f4a7c15>>b.shift]
}

func (b *buckets[W, C]) find(hash uint64, key []byte) *Flight[W, C] {
	for f := *b.at(hash); f != nil; f = f.chain {
		if f.is(hash, key) {
			return f
		}
	}
	return nil
}

func (b *buckets[W, C]) insert(f *Flight[W, C]) {
	if b.n >= len(b.heads) {
		b.grow()
	}
	head := b.at(f.hash)
	f.chain, *head = *head, f
	f.attached = true
	b.n++
}

// remove takes a flight out of its bucket.
func (b *buckets[W, C]) remove(f *Flight[W, C]) {
	at := b.at(f.hash)
	for *at != f {
		at = &(*at).chain
	}
	*at, f.chain = f.chain, nil
	f.attached = false
	b.n--
}

func (b *buckets[W, C]) grow() {
	old := b.heads
	*b = newBuckets[W, C](2 * len(old))
	for _, f := range old {
		for f != nil {
			next := f.chain
			b.insert(f)
			f = next
		}
	}
}
