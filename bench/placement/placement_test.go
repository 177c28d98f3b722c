package placement

import "testing"

// Every library that is timed does place keys: on more than one server where the answer tells them apart.
func TestPlacersWork(t *testing.T) {
	names := make([]string, 12)
	for i := range names {
		names[i] = string(make([]byte, 1+i)) + "server"
	}
	for _, p := range placers {
		if p.name == "serialx-weight-1" || p.name == "buraksezer" {
			continue // so uneven that it proves nothing here; the benchmarks run them
		}
		find, seen := mustBuild(t, p, names), make(map[int]bool)
		for _, key := range keys {
			seen[find(key)] = true
		}
		if len(seen) != len(names) {
			t.Errorf("%s uses %d of %d servers", p.name, len(seen), len(names))
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	each(b, func(b *testing.B, p placer, names []string) {
		find := mustBuild(b, p, names)
		b.ReportAllocs()
		i, sum := 0, 0
		for b.Loop() {
			sum += find(keys[i&(len(keys)-1)])
			i++
		}
		if sum < 0 {
			b.Fatal("servers are never negative")
		}
	})
}

// BenchmarkParallel does on every processor what BenchmarkLookup does on one.
func BenchmarkParallel(b *testing.B) {
	each(b, func(b *testing.B, p placer, names []string) {
		find := mustBuild(b, p, names)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				find(keys[i&(len(keys)-1)])
			}
		})
	})
}

func BenchmarkBuild(b *testing.B) {
	each(b, func(b *testing.B, p placer, names []string) {
		for b.Loop() {
			mustBuild(b, p, names)
		}
	})
}
