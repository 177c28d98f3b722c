package compat

import (
	"fmt"
	"slices"
	"testing"
)

// Counts that mcrouter's own tests state.
func TestWeightsOfMcrouter(t *testing.T) {
	f := func(keys int, weights, want []int) {
		t.Helper()
		list := servers(len(weights))
		for i, w := range weights {
			list[i].Weight = w
		}
		p := place(t, "mcrouter-weighted-ch3", list)
		got := make([]int, len(list))
		for i := range keys {
			got[p.Pick(nil, p.Hash(fmt.Append(nil, i)), 1)[0]]++
		}
		if !slices.Equal(got, want) {
			t.Errorf("weights %v: %v keys, want %v", weights, got, want)
		}
	}
	f(1000, []int{10000, 10000, 7000}, []int{341, 371, 288})
	f(10000, []int{4290, 5410, 1170, 9980, 2830, 650, 1090, 420, 6760, 9430}, []int{1016, 1252, 288, 2354, 661, 195, 247, 122, 1668, 2197})
}

// What is told of the shares of servers follows their weights.
func TestSharesOfWeights(t *testing.T) {
	list := servers(3)
	for i, w := range []int{10000, 5000, 5000} {
		list[i].Weight = w
	}
	shares := place(t, "mcrouter-weighted-ch3", list).Shares()
	for i, want := range []float64{0.5, 0.25, 0.25} {
		if shares[i] < want-0.01 || shares[i] > want+0.01 {
			t.Errorf("shares %v", shares)
		}
	}
	list[0].Weight = 10001
	if _, err := New(Config{Distribution: "mcrouter-weighted-ch3", Servers: list}); err == nil {
		t.Error("a weight over 1 is taken")
	}
}
