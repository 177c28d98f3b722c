package rendezvous

import (
	"math"
	"math/bits"
)

// leaders finds the best limit servers of a slot as rank does, but in a time that hardly depends on the draws: it has no branch that
// a processor could mispredict, which for a few servers costs more than comparing all of them. It gives up, returning false,
// when two scores are equal, which is next to never.
func (t *Table) leaders(ids *[depth]uint64, key uint64, limit int) bool {
	if limit == 1 {
		return t.leader(ids, key)
	}
	scores := [depth]uint64{math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64 - 2, math.MaxUint64 - 3} // no ties among them
	tie := uint64(0)
	rates := t.rates[:len(t.seeds)]
	for i, seed := range t.seeds {
		s, id := t.quickScore(draw(key, seed), rates[i]), uint64(i)
		for k := range min(limit, depth) {
			// Exchange with place k if better, and carry the worse of the two on.
			held, holder := scores[k], ids[k]
			_, better := bits.Sub64(s, held, 0)
			_, same := bits.Sub64(s^held, 1, 0)
			tie |= same
			scores[k], s = choose(better, s, held), choose(better, held, s)
			ids[k], id = choose(better, id, holder), choose(better, holder, id)
		}
	}
	return tie == 0
}

// leader is leaders for the home alone.
func (t *Table) leader(ids *[depth]uint64, key uint64) bool {
	if t.even {
		return leaderEven(ids, t.seeds, key)
	}
	best, tie, id := uint64(math.MaxUint64), uint64(0), uint64(0)
	rates := t.rates[:len(t.seeds)]
	for i, seed := range t.seeds {
		s := score(cost(draw(key, seed)), rates[i])
		_, better := bits.Sub64(s, best, 0)
		_, same := bits.Sub64(s^best, 1, 0)
		tie |= same
		best, id = choose(better, s, best), choose(better, uint64(i), id)
	}
	ids[0] = id
	return tie == 0
}

func leaderEven(ids *[depth]uint64, seeds []uint64, key uint64) bool {
	best, tie, id := uint64(0), uint64(0), uint64(0)
	for i, seed := range seeds {
		u := draw(key, seed)
		_, better := bits.Sub64(best, u, 0)
		_, same := bits.Sub64(u^best, 1, 0)
		tie |= same
		best, id = choose(better, u, best), choose(better, uint64(i), id)
	}
	ids[0] = id
	return tie == 0
}

// quickScore is a bid's score, and with equal weights something that orders servers alike and is faster to get.
func (t *Table) quickScore(draw, rate uint64) uint64 {
	if t.even {
		return ^draw
	}
	return score(cost(draw), rate)
}

// choose returns a if which is 1 and b if it is 0.
func choose(which, a, b uint64) uint64 {
	return b ^ (a^b)&-which
}
