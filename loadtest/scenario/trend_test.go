//go:build linux

package scenario

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sampled is a trend of a level that grows by so much in all, with noise of a standard deviation that stays for
// several samples, and outliers.
func sampled(rng *rand.Rand, n int, grown, sigma float64) *trend {
	t, drift := &trend{grain: 0.5}, 0.0
	for i := range n {
		drift = 0.8*drift + 0.6*rng.NormFloat64() // of a standard deviation of 1
		v := 100 + grown*float64(i)/float64(n-1) + sigma*drift
		if rng.IntN(20) == 0 {
			v += 50 * sigma
		}
		t.add(float64(i), v)
	}
	return t
}

// Chance takes any bound once in a while, so the noise is the same in each run.
func TestGrowthIsToldFromNoise(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, sigma := 80+rng.IntN(121), 10*rng.Float64()
		if flat := sampled(rng, n, 0, sigma); flat.grows() {
			t.Errorf("seed %d: noise is taken for growth: %s", seed, flat)
		}
		if leak := sampled(rng, n, 2+8*sigma, sigma); !leak.grows() {
			t.Errorf("seed %d: growth of %.1f is not seen: %s", seed, 2+8*sigma, leak)
		}
	}
}

func TestSlopeIsThatOfALine(t *testing.T) {
	line := &trend{}
	for i := range 50 {
		line.add(float64(2*i), 7-0.25*float64(2*i))
	}
	if got := line.growth(); math.Abs(got+0.25*98) > 1e-9 || line.grows() || line.allowed() > 1e-9 {
		t.Errorf("%s", line)
	}
	if none := (&trend{}); none.grows() || none.String() != "never looked at" {
		t.Error("nothing grows")
	}
}
