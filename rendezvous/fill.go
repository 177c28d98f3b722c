package rendezvous

import (
	"runtime"
	"sync"
)

// fill computes the rows of all slots.
func (t *Table) fill() {
	t.rows = make([]row, t.slots)
	t.eachRange(func(from, to int) {
		for slot := from; slot < to; slot++ {
			t.rows[slot] = t.ranked(slotKey(uint64(slot)))
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
