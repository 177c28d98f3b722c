package ring

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustNew(t testing.TB, names []string, weights []int, points int) *Ring {
	t.Helper()
	r, err := NewPoints(names, weights, points)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A look-up through the index finds the same point as a search of all points.
func TestIndexAgreesWithSearch(t *testing.T) {
	r := mustNew(t, benchNames(30), nil, DefaultPoints)
	f := func(hash uint64) {
		t.Helper()
		want, _ := slices.BinarySearch(r.points, hash)
		if got := r.find(hash); got != want%len(r.points) {
			t.Errorf("point of %#x is %d, want %d", hash, got, want%len(r.points))
		}
	}
	for _, p := range r.points {
		f(p - 1)
		f(p)
		f(p + 1)
	}
	f(0)
	f(math.MaxUint64)
}

func TestPickIsDistinctAndPrefixStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "servers")
		weights := rapid.SliceOfN(rapid.IntRange(1, 9), n, n).Draw(t, "weights")
		r, err := NewPoints(benchNames(n), weights, 7)
		if err != nil {
			t.Fatal(err)
		}
		hash := rapid.Uint64().Draw(t, "hash")
		all := r.Pick(nil, hash, n+1)
		sorted := slices.Clone(all)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != n {
			t.Fatalf("picked %v of %d", all, n)
		}
		k := rapid.IntRange(0, n).Draw(t, "picks")
		if diff := cmp.Diff(append([]int{42}, all[:k]...), r.Pick([]int{42}, hash, k)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The order in which servers are given changes neither where keys go nor the digest.
func TestOrderOfServersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := benchNames(rapid.IntRange(1, 30).Draw(t, "servers"))
		shuffled := rapid.Permutation(names).Draw(t, "order")
		a, errA := New(names, nil)
		b, errB := New(shuffled, nil)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Digest() != b.Digest() {
			t.Fatal("digests differ")
		}
		hash := rapid.Uint64().Draw(t, "hash")
		if x, y := a.ranking(hash), b.ranking(hash); !slices.Equal(x, y) {
			t.Fatalf("%v and %v", x, y)
		}
	})
}

// ranking returns the names of all servers for a hash.
func (r *Ring) ranking(hash uint64) []string {
	names := []string{}
	for _, i := range r.Pick(nil, hash, len(r.names)) {
		names = append(names, r.names[i])
	}
	return names
}

// Equal points go to the server whose name comes first, in whatever order they are given.
func TestEqualPointsGoToTheFirstName(t *testing.T) {
	f := func(names []string) {
		t.Helper()
		r := mustNew(t, names, nil, 1)
		r.points, r.owners, r.first = make([]uint64, 2), make([]uint16, 2), make([]uint32, len(r.first))
		used := make([]uint32, len(r.first))
		r.count([]uint64{1 << 40, 1 << 40})
		for _, server := range r.order {
			r.place(used, 1<<40, uint16(server))
		}
		if got := r.ranking(5); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%v given: ranked %v", names, got)
		}
	}
	f([]string{"a", "b"})
	f([]string{"b", "a"})
}

// Only keys of the changed server move: over every single addition, removal and weight step of 1 to 64 servers, exactly.
func TestNoCollateralMoves(t *testing.T) {
	const points = 20
	for n := 1; n <= 64; n++ {
		weights := make([]int, n)
		for i := range weights {
			weights[i] = 1 + i%3
		}
		before := mustNew(t, benchNames(n), weights, points)
		onlyMoves(t, before, mustNew(t, append(benchNames(n), "new"), append(slices.Clone(weights), 2), points), "new")
		for i, name := range before.names {
			if n > 1 {
				onlyMoves(t, before, mustNew(t, slices.Delete(benchNames(n), i, i+1), slices.Delete(slices.Clone(weights), i, i+1), points), name)
			}
			for _, step := range []int{-1, 1} {
				if weights[i]+step >= 1 {
					changed := slices.Clone(weights)
					changed[i] += step
					onlyMoves(t, before, mustNew(t, benchNames(n), changed, points), name)
				}
			}
		}
	}
}

// onlyMoves fails if a hash that is at home on neither side of the change moves. Between two points of either ring nothing changes, so the points are enough.
func onlyMoves(t *testing.T, before, after *Ring, changed string) {
	t.Helper()
	for _, hash := range append(slices.Clone(before.points), after.points...) {
		from, to := before.names[before.owners[before.find(hash)]], after.names[after.owners[after.find(hash)]]
		if from != to && from != changed && to != changed {
			t.Fatalf("%d servers, %s changed: %#x went from %s to %s", before.Len(), changed, hash, from, to)
		}
	}
}

