package rendezvous

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLogarithmTable(t *testing.T) {
	for i, got := range log2Q40 {
		want := math.Log2(1+float64(i)/256) * (1 << 40)
		if math.Abs(float64(got)-want) > 0.501 {
			t.Errorf("entry %d is %d, want %.2f", i, got, want)
		}
	}
}

// The interpolated logarithm is within 6e-6 of the true one, and never below what costFloor says.
func TestCostIsNearTheLogarithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "draw")>>rapid.IntRange(0, 63).Draw(t, "shift") | 1
		got, want := float64(cost(u))/(1<<40), 64-math.Log2(float64(u))
		if math.Abs(got-want) > 6e-6 {
			t.Errorf("cost of %#x is %.9f, want %.9f", u, got, want)
		}
		if costFloor(u) > cost(u) {
			t.Errorf("cost of %#x is %d, below its floor %d", u, cost(u), costFloor(u))
		}
		if smaller := u - 2; u > 2 && cost(smaller) < cost(u) {
			t.Errorf("cost of %#x is less than that of %#x", smaller, u)
		}
	})
}

func TestCostFloorNearOne(t *testing.T) {
	for u := uint64(math.MaxUint64); u > math.MaxUint64-1<<30; u -= 9973 * 2 {
		if costFloor(u) > cost(u) {
			t.Fatalf("cost of %#x is %d, below its floor %d", u, cost(u), costFloor(u))
		}
	}
}

// A larger weight never has a larger score, and one more in cost always has one.
func TestScoreIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.Uint64Range(0, 64<<40-1).Draw(t, "cost")
		w := rapid.IntRange(1, MaxWeight-1).Draw(t, "weight")
		if score(c, rate(w)) < score(c, rate(w+1)) {
			t.Errorf("cost %d: weight %d is better than %d", c, w, w+1)
		}
		if score(c, rate(w)) >= score(c+1, rate(w)) {
			t.Errorf("weight %d: costs %d and %d have one score", w, c, c+1)
		}
	})
}
