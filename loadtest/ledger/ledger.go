// Package ledger knows what a cache may answer.
//
// It numbers the writes of each key. A value carries its key, its number and a checksum, so that
// what a read returns can be told to be of a write that may be seen, of one that was replaced
// before the read began, or of none. What a miss means is for the caller to say: a cache may forget.
//
// The outcome of a write that failed is unknown: it may be under way still, and take effect at any
// later time, after other writes too. So its value may always be seen; if others were acknowledged
// since it is told apart, because a router that lets that happen often would be a poor one.
package ledger

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Verdict says what the answer to a read was.
type Verdict uint8

// The verdicts.
const (
	Fresh  Verdict = iota // a value that may be seen
	Absent                // a miss of a key that nothing was stored under, or that was deleted
	Lost                  // a miss of a key whose last write was acknowledged and stored something
	Late                  // the value of a write that failed, though a later one was acknowledged before the read began
	Stale                 // a value that was replaced or deleted before the read began
	Wrong                 // another key's value, a damaged one, or one that nobody wrote
	NumVerdicts
)

var verdictText = [...]string{"fresh", "absent", "lost", "late", "stale", "wrong"}

// String names the verdict in one word.
func (v Verdict) String() string { return verdictText[v] }

// Ledger is the history of a set of keys. It may be used concurrently.
type Ledger struct {
	size int
	keys []history
}

// history is what is known of one key.
type history struct {
	mu      sync.Mutex // guards all below
	issued  uint64     // the number of the last write begun
	floor   uint64     // the number of the last write acknowledged
	stored  bool       // that write stored something
	writing bool
	acks    []ack    // the last ones, oldest first
	failed  []uint64 // the numbers of writes that failed
}

// ack is when a write was acknowledged.
type ack struct {
	number uint64
	at     time.Time
}

// keptAcks is how many are remembered of each key, to say how old a stale value is.
const keptAcks = 64

// New returns a ledger of n keys that nothing was written under, whose values have the given size
// in bytes, or more if their heads need it.
func New(n, size int) *Ledger { return &Ledger{size: size, keys: make([]history, n)} }

// Len is the number of keys.
func (l *Ledger) Len() int { return len(l.keys) }

// Key is the text of key i.
func Key(i int) string { return fmt.Sprintf("ledger:%07d", i) }

// Write is a write that has begun and must be ended.
type Write struct {
	Key    string
	Value  []byte // nil in a delete
	ledger *Ledger
	i      int
	number uint64
}

// Begin begins a write of key i, a delete if del is true. It reports false if one is under way:
// two at a time could end in any order.
func (l *Ledger) Begin(i int, del bool) (Write, bool) {
	h := &l.keys[i]
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writing {
		return Write{}, false
	}
	h.writing = true
	h.issued++
	w := Write{Key: Key(i), ledger: l, i: i, number: h.issued}
	if !del {
		w.Value = compose(w.Key, w.number, l.size)
	}
	return w, true
}

// End ends a write. Acknowledged says that the target said it was done; otherwise it may have been.
func (w Write) End(acknowledged bool) {
	h := &w.ledger.keys[w.i]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writing = false
	if !acknowledged {
		h.failed = append(h.failed, w.number)
	} else {
		h.floor, h.stored = w.number, w.Value != nil
		if len(h.acks) == keptAcks {
			h.acks = append(h.acks[:0], h.acks[1:]...)
		}
		h.acks = append(h.acks, ack{w.number, time.Now()})
	}
}

// Read is a read that has begun.
type Read struct {
	Key    string
	ledger *Ledger
	i      int
	began  time.Time
	floor  uint64 // what was acknowledged before it began
	wanted bool   // and stored something, with no write since
}

// Read begins a read of key i.
func (l *Ledger) Read(i int) Read {
	h := &l.keys[i]
	h.mu.Lock()
	defer h.mu.Unlock()
	return Read{Key: Key(i), ledger: l, i: i, began: time.Now(), floor: h.floor, wanted: h.stored && h.issued == h.floor}
}

// Judge says what the answer was. It is to be called when the read has just ended.
func (r Read) Judge(value []byte, hit bool) Verdict {
	h := &r.ledger.keys[r.i]
	h.mu.Lock()
	issued := h.issued
	h.mu.Unlock()
	if !hit && r.wanted && issued == r.floor {
		return Lost
	}
	if !hit {
		return Absent
	}
	version, ok := parse(r.Key, value)
	switch {
	case !ok || version > issued || version == 0:
		return Wrong
	case version < r.floor && r.failed(version):
		return Late
	case version < r.floor:
		return Stale
	case version == r.floor && !r.storedBy():
		return Wrong
	}
	return Fresh
}

// storedBy reports whether the write at the floor of the read stored something.
func (r Read) storedBy() bool {
	h := &r.ledger.keys[r.i]
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.floor != r.floor || h.stored
}

func (r Read) failed(version uint64) bool {
	h := &r.ledger.keys[r.i]
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.failed, version)
}

// Age is how long a stale value had been replaced when the read began: the time since the first write
// after it was acknowledged. It is less than it was if there were very many writes since.
func (r Read) Age(value []byte) time.Duration {
	version, _ := parse(r.Key, value)
	h := &r.ledger.keys[r.i]
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.acks {
		if a.number > version {
			return max(0, r.began.Sub(a.at))
		}
	}
	return 0
}

// Explain describes an answer for a report: what was seen and what was known.
func (r Read) Explain(value []byte) string {
	version, ok := parse(r.Key, value)
	if !ok {
		return fmt.Sprintf("%s: no value of it: %.60q", r.Key, value)
	}
	return fmt.Sprintf("%s: saw write %d, write %d was acknowledged before; out of date for %v", r.Key, version, r.floor,
		r.Age(value).Round(time.Millisecond))
}
