package rendezvous

import (
	"iter"
	"math/bits"
)

// Spans yields the whole hash space in ascending order as pairs of a span's last hash and its home: a hash h belongs to the first pair
// whose first value is at least h, and the last pair's is math.MaxUint64. Walking two tables in step gives the exact share of
// the space that moves between them.
func (t *Table) Spans() iter.Seq2[uint64, int] {
	return func(yield func(last uint64, home int) bool) {
		t.drawAll()
		width := uint64(1) << (64 - bits.TrailingZeros(uint(t.slots)))
		for slot := range t.slots {
			if !yield(uint64(slot)*width+(width-1), t.home(slot)) {
				return
			}
		}
	}
}

// Shares returns how many of the Slots slots are at home on each server, by the caller's index.
func (t *Table) Shares() []uint64 {
	t.drawAll()
	shares := make([]uint64, len(t.names))
	for slot := range t.slots {
		shares[t.home(slot)]++
	}
	return shares
}

// Slots returns the number of slots: the sum of Shares.
func (t *Table) Slots() int { return t.slots }

func (t *Table) home(slot int) int {
	if t.rows != nil {
		return t.index[t.row(uint64(slot)).at(0)]
	}
	var best [depth]bid
	t.rank(&best, slotKey(uint64(slot)), 1)
	return t.index[best[0].id]
}
