package maglev

import (
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustNew(t testing.TB, names []string, weights []int, size int) *Table {
	t.Helper()
	table, err := NewSize(names, weights, size)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The worked example with seven slots, and the same without the second server: only its two slots change hands.
func TestWorkedExample(t *testing.T) {
	f := func(walks []preference, want []uint16) {
		t.Helper()
		if diff := cmp.Diff(want, populate(7, walks, slices.Repeat([]int{1}, len(walks)))); diff != "" {
			t.Error(diff)
		}
	}
	b0, b1, b2 := preference{at: 2, skip: 3}, preference{at: 5, skip: 1}, preference{at: 2, skip: 5}
	f([]preference{b0, b1, b2}, []uint16{2, 0, 0, 2, 0, 1, 1})
	f([]preference{b0, b2}, []uint16{1, 0, 0, 1, 0, 0, 1})
}

// Equal servers have the same number of slots, or one more.
func TestSharesAreEqualToOneSlot(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100, 1000} {
		for i, got := range mustNew(t, benchNames(n), nil, SmallSize).Shares() {
			if got != uint64(SmallSize/n) && got != uint64(SmallSize/n+1) {
				t.Errorf("server %d of %d has %d slots", i, n, got)
			}
		}
	}
}

// A server's share is its weight's, but for one slot and what the others' unfinished fractions of a slot make its share of.
func TestSharesFollowWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 50), 1, 60).Draw(t, "weights")
		table, err := NewSize(benchNames(len(weights)), weights, 10007)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, w := range weights {
			total += w
		}
		for i, got := range table.Shares() {
			if want := 10007 * float64(weights[i]) / float64(total); math.Abs(float64(got)-want) > 1.01+float64(len(weights)*weights[i])/float64(total) {
				t.Errorf("weight %d of %d has %d slots, want %.1f", weights[i], total, got, want)
			}
		}
	})
}

// excess returns how many slots changed hands when a server left, as a multiple of those it had, on average over all servers.
func excess(t *testing.T, n, size int) float64 {
	t.Helper()
	before := mustNew(t, benchNames(n), nil, size)
	moved := 0
	step := max(n/20, 1)
	tries := 0
	for gone := 0; gone < n; gone += step {
		after := mustNew(t, slices.Delete(benchNames(n), gone, gone+1), nil, size)
		for slot, server := range before.slots {
			if before.names[server] != after.names[after.slots[slot]] {
				moved++
			}
		}
		tries++
	}
	return float64(moved) * float64(n) / float64(size*tries)
}

// The needless moves are what Maglev pays for evenness.
func TestMovesWhenOneLeaves(t *testing.T) {
	f := func(n, size int, most float64) {
		t.Helper()
		if got := excess(t, n, size); got > most {
			t.Errorf("%d servers, %d slots: %.3f times the ideal moves, want at most %.2f", n, size, got, most)
		}
	}
	f(10, SmallSize, 1.05)
	f(100, SmallSize, 1.6)
	f(100, LargeSize, 1.15)
}

func TestPickIsDistinctAndPrefixStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "servers")
		weights := rapid.SliceOfN(rapid.IntRange(1, 9), n, n).Draw(t, "weights")
		table, err := NewSize(benchNames(n), weights, 1009)
		if err != nil {
			t.Fatal(err)
		}
		hash := rapid.Uint64().Draw(t, "hash")
		all := table.Pick(nil, hash, n+1)
		sorted := slices.Clone(all)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != n {
			t.Fatalf("picked %v of %d", all, n)
		}
		k := rapid.IntRange(0, n).Draw(t, "picks")
		if diff := cmp.Diff(append([]int{42}, all[:k]...), table.Pick([]int{42}, hash, k)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The order in which servers are given changes neither where keys go nor the digest.
func TestOrderOfServersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := benchNames(rapid.IntRange(1, 30).Draw(t, "servers"))
		shuffled := rapid.Permutation(names).Draw(t, "order")
		a, errA := NewSize(names, nil, 1009)
		b, errB := NewSize(shuffled, nil, 1009)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Digest() != b.Digest() {
			t.Fatal("digests differ")
		}
		hash := rapid.Uint64().Draw(t, "hash")
		x, y := a.Pick(nil, hash, 5), b.Pick(nil, hash, 5)
		for i := range x {
			if a.names[x[i]] != b.names[y[i]] {
				t.Fatalf("%v of %v and %v of %v", x, names, y, shuffled)
			}
		}
	})
}

