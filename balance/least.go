package balance

import "math"

// compare is below 0 when server i has fewer requests in flight for its weight than j, above 0 when
// it has more: (i+1)/wi against (j+1)/wj, as each would have one more.
func (b *Balancer) compare(i, j int) int64 {
	return (b.active(i)+1)*b.servers[j].weight - (b.active(j)+1)*b.servers[i].weight
}

// least picks the candidate with the fewest requests in flight for its weight; among equals, the
// one picked longest ago. It is the most even, and it sends nearly everything to
// a server that fails fast or has just come.
type least struct{}

func (least) pick(b *Balancer, candidates []int) int {
	best := 0
	for p, i := range candidates[1:] {
		c := b.compare(i, candidates[best])
		if c < 0 || c == 0 && b.servers[i].picked < b.servers[candidates[best]].picked {
			best = p + 1
		}
	}
	b.touch(candidates[best])
	return best
}

// weightedLeast is round robin with weights that fall as requests are in flight:
// weight/(active+1)^bias, as Envoy has it.
type weightedLeast struct{}

func (weightedLeast) pick(b *Balancer, candidates []int) int {
	return b.smoothly(candidates, func(i int) int64 {
		w := float64(b.servers[i].weight) / math.Pow(float64(b.active(i)+1), b.config.Bias)
		return max(1, int64(w*scale))
	})
}

// scale is what a weight of 1 is when weights have fractions.
const scale = 1 << 16

// twoChoices picks the better of two random candidates (Mitzenmacher, The Power of Two Choices in
// Randomized Load Balancing).
type twoChoices struct{}

func (twoChoices) pick(b *Balancer, candidates []int) int {
	p, q := b.two(len(candidates))
	if b.compare(candidates[q], candidates[p]) < 0 {
		return q
	}
	return p
}

// two returns two different positions below n, which is at least 2, in random order.
func (b *Balancer) two(n int) (p, q int) {
	p, q = b.rand.IntN(n), b.rand.IntN(n-1)
	if q >= p {
		q++
	}
	return p, q
}
