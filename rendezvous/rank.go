package rendezvous

import "math"

// rank puts the best limit servers for a slot key into best, the first in front, and returns how many there are. limit is at most depth.
func (t *Table) rank(best *[depth]bid, key uint64, limit int) int {
	if limit <= 0 {
		return 0
	}
	if t.worst < math.MaxUint64 {
		if n := t.rankNear(best, key, limit); n > 0 {
			return n
		}
	}
	if t.even {
		return t.rankEven(best, key, limit)
	}
	return t.rankWeighted(best, key, limit)
}

// rankEven needs no logarithm: with equal weights the larger draw wins.
func (t *Table) rankEven(best *[depth]bid, key uint64, limit int) int {
	n := 0
	var worst uint64
	for id, seed := range t.seeds {
		u := draw(key, seed)
		if u < worst {
			continue
		}
		n = insert(best, n, limit, bid{draw: u, seed: seed, id: id})
		if n == limit {
			worst = best[limit-1].draw
		}
	}
	return n
}

// rankWeighted takes the logarithm only of draws that could still be among the best.
func (t *Table) rankWeighted(best *[depth]bid, key uint64, limit int) int {
	n := 0
	worst := uint64(math.MaxUint64)
	rates := t.rates[:len(t.seeds)]
	for id, seed := range t.seeds {
		u, r := draw(key, seed), rates[id]
		if score(costFloor(u), r) > worst {
			continue
		}
		n = insert(best, n, limit, bid{score: score(cost(u), r), draw: u, seed: seed, id: id})
		if n == limit {
			worst = best[limit-1].score
		}
	}
	return n
}

// insert puts b into its place among the n best, keeps at most limit, and returns how many there are now.
func insert(best *[depth]bid, n, limit int, b bid) int {
	if n == limit {
		if !b.beats(best[limit-1]) {
			return n
		}
		n--
	}
	i := n
	for ; i > 0 && b.beats(best[i-1]); i-- {
		best[i] = best[i-1]
	}
	best[i] = b
	return n + 1
}

// following returns the best server that last beats: the next rank.
func (t *Table) following(key uint64, last bid) bid {
	if next, ok := t.followingNear(key, last); ok {
		return next
	}
	next, found := bid{}, false
	for id := range t.seeds {
		if b := t.bid(key, id); last.beats(b) && (!found || b.beats(next)) {
			next, found = b, true
		}
	}
	return next
}

// bid returns the bid of one server.
func (t *Table) bid(key uint64, id int) bid {
	b := bid{draw: draw(key, t.seeds[id]), seed: t.seeds[id], id: id}
	if !t.even {
		b.score = score(cost(b.draw), t.rates[id])
	}
	return b
}
