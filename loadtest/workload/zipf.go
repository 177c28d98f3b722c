package workload

import (
	"math"
	"math/rand/v2"
)

// Zipf draws ranks from 1 to n with probability proportional to rank^-s, for any s >= 0. It is exact, takes
// no memory and as long for any n: by rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion
// to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996). The standard library's
// wants s > 1, and caches see less. The zero value is of no use.
type Zipf struct {
	s, n      float64
	low, high float64 // the integral of the density where the first rank begins, and where the last ends
	sure      float64 // a draw so near to its rank is never rejected
}

// NewZipf is for ranks from 1 to n, at least 1.
func NewZipf(s float64, n int) *Zipf {
	z := &Zipf{s: s, n: float64(n)}
	z.low, z.high = z.integral(1.5)-1, z.integral(z.n+0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-math.Pow(2, -s))
	return z
}

// Draw returns the next rank.
func (z *Zipf) Draw(rng *rand.Rand) int {
	for {
		u := z.high + rng.Float64()*(z.low-z.high)
		x := z.inverse(u)
		rank := min(max(math.Floor(x+0.5), 1), z.n)
		if rank-x <= z.sure || u >= z.integral(rank+0.5)-math.Pow(rank, -z.s) {
			return int(rank)
		}
	}
}

// integral is that of x^-s from 1 to x.
func (z *Zipf) integral(x float64) float64 {
	if z.s == 1 {
		return math.Log(x)
	}
	return math.Expm1((1-z.s)*math.Log(x)) / (1 - z.s)
}

// inverse is the x of which y is the integral.
func (z *Zipf) inverse(y float64) float64 {
	if z.s == 1 {
		return math.Exp(y)
	}
	return math.Exp(math.Log1p(max(y*(1-z.s), -1)) / (1 - z.s))
}
