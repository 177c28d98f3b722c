package rendezvous

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// row returns a slot's row, which is drawn when it is first asked for: for 1,000 servers to draw for all slots takes two processors a second. Whoever
// asks at the same time draws the same.
func (t *Table) row(slot uint64) row {
	if r := t.drawn(slot); r != notDrawn {
		return r
	}
	r := t.ranked(slotKey(slot))
	atomic.StoreUint64((*uint64)(&t.rows[slot]), uint64(r))
	return r
}

// drawn returns a slot's row if it was drawn, else notDrawn.
func (t *Table) drawn(slot uint64) row {
	return row(atomic.LoadUint64((*uint64)(&t.rows[slot])))
}

// drawAll draws the rows that all slots have, for who goes through them.
func (t *Table) drawAll() {
	if t.rows == nil {
		return
	}
	t.eachRange(func(from, to int) {
		for slot := from; slot < to; slot++ {
			t.row(uint64(slot))
		}
	})
}

// eachRange calls f with ranges that together are all slots, on all processors, and returns when all calls have. Rows do not depend on one another.
func (t *Table) eachRange(f func(from, to int)) {
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), t.slots)
	for w := range workers {
		wg.Go(func() { f(t.slots*w/workers, t.slots*(w+1)/workers) })
	}
	wg.Wait()
}

// ranked computes a row.
func (t *Table) ranked(key uint64) row {
	var best [depth]bid
	n := t.rank(&best, key, depth)
	r := emptyRow
	for i := range n {
		r = r.with(i, best[i].id)
	}
	return r
}