// When a server leaves, the others keep their order for every hash.
func TestOrderOfSurvivorsIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := benchNames(rapid.IntRange(2, 30).Draw(t, "servers"))
		gone := rapid.IntRange(0, len(names)-1).Draw(t, "gone")
		before, errA := NewPoints(names, nil, 9)
		after, errB := NewPoints(slices.Delete(slices.Clone(names), gone, gone+1), nil, 9)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		hash := rapid.Uint64().Draw(t, "hash")
		want := slices.DeleteFunc(before.ranking(hash), func(name string) bool { return name == names[gone] })
		if got := after.ranking(hash); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// With 160 points the fullest server has a tenth more than the mean with 10 servers, a fifth more with 100: the median of 20 sets of names.
func TestEvenness(t *testing.T) {
	f := func(n int, median, worst float64) {
		t.Helper()
		var peaks []float64
		for set := range 20 {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("10.%d.%d.%d:11211", set, i/250, i%250)
			}
			r := mustNew(t, names, nil, DefaultPoints)
			peaks = append(peaks, float64(slices.Max(r.Shares()))*float64(n)/math.Exp2(64))
		}
		slices.Sort(peaks)
		if peaks[10] > median || peaks[19] > worst {
			t.Errorf("%d servers: the fullest has %.3f times the mean (worst %.3f), want %.2f (%.2f)", n, peaks[10], peaks[19], median, worst)
		}
	}
	f(10, 1.12, 1.21)
	f(100, 1.22, 1.30)
	f(1000, 1.28, 1.35)
}

func TestSpansAgreeWithPickAndShares(t *testing.T) {
	r := mustNew(t, benchNames(9), nil, 11)
	next := uint64(0)
	sum := new(big.Int)
	for last, home := range r.Spans() {
		for _, hash := range []uint64{next, last} {
			if got := r.Pick(nil, hash, 1)[0]; got != home {
				t.Fatalf("%#x is at home on %d, in a span of %d", hash, got, home)
			}
		}
		next = last + 1
	}
	if next != 0 {
		t.Errorf("spans end at %#x", next-1)
	}
	for _, share := range r.Shares() {
		sum.Add(sum, new(big.Int).SetUint64(share))
	}
	if sum.Cmp(new(big.Int).Lsh(big.NewInt(1), 64)) != 0 {
		t.Errorf("shares add up to %v", sum)
	}
}

func TestServersThatAreRefused(t *testing.T) {
	f := func(names []string, weights []int, points int, want string) {
		t.Helper()
		if _, err := NewPoints(names, weights, points); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f(nil, nil, 160, "no servers")
	f([]string{"a", "b", "a"}, nil, 160, `servers 0 and 2 have the same name "a"`)
	f([]string{"a", ""}, nil, 160, "server 1 has no name")
	f([]string{"a", "b"}, []int{1, 0}, 160, `"b" has weight 0`)
	f([]string{"a", "b"}, []int{1, -1}, 160, `"b" has weight -1`)
	f([]string{"a", "b"}, []int{65536, 1}, 160, `"a" has weight 65536`)
	f([]string{"a", "b"}, []int{1}, 160, "1 weights for 2 servers")
	f([]string{"a"}, nil, 0, "0 points")
	f([]string{"a", "b"}, []int{1, 65535}, 160, `at server "b": lower the weights`)
}

func TestPickDoesNotAllocate(t *testing.T) {
	r, dst, hash := mustNew(t, benchNames(10), nil, DefaultPoints), make([]int, 0, 3), uint64(0)
	if allocs := testing.AllocsPerRun(1000, func() { dst = r.Pick(dst[:0], hash, 3); hash += 1 << 50 }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestPickConcurrently(t *testing.T) {
	r := mustNew(t, benchNames(10), nil, DefaultPoints)
	want := r.ranking(7)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if got := r.ranking(7); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// Digests recorded once on amd64; any architecture and any later version must come to the same.
func TestGoldenDigests(t *testing.T) {
	f := func(n int, weights []int, want string) {
		t.Helper()
		digest := mustNew(t, benchNames(n), weights, DefaultPoints).Digest()
		if got := hex.EncodeToString(digest[:8]); got != want {
			t.Errorf("%d servers: digest %s, want %s", n, got, want)
		}
	}
	f(1, nil, "8b564607cde053a0")
	f(10, nil, "a1d2aa2a5b03d1a1")
	f(3, []int{1, 2, 10}, "0816403d86812848")
}