func TestSpansAgreeWithPick(t *testing.T) {
	table := mustNew(t, benchNames(9), nil, 1009)
	next := uint64(0)
	for last, home := range table.Spans() {
		for _, hash := range []uint64{next, last} {
			if got := table.Pick(nil, hash, 1)[0]; got != home {
				t.Fatalf("%#x is at home on %d, in a span of %d", hash, got, home)
			}
		}
		next = last + 1
	}
	if next != 0 {
		t.Errorf("spans end at %#x", next-1)
	}
}

func TestServersThatAreRefused(t *testing.T) {
	f := func(names []string, weights []int, size int, want string) {
		t.Helper()
		if _, err := NewSize(names, weights, size); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f(nil, nil, SmallSize, "no servers")
	f([]string{"a", "b", "a"}, nil, SmallSize, `servers 0 and 2 have the same name "a"`)
	f([]string{"a", ""}, nil, SmallSize, "server 1 has no name")
	f([]string{"a", "b"}, []int{1, 0}, SmallSize, `"b" has weight 0`)
	f([]string{"a", "b"}, []int{1, -1}, SmallSize, `"b" has weight -1`)
	f([]string{"a", "b"}, []int{65536, 1}, SmallSize, `"a" has weight 65536`)
	f(benchNames(8), nil, 7, "8 servers in 7 slots")
	f([]string{"a"}, nil, 65536, "size 65536: want a prime")
	f([]string{"a"}, nil, 1, "size 1: want a prime")
	f([]string{"a"}, nil, 5000077, "want a prime up to 5000011")
}

func TestPickDoesNotAllocate(t *testing.T) {
	table, dst, hash := mustNew(t, benchNames(10), nil, SmallSize), make([]int, 0, 3), uint64(0)
	for _, picks := range []int{1, 3} {
		if allocs := testing.AllocsPerRun(1000, func() { dst = table.Pick(dst[:0], hash, picks); hash += 1 << 50 }); allocs != 0 {
			t.Errorf("%d picks: %v allocations", picks, allocs)
		}
	}
}

func TestPickConcurrently(t *testing.T) {
	table := mustNew(t, benchNames(10), nil, 1009)
	want := table.Pick(nil, 7, 3)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if got := table.Pick(nil, 7, 3); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// Digests recorded once on amd64; any architecture and any later version must come to the same.
func TestGoldenDigests(t *testing.T) {
	f := func(n int, weights []int, size int, want string) {
		t.Helper()
		digest := mustNew(t, benchNames(n), weights, size).Digest()
		if got := hex.EncodeToString(digest[:8]); got != want {
			t.Errorf("%d servers in %d slots: digest %s, want %s", n, size, got, want)
		}
	}
	f(1, nil, SmallSize, "02143e2dfc1dc896")
	f(10, nil, SmallSize, "bc4c2eacaed529cd")
	f(10, nil, LargeSize, "f0240ad4894dc722")
	f(3, []int{1, 2, 10}, SmallSize, "a14b6eacf3eb0f2b")
}

func TestPrime(t *testing.T) {
	for n, want := range map[int]bool{-7: false, 0: false, 1: false, 2: true, 3: true, 4: false, 49: false, SmallSize: true, LargeSize: true, MaxSize: true} {
		if got := prime(n); got != want {
			t.Errorf("prime(%d) = %v", n, got)
		}
	}
}
