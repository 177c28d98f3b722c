package rendezvous

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

const testSlots = 1 << 10

func mustNew(t testing.TB, names []string, weights []int, slots int) *Table {
	t.Helper()
	table, err := NewSlots(names, weights, slots)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// ranking returns the names of the first n servers of a slot.
func (t *Table) ranking(slot, n int) []string {
	hash := uint64(slot) * (math.MaxUint64/uint64(t.slots) + 1)
	names := []string{}
	for _, i := range t.Pick(nil, hash, n) {
		names = append(names, t.names[i])
	}
	return names
}

// drawServers draws names, and weights that are equal half the time.
func drawServers(t *rapid.T, most int) ([]string, []int) {
	names := benchNames(rapid.IntRange(1, most).Draw(t, "servers"))
	if rapid.Bool().Draw(t, "even") {
		return names, nil
	}
	return names, rapid.SliceOfN(rapid.IntRange(1, 12), len(names), len(names)).Draw(t, "weights")
}

func TestPickIsDistinctAndPrefixStable(t *testing.T) {
	for _, n := range []int{1, 3, 10, 40, 100} {
		table := mustNew(t, benchNames(n), benchWeights(n), testSlots)
		for slot := range testSlots {
			all := table.ranking(slot, n+1)
			sorted := slices.Clone(all)
			slices.Sort(sorted)
			if len(slices.Compact(sorted)) != n {
				t.Fatalf("%d servers, slot %d: picked %v", n, slot, all)
			}
			for _, k := range []int{0, 1, 2, 3, 4, 5, n - 1} {
				if got := table.ranking(slot, k); k <= n && !slices.Equal(got, all[:k]) {
					t.Fatalf("%d servers, slot %d: %d picks %v, all picks %v", n, slot, k, got, all)
				}
			}
		}
	}
}

func TestPickAppends(t *testing.T) {
	table := mustNew(t, benchNames(5), nil, testSlots)
	got := table.Pick([]int{42}, 0, 2)
	if want := append([]int{42}, table.Pick(nil, 0, 2)...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := table.Pick(nil, 0, -1); len(got) != 0 {
		t.Errorf("picked %v of -1", got)
	}
}

// The order in which servers are given changes neither where keys go nor the digest.
func TestOrderOfServersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, weights := drawServers(t, 40)
		order := rapid.Permutation(benchOrder(len(names))).Draw(t, "order")
		shuffled, reweighted := make([]string, len(names)), []int(nil)
		for i, j := range order {
			shuffled[i] = names[j]
			if weights != nil {
				reweighted = append(reweighted, weights[j])
			}
		}
		a, errA := NewSlots(names, weights, testSlots)
		b, errB := NewSlots(shuffled, reweighted, testSlots)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Digest() != b.Digest() {
			t.Fatal("digests differ")
		}
		slot := rapid.IntRange(0, testSlots-1).Draw(t, "slot")
		if diff := cmp.Diff(a.ranking(slot, 6), b.ranking(slot, 6)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// benchOrder returns 0 to n-1.
func benchOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// All ways to find the best servers of a slot agree: with a table, without branches, with a sieve, and one server after the other.
func TestAllWaysOfRankingAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, weights := drawServers(t, 200)
		table, err := NewSlots(names, weights, testSlots)
		if err != nil {
			t.Fatal(err)
		}
		slot := rapid.Uint64().Draw(t, "slot")
		limit := rapid.IntRange(1, min(depth, len(names))).Draw(t, "limit")
		for i := range uint64(100) {
			rankInAllWays(t, table, slotKey(slot+i), limit)
		}
	})
}

func rankInAllWays(t *rapid.T, table *Table, key uint64, limit int) {
	t.Helper()
	want := table.sortedBids(key)[:limit]
	f := func(way string, got []int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", way, got, want)
		}
	}
	var best [depth]bid
	ids := func(n int) (ids []int) {
		for _, b := range best[:n] {
			ids = append(ids, b.id)
		}
		return ids
	}
	f("weighted", ids(table.rankWeighted(&best, key, limit)))
	if table.even {
		f("even", ids(table.rankEven(&best, key, limit)))
	}
	if n := table.rankNear(&best, key, limit); n > 0 {
		f("sieve", ids(n))
	}
	var few [depth]uint64
	if table.leaders(&few, key, limit) {
		var got []int
		for _, id := range few[:limit] {
			got = append(got, int(id))
		}
		f("branchless", got)
	}
}

// sortedBids is the definition: all servers sorted by logarithm over weight.
func (t *Table) sortedBids(key uint64) []int {
	bids := make([]bid, len(t.seeds))
	for id := range bids {
		u := draw(key, t.seeds[id])
		bids[id] = bid{score: score(cost(u), t.rates[id]), draw: u, seed: t.seeds[id], id: id}
	}
	slices.SortFunc(bids, func(a, b bid) int {
		if a.beats(b) {
			return -1
		}
		return 1
	})
	ids := make([]int, len(bids))
	for i, b := range bids {
		ids[i] = b.id
	}
	return ids
}

