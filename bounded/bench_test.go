package bounded

import "testing"

// place is what one request costs a bound, from before it is sent until after its reply.
func place(b *Bound, candidates []int) {
	rank, _ := b.Take(candidates, 0, 1)
	b.Release(candidates[rank], 1)
}

func TestNoAllocations(t *testing.T) {
	b := must(t, Default(equal(10)))
	candidates := []int{4, 2, 7}
	place1 := func() { place(b, candidates) }
	if n := testing.AllocsPerRun(1000, place1); n != 0 {
		t.Errorf("%v allocations with the home free", n)
	}
	b.Add(4, 100)
	if n := testing.AllocsPerRun(1000, place1); n != 0 {
		t.Errorf("%v allocations with the home full", n)
	}
	b.Add(2, 100)
	b.Add(7, 100)
	if n := testing.AllocsPerRun(1000, place1); n != 0 {
		t.Errorf("%v allocations with all full", n)
	}
}

// BenchmarkPick is Take and Release by one processor.
func BenchmarkPick(b *testing.B) {
	f := func(name string, inFlight int, load ...int) {
		b.Run(name, func(b *testing.B) {
			bound := must(b, Config{Weights: equal(20), PerMille: 1250, Floor: 8, Depth: 2})
			for s := range bound.Servers() {
				bound.Add(s, inFlight)
			}
			for s, n := range load {
				bound.Add(s, n)
			}
			candidates := []int{0, 1, 2}
			b.ReportAllocs()
			for b.Loop() {
				place(bound, candidates)
			}
		})
	}
	f("home-idle", 0)
	f("home-within-bound", 32)
	f("home-full", 32, 32)
	f("all-full", 32, 32, 32, 32)
}

// BenchmarkContended has every processor place on servers of its own choice, so that only the
// total is written by all, and then on one server.
func BenchmarkContended(b *testing.B) {
	f := func(name string, spread int) {
		b.Run(name, func(b *testing.B) {
			bound := must(b, Config{Weights: equal(20), PerMille: 1250, Floor: 8, Depth: 2})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				candidates := []int{0, 1, 2}
				for n := 0; pb.Next(); n++ {
					candidates[0] = n * 7 % spread
					candidates[1] = (candidates[0] + 1) % 20
					candidates[2] = (candidates[0] + 2) % 20
					place(bound, candidates)
				}
			})
		})
	}
	f("many-homes", 20)
	f("one-home", 1)
}
