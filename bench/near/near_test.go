package near

import (
	"fmt"
	"runtime"
	"testing"

	"cacherouter/epoch"
)

var caches = []struct {
	name   string
	make   func(testing.TB, *epoch.Table) cache
	shared bool // by all loops
}{
	{"ours", newOurs, false},
	{"otter", newTheirs, true},
}

// hotKeys is how many keys are hot, with values of some size.
const hotKeys = 512

var keys = func() (all [hotKeys][]byte) {
	for i := range all {
		all[i] = fmt.Appendf(nil, "user:profile:%08d", i)
	}
	return all
}()

func hash(i int) uint64 { return uint64(i+1) * 0x9e3779b97f4a7c15 }

func fillAll(c cache, value []byte) {
	for i, key := range keys {
		c.fill(hash(i), key, value)
	}
}

func found(c cache) (n int) {
	for i, key := range keys {
		if v, ok := c.find(hash(i), key); ok && len(v) > 0 {
			n++
		}
	}
	return n
}

// Both find what they were filled with, and nothing after a write.
func TestBothWork(t *testing.T) {
	for _, c := range caches {
		t.Run(c.name, func(t *testing.T) {
			epochs := epoch.New(0)
			made := c.make(t, epochs)
			fillAll(made, make([]byte, 100))
			if n := found(made); n < hotKeys*98/100 {
				t.Errorf("%d of %d are found", n, hotKeys)
			}
			for i := range keys {
				epochs.Passed(hash(i))
			}
			if n := found(made); n > 0 {
				t.Errorf("%d are found after a write", n)
			}
		})
	}
}

// What either takes when it is full, for the same bytes of values at most.
func TestMemory(t *testing.T) {
	for _, size := range []int{100, 1000} {
		for _, c := range caches {
			epochs, before := epoch.New(0), heap()
			made, key := c.make(t, epochs), []byte(nil)
			for i := range 4 * cacheBytes / size {
				key = fmt.Appendf(key[:0], "user:profile:%08d", i)
				made.fill(hash(i), key, make([]byte, size))
			}
			t.Logf("%s with values of %d bytes takes %d KiB of heap", c.name, size, (heap()-before)>>10)
			runtime.KeepAlive(made)
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkHit is what a hit costs, with as many loops as processors.
func BenchmarkHit(b *testing.B) {
	for _, c := range caches {
		b.Run(c.name, func(b *testing.B) {
			loops := perLoop(b, c.make, c.shared)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				made := <-loops
				for i := 0; pb.Next(); i++ {
					made.find(hash(i&(hotKeys-1)), keys[i&(hotKeys-1)])
				}
			})
		})
	}
}

// BenchmarkFill is what it costs to keep one more answer.
func BenchmarkFill(b *testing.B) {
	for _, c := range caches {
		b.Run(c.name, func(b *testing.B) {
			loops, value := perLoop(b, c.make, c.shared), make([]byte, 100)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				made := <-loops
				for i := 0; pb.Next(); i++ {
					made.fill(hash(i&(hotKeys-1)), keys[i&(hotKeys-1)], value)
				}
			})
		})
	}
}

// perLoop returns filled caches, one for each processor, or one that all share.
func perLoop(b *testing.B, mk func(testing.TB, *epoch.Table) cache, shared bool) chan cache {
	epochs, n := epoch.New(0), runtime.GOMAXPROCS(0)
	loops := make(chan cache, n)
	made := mk(b, epochs)
	for i := range n {
		if i > 0 && !shared {
			made = mk(b, epochs)
		}
		fillAll(made, make([]byte, 100))
		loops <- made
	}
	return loops
}
