package balance

// roundRobin picks the candidate that was picked longest ago. Over one set of
// candidates that is one after the other; over sets that overlap each server still has its turn.
type roundRobin struct{}

func (roundRobin) pick(b *Balancer, candidates []int) int {
	best := 0
	for p, i := range candidates {
		if b.servers[i].picked < b.servers[candidates[best]].picked {
			best = p
		}
	}
	b.touch(candidates[best])
	return best
}

// touch makes a server the one that was picked last.
func (b *Balancer) touch(server int) {
	b.picks++
	b.servers[server].picked = b.picks
}

// random picks any.
type random struct{}

func (random) pick(b *Balancer, candidates []int) int { return b.rand.IntN(len(candidates)) }

// smooth is smooth weighted round robin, as in nginx: each candidate is owed its weight more,
// the one that is owed most is picked and owes the sum of weights. Weights 5, 1, 1 give a a b a c
// a a, not five times a in a row.
type smooth struct{}

func (smooth) pick(b *Balancer, candidates []int) int {
	return b.smoothly(candidates, func(i int) int64 { return b.servers[i].weight })
}

// smoothly picks by smooth weighted round robin; the weights may change from pick to pick.
func (b *Balancer) smoothly(candidates []int, weight func(server int) int64) int {
	best, sum := 0, int64(0)
	for p, i := range candidates {
		w := weight(i)
		b.servers[i].current += w
		sum += w
		if b.servers[i].current > b.servers[candidates[best]].current {
			best = p
		}
	}
	b.servers[candidates[best]].current -= sum
	return best
}

// deadline is earliest deadline first: a server's requests are due at 1/2, 3/2, 5/2 … of
// the inverse of its weight. Deadlines are compared as fractions, so shares are exact however long
// it runs. Without the half, weights 5, 1, 1 would begin with five times a.
type deadline struct{}

func (deadline) pick(b *Balancer, candidates []int) int {
	best := 0
	for p, i := range candidates {
		s, first := &b.servers[i], &b.servers[candidates[best]]
		if (2*s.turns+1)*first.weight < (2*first.turns+1)*s.weight {
			best = p
		}
	}
	b.servers[candidates[best]].turns++
	return best
}
