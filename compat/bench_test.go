package compat

import (
	"fmt"
	"testing"
)

func BenchmarkPick(b *testing.B) {
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user:%08x:profile:%02d", uint32(i)*2654435761, i%100)
	}
	for _, distribution := range Distributions() {
		for _, n := range []int{10, 100} {
			b.Run(fmt.Sprintf("%s/n=%d", distribution, n), func(b *testing.B) {
				p, dst := place(b, distribution, servers(n)), make([]int, 0, 1)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					dst = p.Pick(dst[:0], p.Hash(keys[i&(1<<14-1)]), 1)
					i++
				}
			})
		}
	}
}
