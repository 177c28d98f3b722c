package rendezvous

import (
	"slices"
	"testing"
)

func mustNew(t *testing.T, names []string, weights []int, slots int) *Table {
	t.Helper()
	table, err := NewSlots(names, weights, slots)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestPickIsDistinctAndPrefixStable(t *testing.T) {
	for _, n := range []int{1, 3, 10, 40} {
		table := mustNew(t, benchNames(n), benchWeights(n), 1<<10)
		for slot := range uint64(1 << 10) {
			all := table.Pick(nil, slot<<54, n+1)
			sorted := slices.Clone(all)
			slices.Sort(sorted)
			if len(slices.Compact(sorted)) != n {
				t.Fatalf("%d servers, slot %d: picked %v", n, slot, all)
			}
			for k := range n {
				if got := table.Pick(nil, slot<<54, k); !slices.Equal(got, all[:k]) {
					t.Fatalf("%d servers, slot %d: %d picks %v, all picks %v", n, slot, k, got, all)
				}
			}
		}
	}
}
