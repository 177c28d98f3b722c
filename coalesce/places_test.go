package coalesce

import (
	"math/rand/v2"
	"testing"
)

// However flights come and go, each is found by its key and no other is, also where many
// share a hash or the place where their search begins.
func TestPlacesAgreeWithMap(t *testing.T) {
	for name, hashOf := range map[string]func(key byte) uint64{
		"spread":         func(key byte) uint64 { return uint64(key) * 0x123456789abcdef },
		"few hashes":     func(key byte) uint64 { return uint64(key % 3) },
		"around the end": func(key byte) uint64 { return ^uint64(0) - uint64(key) },
	} {
		t.Run(name, func(t *testing.T) {
			p, want := newPlaces[int](4), make(map[byte]*Flight[int])
			for step := range 20000 {
				key := byte(rand.N(48))
				hash := hashOf(key)
				f := want[key]
				switch {
				case f == nil:
					f = &Flight[int]{hash: hash, key: []byte{key}}
					_, i := p.find(hash, f.key)
					p.insert(i, f)
					want[key] = f
				case step%7 == 0:
					next := &Flight[int]{hash: hash, key: []byte{key}}
					p.replace(f, next)
					want[key] = next
				default:
					p.remove(f)
					delete(want, key)
				}
				for key := range byte(48) {
					if got, _ := p.find(hashOf(key), []byte{key}); got != want[key] {
						t.Fatalf("step %d: key %d has flight %p, want %p", step, key, got, want[key])
					}
				}
			}
			if p.n != len(want) {
				t.Errorf("counts %d, want %d", p.n, len(want))
			}
		})
	}
}
