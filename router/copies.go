package router

import (
	"sync/atomic"
	"time"
)

// copyMarks remember when a router last made a copy of a key, so that writes of keys that
// have none need not look for any. Keys share marks by hash: the later one counts. Any
// loop may use them.
type copyMarks struct {
	at   []atomic.Int64
	last atomic.Int64 // of all: mostly there are none, and the others need not be looked at
}

// numMarks is the number of marks; they take 256 KiB.
const numMarks = 1 << 15

func newCopyMarks() *copyMarks { return &copyMarks{at: make([]atomic.Int64, numMarks)} }

func (m *copyMarks) of(hash uint64) *atomic.Int64 {
	return &m.at[hash*0x9e3779b97f4a7c15>>49]
}

// mark says that a copy is about to be made.
func (m *copyMarks) mark(hash uint64, now time.Duration) {
	m.last.Store(int64(now) + 1)
	m.of(hash).Store(int64(now) + 1)
}

// any reports whether a copy that was made within a time may still be there.
func (m *copyMarks) any(hash uint64, now, within time.Duration) bool {
	recent := func(at int64) bool { return at != 0 && int64(now)-at < int64(within) }
	return recent(m.last.Load()) && recent(m.of(hash).Load())
}
