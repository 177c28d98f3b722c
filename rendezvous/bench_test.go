package rendezvous

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// keys are 24 bytes long; there are 16,384 of them in random order.
func benchKeys() [][]byte {
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user:%08x:profile:%02d", uint32(i)*2654435761, i%100)
	}
	return keys
}

func benchNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.0.%d.%d:11211", i/250, i%250)
	}
	return names
}

func benchWeights(n int) []int {
	w := make([]int, n)
	for i := range w {
		w[i] = 1 + i%10
	}
	return w
}

func benchPick(b *testing.B, t *Table, n int) {
	keys, dst := benchKeys(), make([]int, 0, 8)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		dst = t.Pick(dst[:0], xxhash.Sum64(keys[i&(1<<14-1)]), n)
		i++
	}
}

func BenchmarkDirect(b *testing.B) {
	for _, n := range []int{2, 4, 10, 16, 32, 64} {
		for kind, weights := range map[string][]int{"even": nil, "weighted": benchWeights(n)} {
			t, err := NewDirect(benchNames(n), weights)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/n=%d", kind, n), func(b *testing.B) { benchPick(b, t, 1) })
			b.Run(fmt.Sprintf("%s/n=%d/picks=3", kind, n), func(b *testing.B) { benchPick(b, t, 3) })
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for _, slots := range []int{1 << 16, 1 << 20} {
		for _, n := range []int{10, 100, 1000} {
			t, err := draft(benchNames(n), nil, slots)
			if err != nil {
				b.Fatal(err)
			}
			t.rows = make([]row, slots)
			t.drawAll()
			b.Run(fmt.Sprintf("slots=%d/n=%d", slots, n), func(b *testing.B) { benchPick(b, t, 1) })
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, slots := range []int{1 << 16, 1 << 20} {
		for _, n := range []int{10, 100} {
			for kind, weights := range map[string][]int{"even": nil, "weighted": benchWeights(n)} {
				b.Run(fmt.Sprintf("slots=%d/n=%d/%s", slots, n, kind), func(b *testing.B) {
					for b.Loop() {
						t, err := draft(benchNames(n), weights, slots)
						if err != nil {
							b.Fatal(err)
						}
						t.rows = make([]row, slots)
						t.drawAll()
					}
				})
			}
		}
	}
}

func BenchmarkChange(b *testing.B) {
	for _, slots := range []int{1 << 16, 1 << 20} {
		for kind, weights := range map[string][]int{"even": nil, "weighted": benchWeights(100)} {
			t, err := NewSlots(benchNames(100), weights, slots)
			if err != nil {
				b.Fatal(err)
			}
			name := fmt.Sprintf("slots=%d/n=100/%s/", slots, kind)
			b.Run(name+"add", func(b *testing.B) {
				for b.Loop() {
					if _, err := t.With("10.9.9.9:11211", 1); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"remove", func(b *testing.B) {
				for b.Loop() {
					if _, err := t.Without(t.names[50]); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"reweight", func(b *testing.B) {
				for b.Loop() {
					if _, err := t.Reweight(t.names[50], 2); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkEvenness reports the exact shares of the fullest and the emptiest server: the worst of several sets of names.
func BenchmarkEvenness(b *testing.B) {
	for _, slots := range []int{1 << 16, 1 << 20} {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("slots=%d/n=%d", slots, n), func(b *testing.B) {
				most, least, set := 0.0, 1.0, 0
				for b.Loop() {
					t := mustNew(b, evenNames(set, n), nil, slots)
					shares := t.Shares()
					most = max(most, float64(slices.Max(shares))*float64(n)/float64(slots))
					least = min(least, float64(slices.Min(shares))*float64(n)/float64(slots))
					set++
				}
				b.ReportMetric(most, "peak/mean")
				b.ReportMetric(least, "min/mean")
			})
		}
	}
}

// evenNames returns one of many sets of n names.
func evenNames(set, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.%d.%d.%d:11211", set, i/250, i%250)
	}
	return names
}
