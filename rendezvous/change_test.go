package rendezvous

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// homes returns the name of the home of every slot.
func (t *Table) homes() []string {
	names := make([]string, t.slots)
	for slot := range names {
		names[slot] = t.names[t.home(slot)]
	}
	return names
}

// Only keys of the changed server move: over every single addition, removal and weight step of 1 to 64 servers, no other slot changes its home.
func TestNoCollateralMoves(t *testing.T) {
	f := func(before []string, after *Table, changed string) {
		t.Helper()
		for slot, home := range after.homes() {
			if was := before[slot]; was != home && was != changed && home != changed {
				t.Fatalf("%d servers, %s changed: slot %d went from %s to %s", after.Len(), changed, slot, was, home)
			}
		}
	}
	const slots = 512
	for n := 1; n <= 64; n++ {
		weights := benchWeights(n)
		table := mustNew(t, benchNames(n), weights, slots)
		before := table.homes()
		f(before, mustNew(t, append(benchNames(n), "new:11211"), append(slices.Clone(weights), 3), slots), "new:11211")
		for i, name := range table.names {
			if n > 1 {
				f(before, mustNew(t, slices.Delete(benchNames(n), i, i+1), slices.Delete(slices.Clone(weights), i, i+1), slots), name)
			}
			for _, step := range []int{-1, 1} {
				if weights[i]+step >= 1 {
					changed := slices.Clone(weights)
					changed[i] += step
					f(before, mustNew(t, benchNames(n), changed, slots), name)
				}
			}
		}
	}
}

// When a server leaves, the others keep their order in every slot, all the way down.
func TestOrderOfSurvivorsIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, weights := drawServers(t, 30)
		names = append(names, "gone:11211")
		if weights != nil {
			weights = append(weights, 5)
		}
		before, err := NewSlots(names, weights, testSlots)
		if err != nil {
			t.Fatal(err)
		}
		after, err := before.Without("gone:11211")
		if err != nil {
			t.Fatal(err)
		}
		slot := rapid.IntRange(0, testSlots-1).Draw(t, "slot")
		want := slices.DeleteFunc(before.ranking(slot, len(names)), func(name string) bool { return name == "gone:11211" })
		if got := after.ranking(slot, len(names)); !slices.Equal(got, want) {
			t.Fatalf("slot %d: %v, want %v", slot, got, want)
		}
	})
}

// Whatever the history of changes, the table is the one that New builds from the servers that remain.
func TestChangesEqualRebuilding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, weights := drawServers(t, 60)
		table, err := NewSlots(names, weights, testSlots)
		if err != nil {
			t.Fatal(err)
		}
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			name := rapid.SampledFrom(table.names).Draw(t, "name")
			weight := rapid.IntRange(1, 12).Draw(t, "weight")
			switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case kind == 0:
				table, err = table.With(fmt.Sprint("new", step), weight)
			case kind == 1 && table.Len() > 1:
				table, err = table.Without(name)
			default:
				table, err = table.Reweight(name, weight)
			}
			if err != nil {
				t.Fatal(err)
			}
			rebuilt, err := NewSlots(table.names, table.weights, testSlots)
			if err != nil {
				t.Fatal(err)
			}
			if table.Digest() != rebuilt.Digest() { // of all slots, as there are few
				t.Fatal("digests differ")
			}
		}
	})
}

func TestChangesThatAreRefused(t *testing.T) {
	table := mustNew(t, []string{"a"}, nil, testSlots)
	f := func(_ *Table, err error) {
		t.Helper()
		if err == nil {
			t.Error("no error")
		}
	}
	f(table.With("a", 1))
	f(table.With("", 1))
	f(table.With("b", 0))
	f(table.Without("b"))
	f(table.Without("a"))
	f(table.Reweight("b", 1))
	f(table.Reweight("a", 65536))
	f(mustNew(t, benchNames(256), nil, 256).With("one-more", 1))
}

// The newcomer gets its share, which is all that moves: an eleventh of the keys when 10 servers become 11.
func TestNewcomerGetsItsShare(t *testing.T) {
	before, err := NewDirect(benchNames(10), nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := before.With("new:11211", 1)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for slot := range DefaultSlots {
		if before.home(slot) != after.home(slot) {
			moved++
		}
	}
	if share := float64(moved) / DefaultSlots; math.Abs(share-1.0/11) > 0.001 {
		t.Errorf("%.4f of the keys move, want %.4f", share, 1.0/11)
	}
	if got := after.Shares()[10]; got != uint64(moved) {
		t.Errorf("%d slots moved, and the newcomer has %d", moved, got)
	}
}

// A table is even to 3 % with 100 servers, and weights are kept to 3 % of each server's share. With 1,000 servers and only 2^16 slots it is uneven:
// BenchmarkEvenness has the exact figures of more sizes.
func TestEvenness(t *testing.T) {
	f := func(names []string, weights []int, slots int, most float64) {
		t.Helper()
		table, err := draft(names, weights, slots)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.worstShare(); got > most {
			t.Errorf("%d servers in %d slots: the worst has %.3f times its share, want at most %.3f", len(names), slots, got, most)
		}
	}
	f(benchNames(10), nil, DefaultSlots, 1.01)
	f(benchNames(10), benchWeights(10), DefaultSlots, 1.01)
	f(benchNames(100), nil, DefaultSlots, 1.03)
	f(benchNames(1000), nil, 1<<16, 1.55)
}

// worstShare is the largest ratio of a server's slots to its fair share.
func (t *Table) worstShare() float64 {
	total := 0
	for _, w := range t.weights {
		total += w
	}
	worst := 0.0
	for i, n := range t.Shares() {
		worst = max(worst, float64(n)*float64(total)/float64(t.slots*t.weights[i]))
	}
	return worst
}
