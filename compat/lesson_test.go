package compat

import (
	"fmt"
	"testing"
)

// The lesson "modulo moves nearly all keys, a ring moves its share" as published, with its hash, keys and ring names, to the digit.

// lessonHash is FNV-1a of 32 bits with the first half of MurmurHash3's finalizer.
func lessonHash(key string) uint32 {
	h := uint32(fnvOffset32)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * fnvPrime32
	}
	h = (h ^ h>>15) * 2246822507
	return h ^ h>>13
}

func lessonKeys() []uint32 {
	hashes := make([]uint32, 100_000)
	for i := range hashes {
		hashes[i] = lessonHash(fmt.Sprintf("G%d", 1_000_000+i))
	}
	return hashes
}

// lessonRing places points hash("k1#0"), hash("k1#1"), … and so on for each of the servers.
func lessonRing(servers, perServer int) *points {
	r := &points{}
	for s := range servers {
		for j := range perServer {
			r.at = append(r.at, point{lessonHash(fmt.Sprintf("k%d#%d", 1+s, j)), uint32(s)})
		}
	}
	return r.seal(servers)
}

type placeFunc func(hash uint32) int

// imbalance is the busiest server's share, 1 meaning its fair one.
func imbalance(keys []uint32, servers int, place placeFunc) float64 {
	count, busiest := make([]int, servers), 0
	for _, h := range keys {
		s := place(h)
		count[s]++
		busiest = max(busiest, count[s])
	}
	return float64(busiest*servers) / float64(len(keys))
}

func movedShare(keys []uint32, before, after placeFunc) float64 {
	moved := 0
	for _, h := range keys {
		if before(h) != after(h) {
			moved++
		}
	}
	return float64(moved) / float64(len(keys))
}

func TestLessonOfModuloAndRing(t *testing.T) {
	keys := lessonKeys()
	f := func(rule string, three, four placeFunc, want string) {
		t.Helper()
		got := fmt.Sprintf("%.3f %.3f %.4f", imbalance(keys, 3, three), imbalance(keys, 4, four), movedShare(keys, three, four))
		if got != want {
			t.Errorf("%s: imbalance with 3, with 4, moved: %s, want %s", rule, got, want)
		}
	}
	modulo := func(n uint32) placeFunc { return func(h uint32) int { return int(h % n) } }
	ring := func(servers, perServer int) placeFunc {
		r := lessonRing(servers, perServer)
		return func(h uint32) int { return int(r.at[r.find(h)].owner) }
	}
	f("modulo", modulo(3), modulo(4), "1.008 1.004 0.7485")
	f("ring of 1", ring(3, 1), ring(4, 1), "2.021 2.231 0.5577")
	f("ring of 10", ring(3, 10), ring(4, 10), "1.548 1.722 0.1557")
	f("ring of 100", ring(3, 100), ring(4, 100), "1.122 1.204 0.2563")
	f("ring of 1000", ring(3, 1000), ring(4, 1000), "1.010 1.059 0.2648")
}

// Growing from 10 to 11 servers, modulo keeps 10 of 110 residues: 91 % of keys move.
func TestModuloKeepsTenOf110Residues(t *testing.T) {
	before, after := place(t, "modulo", servers(10)), place(t, "modulo", servers(11))
	kept := 0
	for hash := range uint64(110) {
		if before.Pick(nil, hash, 1)[0] == after.Pick(nil, hash, 1)[0] {
			kept++
		}
	}
	if kept != 10 {
		t.Errorf("%d of 110 residues keep their server, want 10", kept)
	}
}
