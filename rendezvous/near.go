package rendezvous

import (
	"math"
	"math/bits"
)

const (
	// crowd is how many servers are expected to pass the first sieve of rankNear: enough that a slot with fewer than depth of
	// them is rare, few enough that ranking them takes less time than sieving.
	crowd = 12
	// block is how many servers are sieved at once.
	block = 64
)

// setSieve chooses the bar that about crowd servers of a slot pass: the worst score, or draw counted from the top, that is still looked at.
func (t *Table) setSieve() {
	t.worst = math.MaxUint64 // no sieve
	switch n, total := uint64(len(t.seeds)), uint64(0); {
	case n < 3*crowd:
		return
	case t.even:
		t.worst = math.MaxUint64 / n * crowd
	default:
		for _, w := range t.weights {
			total += uint64(w)
		}
		// A server's score is below s with a probability of about s*w*ln(2)/2^57, and 3/2 is about 1/ln(2).
		t.worst = 1 << 57 / total * crowd * 3 / 2
	}
}

// rankNear is rank for many servers. It first sieves a block of servers without branches, as it cannot be predicted which of them pass, and
// ranks only those. If fewer than limit reach the bar, one that was
// sieved out may be better, and it returns 0. (Some pass that do not reach it, as the sieve goes by the floor of their score.)
func (t *Table) rankNear(best *[depth]bid, key uint64, limit int) int {
	n, worst := 0, t.worst
	var near [block]uint8
	for from := 0; from < len(t.seeds); from += block {
		to := min(from+block, len(t.seeds))
		k := t.sieve(&near, key, from, to, worst)
		for _, i := range near[:k] {
			n = insert(best, n, limit, t.bid(key, from+int(i)))
		}
		if n == limit {
			worst = min(worst, t.bar(best[limit-1]))
		}
	}
	if n < limit || t.bar(best[limit-1]) > t.worst {
		return 0
	}
	return n
}

// followingNear is following among the servers that reach the bar, if one of them does follow.
func (t *Table) followingNear(key uint64, last bid) (next bid, found bool) {
	if t.worst == math.MaxUint64 {
		return bid{}, false
	}
	var near [block]uint8
	for from := 0; from < len(t.seeds); from += block {
		k := t.sieve(&near, key, from, min(from+block, len(t.seeds)), t.worst)
		for _, i := range near[:k] {
			if b := t.bid(key, from+int(i)); last.beats(b) && (!found || b.beats(next)) {
				next, found = b, true
			}
		}
	}
	return next, found && t.bar(next) <= t.worst
}

// bar is what a server must reach to beat b, or be equal: a score, or with equal weights a draw counted from the top.
func (t *Table) bar(b bid) uint64 {
	if t.even {
		return ^b.draw
	}
	return b.score
}

// sieve lists the servers of a block that may reach the bar, and returns how many there are.
func (t *Table) sieve(near *[block]uint8, key uint64, from, to int, worst uint64) uint64 {
	k := uint64(0)
	seeds, rates := t.seeds[from:to], t.rates[from:to]
	if t.even {
		for i, seed := range seeds {
			near[k%block] = uint8(i)
			_, passes := bits.Sub64(^draw(key, seed), worst+1, 0)
			k += passes
		}
		return k
	}
	for i, seed := range seeds {
		near[k%block] = uint8(i)
		_, passes := bits.Sub64(score(costFloor(draw(key, seed)), rates[i]), worst+1, 0)
		k += passes
	}
	return k
}
