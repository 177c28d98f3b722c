package rendezvous

import (
	"runtime"
	"sync"
)

// fill computes the rows of all slots.
func (t *Table) fill() {
	t.rows = make([]row, t.slots)
	t.eachRow(func(slot int) { t.rows[slot] = t.rowOf(uint64(slot)) })
}

// eachRow calls f once for every slot, on all processors, and returns when all calls have. Rows do not depend on one another.
func (t *Table) eachRow(f func(slot int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		from, to := t.slots/workers*w, t.slots/workers*(w+1)
		if w == workers-1 {
			to = t.slots
		}
		wg.Go(func() {
			for slot := from; slot < to; slot++ {
				f(slot)
			}
		})
	}
	wg.Wait()
}

func (t *Table) rowOf(slot uint64) row {
	var best [depth]bid
	n := t.rank(&best, slotKey(slot), depth)
	r := row{unused, unused, unused, unused}
	for i := range n {
		r[i] = uint16(best[i].id)
	}
	return r
}