// A table holds what drawing at look-up gives, so that growing past DirectLimit moves nothing but what the newcomer gets.
func TestTableAndDirectPlaceAlike(t *testing.T) {
	direct, err := NewDirect(benchNames(DirectLimit), benchWeights(DirectLimit))
	if err != nil {
		t.Fatal(err)
	}
	table := mustNew(t, benchNames(DirectLimit), benchWeights(DirectLimit), DefaultSlots)
	table.rows = make([]row, table.slots)
	for slot := 0; slot < DefaultSlots; slot += 97 {
		if a, b := direct.ranking(slot, 6), table.ranking(slot, 6); !slices.Equal(a, b) {
			t.Fatalf("slot %d: directly %v, by table %v", slot, a, b)
		}
	}
	if direct.Digest() != table.Digest() {
		t.Error("digests differ")
	}
}

func TestServersThatAreRefused(t *testing.T) {
	f := func(names []string, weights []int, slots int, want string) {
		t.Helper()
		if _, err := NewSlots(names, weights, slots); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f(nil, nil, testSlots, "no servers")
	f([]string{"a", "b", "a"}, nil, testSlots, `servers 0 and 2 have the same name "a"`)
	f([]string{"a", ""}, nil, testSlots, "server 1 has no name")
	f([]string{"a", "b"}, []int{1, 0}, testSlots, `"b" has weight 0`)
	f([]string{"a", "b"}, []int{-1, 1}, testSlots, `"a" has weight -1`)
	f([]string{"a", "b"}, []int{1, 65536}, testSlots, `"b" has weight 65536`)
	f([]string{"a", "b"}, []int{1}, testSlots, "1 weights for 2 servers")
	f(benchNames(257), nil, 256, "257 servers")
	f([]string{"a"}, nil, 1000, "1000 slots")
	f([]string{"a"}, nil, 1<<23, "slots")
}

func TestSpansAndSharesAgreeWithPick(t *testing.T) {
	table := mustNew(t, benchNames(30), benchWeights(30), testSlots)
	next, shares := uint64(0), make([]uint64, 30)
	for last, home := range table.Spans() {
		for _, hash := range []uint64{next, last} {
			if got := table.Pick(nil, hash, 1)[0]; got != home {
				t.Fatalf("%#x is at home on %d, in a span of %d", hash, got, home)
			}
		}
		shares[home]++
		next = last + 1
	}
	if next != 0 {
		t.Errorf("spans end at %#x", next-1)
	}
	if diff := cmp.Diff(shares, table.Shares()); diff != "" {
		t.Error(diff)
	}
}

func TestPickDoesNotAllocate(t *testing.T) {
	for _, n := range []int{5, 16, 40} {
		table := mustNew(t, benchNames(n), benchWeights(n), testSlots)
		dst := make([]int, 0, 6)
		hash := uint64(0)
		for _, picks := range []int{1, 3, 6} {
			if allocs := testing.AllocsPerRun(1000, func() { dst = table.Pick(dst[:0], hash, picks); hash += 1 << 50 }); allocs != 0 {
				t.Errorf("%d of %d: %v allocations", picks, n, allocs)
			}
		}
	}
}

func TestPickConcurrently(t *testing.T) {
	table := mustNew(t, benchNames(20), nil, testSlots)
	want := table.ranking(7, 3)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if got := table.ranking(7, 3); !slices.Equal(got, want) {
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
		digest := mustNew(t, benchNames(n), weights, DefaultSlots).Digest()
		if got := hex.EncodeToString(digest[:8]); got != want {
			t.Errorf("%d servers: digest %s, want %s", n, got, want)
		}
	}
	f(1, nil, "0c8eebbbdacd3402")
	f(10, nil, "d2565ace20f74fed")
	f(10, benchWeights(10), "7011d35135c7e25a")
	f(40, benchWeights(40), "eab4c061a572f990")
}

// A slot is drawn by whoever asks for it first, on any goroutine, and a table that follows one half drawn places the same.
func TestRowsAreDrawnWhenAskedFor(t *testing.T) {
	const slots = 1 << 12
	names := benchNames(3 * DirectLimit)
	table := mustNew(t, names, nil, slots)
	direct, err := draft(names, nil, slots)
	if err != nil {
		t.Fatal(err)
	}
	pick := func(p *Table, slot int) []int { return p.Pick(nil, uint64(slot)<<52, depth) }
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for slot := range slots / 2 {
				if a, b := pick(table, slot), pick(direct, slot); !slices.Equal(a, b) {
					t.Errorf("slot %d: %v, directly %v", slot, a, b)
					return
				}
			}
		})
	}
	wg.Wait()
	if table.drawn(slots/2-1) == notDrawn || table.drawn(slots/2) != notDrawn {
		t.Fatal("other slots were drawn than were asked for")
	}
	next, err := table.Without(names[5])
	if err != nil {
		t.Fatal(err)
	}
	fresh := mustNew(t, slices.Delete(names, 5, 6), nil, slots)
	if !slices.Equal(next.Shares(), fresh.Shares()) || next.Digest() != fresh.Digest() {
		t.Error("a table made of one half drawn places keys otherwise")
	}
}
