package maglev

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func benchNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.0.%d.%d:11211", i/250, i%250)
	}
	return names
}

// benchKeys are 24 bytes long; there are 16,384 of them in random order.
func benchKeys() [][]byte {
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user:%08x:profile:%02d", uint32(i)*2654435761, i%100)
	}
	return keys
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for _, picks := range []int{1, 3} {
			b.Run(fmt.Sprintf("n=%d/picks=%d", n, picks), func(b *testing.B) {
				r, err := New(benchNames(n), nil)
				if err != nil {
					b.Fatal(err)
				}
				keys, dst := benchKeys(), make([]int, 0, 8)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					dst = r.Pick(dst[:0], xxhash.Sum64(keys[i&(1<<14-1)]), picks)
					i++
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		names := benchNames(n)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := New(names, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
