package router

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// routesTo makes routes of prefixes, each to a pool of its own, and one for the rest.
func routesTo(t testing.TB, prefixes ...string) *routes {
	t.Helper()
	var pools []*Pool
	var list []Route
	for i, p := range append(prefixes, "") {
		name := fmt.Sprint("pool", i)
		pools = append(pools, &Pool{cfg: PoolConfig{Name: name}})
		list = append(list, Route{Prefix: p, Pool: name})
	}
	r, err := newRoutes(list, pools)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// longest is what find has to find, the simple way.
func longest(prefixes []string, key []byte) int {
	best := len(prefixes)
	for i, p := range prefixes {
		if bytes.HasPrefix(key, []byte(p)) && (best == len(prefixes) || len(p) > len(prefixes[best])) {
			best = i
		}
	}
	return best
}

// The longest prefix decides, whatever the prefixes have in common. Few letters make many
// that begin alike.
func TestLongestPrefixDecides(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab\xff\x00"[random.IntN(4)]
		}
		return string(b)
	}
	for round := range 200 {
		seen := map[string]bool{}
		var prefixes []string
		for range random.IntN(60) {
			if p := word(1 + random.IntN(6)); !seen[p] {
				seen[p] = true
				prefixes = append(prefixes, p)
			}
		}
		r := routesTo(t, prefixes...)
		for range 500 {
			key := []byte(word(random.IntN(9)))
			if got, want := r.find(key).pool.Name(), fmt.Sprint("pool", longest(prefixes, key)); got != want {
				t.Fatalf("round %d: %q goes to %s, want %s of %q", round, key, got, want, prefixes)
			}
		}
	}
}

func manyPrefixes(n int) (prefixes []string) {
	for i := range n {
		prefixes = append(prefixes, fmt.Sprintf("tenant:%d:", i))
	}
	return prefixes
}

func TestFindingRoutesDoesNotAllocate(t *testing.T) {
	r := routesTo(t, manyPrefixes(1000)...)
	key := []byte("tenant:512:user:1234")
	if got := r.find(key).pool.Name(); got != "pool512" {
		t.Errorf("%s goes to %s", key, got)
	}
	if n := testing.AllocsPerRun(100, func() { r.find(key) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRoutes(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		r := routesTo(b, manyPrefixes(n)...)
		var keys [64][]byte
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "tenant:%d:user:1234", i*n/len(keys))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if r.find(keys[i%len(keys)]) == nil {
					b.Fatal("no route")
				}
			}
		})
	}
}
