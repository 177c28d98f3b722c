package rendezvous

import (
	"math"
	"math/bits"
)

// MaxWeight is the largest weight of a server; the smallest is 1.
const MaxWeight = 65535

// maxServers leaves one 16-bit identifier free to mark an unused candidate.
const maxServers = 65535

// slotKey spreads the slot number over 64 bits (the finalizer of Steele, Lea and Flood's SplitMix64).
func slotKey(slot uint64) uint64 {
	z := (slot + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// draw is the pseudo-random number that a server (its seed) draws for a slot: one 64x64 multiplication, folded. It is never 0.
func draw(key, seed uint64) uint64 {
	hi, lo := bits.Mul64(key^seed, 0x9e3779b97f4a7c15^seed<<1|1)
	return hi ^ lo | 1
}

// cost is -log2(u / 2^64) in units of 2^-40, by the position of the leading bit and 256 straight pieces.
// It never grows with u, so servers of equal weight are ordered by their draws alone. u is not 0. At most 64<<40.
func cost(u uint64) uint64 {
	lz := bits.LeadingZeros64(u)
	m := u << (lz & 63)
	i := m >> 55 & 0xff
	low, high := log2Q40[i], log2Q40[i+1]
	return uint64(lz+1)<<40 - low - (high-low)*(m>>24&0x7fffffff)>>31
}

// costFloor is at most cost(u) and needs no table: -log2(x) >= (1-x)/ln 2 > 1-x.
func costFloor(u uint64) uint64 {
	return ^u >> 24
}

// rate is the factor that divides a cost by a weight: 2^64/w, rounded down.
func rate(weight int) uint64 {
	if weight == 1 {
		return math.MaxUint64
	}
	q, _ := bits.Div64(1, 0, uint64(weight))
	return q
}

// score is cost/weight with 17 further bits, so that servers of one weight are ordered by cost.
func score(cost, rate uint64) uint64 {
	hi, _ := bits.Mul64(cost<<17, rate)
	return hi
}

// bid is what one server offers for one slot. The lowest score wins: an exponential race, in which a server of weight w
// is first with probability w/W, and a changed weight moves only keys from or to the server it belongs to.
type bid struct {
	score uint64 // left 0 where all weights are equal
	draw  uint64
	seed  uint64
	id    int
}

// beats reports whether a goes before b. It is a strict total order on the servers of one slot (seeds are distinct),
// and it looks at nothing but a and b, so the other servers cannot change it.
func (a bid) beats(b bid) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	if a.draw != b.draw {
		return a.draw > b.draw
	}
	return a.seed < b.seed
}
