package hotkey

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
)

// zipf draws ranks from 1 to n with probability 1/rank^s, s != 1: exactly for the first
// ranks, and for the rest from the integral of the density, which is off by less than
// one in a million there.
type zipf struct {
	rnd  *rand.Rand
	head []float64 // cumulated weights
	from []int     // where to begin in head, by the value looked for
	all  float64
	s    float64
	low  float64 // integral's antiderivative where the tail begins
	high float64 // and where it ends
}

func newZipf(s float64, n int, seed uint64) *zipf {
	z := &zipf{rnd: rand.New(rand.NewPCG(seed, 1)), s: s, head: make([]float64, 2048)}
	sum := 0.0
	for i := range z.head {
		sum += math.Pow(float64(i+1), -s)
		z.head[i] = sum
	}
	z.from = make([]int, 2*len(z.head))
	for i, rank := 0, 0; i < len(z.from); i++ {
		for z.head[rank] < sum*float64(i)/float64(len(z.from)) {
			rank++
		}
		z.from[i] = rank
	}
	z.low = z.integral(float64(len(z.head)) + 0.5)
	z.high = z.integral(float64(n) + 0.5)
	z.all = sum + z.high - z.low
	return z
}

func (z *zipf) integral(x float64) float64 { return math.Pow(x, 1-z.s) / (1 - z.s) }

func (z *zipf) draw() int {
	u := z.rnd.Float64() * z.all
	sum := z.head[len(z.head)-1]
	if u < sum {
		rank := z.from[int(u/sum*float64(len(z.from)))]
		for z.head[rank] < u {
			rank++
		}
		return 1 + rank
	}
	return int(math.Round(math.Pow((z.low+u-sum)*(1-z.s), 1/(1-z.s))))
}

// hashOf is the hash of the key with a number, which it also names.
func hashOf(number int) uint64 {
	hi, lo := bits.Mul64(uint64(number)+0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return (hi ^ lo) * 0xff51afd7ed558ccd
}

// keyOf returns the key with a number; it is valid until buf is used again.
func keyOf(buf []byte, number int) []byte {
	buf = append(buf[:0], "user:"...)
	return binary.BigEndian.AppendUint32(buf, uint32(number))
}

func numberOf(key []byte) int { return int(binary.BigEndian.Uint32(key[len("user:"):])) }
