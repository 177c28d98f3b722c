package hotkey

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// population is how many keys there are, draws how many requests. Of the first ranks it
// is counted exactly how often they come.
const (
	population = 10_000_000
	draws      = 2_000_000
	ranks      = 10_000
)

// topOf returns the keys of a sketch with their counts, the highest first.
func topOf(s *Sketch, k int) []Entry {
	var snap Snapshot
	s.Snapshot(&snap)
	slices.SortFunc(snap.Entries, func(a, b Entry) int { return cmp.Compare(b.Count, a.Count) })
	return snap.Entries[:min(k, len(snap.Entries))]
}

// counted feeds a sketch and counts exactly as well.
func counted(z *zipf, s *Sketch) []uint32 {
	truth := make([]uint32, ranks)
	buf := make([]byte, 0, 16)
	for range draws {
		n := z.draw()
		if n < ranks {
			truth[n]++
		}
		s.Touch(hashOf(n), keyOf(buf, n))
	}
	return truth
}

// kth returns the count of the key that is k-th by its true count.
func kth(truth []uint32, k int) uint32 {
	counts := slices.Clone(truth) // no other can be among the first
	slices.Sort(counts)
	return counts[len(counts)-k]
}

func TestTopOfZipf(t *testing.T) {
	// With 0.9 the hundredth key comes so rarely that what it misses until it has a slot
	// shows in its count.
	for s, tolerance := range map[float64]float64{0.9: 0.05, 0.99: 0.02, 1.1: 0.02} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			sketch := NewSketch(12345)
			truth := counted(newZipf(s, population, 7), sketch)
			for _, k := range []int{16, 64, 100} {
				least := kth(truth, k)
				good, off := 0, 0.0
				for _, e := range topOf(sketch, k) {
					real := truth[numberOf(e.Key)]
					if real >= least {
						good++
					}
					off = max(off, math.Abs(float64(e.Count)-float64(real))/float64(real))
				}
				// With k named out of k, precision is recall.
				t.Logf("top %d: recall %.3f, largest error of a count %.4f", k, float64(good)/float64(k), off)
				if float64(good) < 0.98*float64(k) || off > tolerance {
					t.Errorf("top %d: %d found, a count is off by %.4f", k, good, off)
				}
			}
		})
	}
}

// The sketch of bytes must find the keys with the most bytes, not those asked for most.
func TestTopByWeight(t *testing.T) {
	c := NewCounter(99)
	z := newZipf(0.99, population, 3)
	truth := make([]uint32, ranks)
	buf := make([]byte, 0, 16)
	for range draws / 2 {
		n := z.draw()
		size := 100
		if n%7 == 3 {
			size = 20_000
		}
		if n < ranks {
			truth[n] += uint32(size)
		}
		c.Moved(hashOf(n), keyOf(buf, n), size)
	}
	least, good := kth(truth, 64), 0
	for _, e := range topOf(c.bytes, 64) {
		real := truth[numberOf(e.Key)]
		if real >= least {
			good++
		}
		if off := math.Abs(float64(e.Count)*64-float64(real)) / float64(real); off > 0.05 {
			t.Errorf("a key with %d bytes is off by %.3f", real, off)
		}
	}
	if good < 62 {
		t.Errorf("%d of the top 64 found", good)
	}
}

// A small value is counted now and then, so that the sum is right.
func TestBytesBelowTheUnit(t *testing.T) {
	c := NewCounter(5)
	for range 100_000 {
		c.Moved(1, []byte("k"), 10)
	}
	got := float64(topOf(c.bytes, 1)[0].Count) * 64
	if math.Abs(got-1e6) > 2e4 {
		t.Errorf("counts %.0f bytes, want a million", got)
	}
}

func TestHalving(t *testing.T) {
	s := NewSketch(1)
	for range 1000 {
		s.Touch(1, []byte("k"))
	}
	for want := uint32(500); want > 0; want /= 2 {
		s.Halve()
		if got := topOf(s, 1); len(got) != 1 || got[0].Count != want {
			t.Fatalf("%+v, want a count of %d", got, want)
		}
	}
	s.Halve()
	if got := topOf(s, 1); len(got) != 0 {
		t.Errorf("a key without a count has its name still: %+v", got)
	}
	if c := s.Touch(1, []byte("k")); c != 1 {
		t.Errorf("starts again with %d", c)
	}
}

func TestSnapshotsAddUp(t *testing.T) {
	s := NewSketch(1)
	var snap Snapshot
	touch := func(n int) {
		for range n {
			s.Touch(1, []byte("k"))
		}
	}
	took := func(count, added, writes uint32) {
		t.Helper()
		s.Snapshot(&snap)
		if e := snap.Entries[0]; string(e.Key) != "k" || e.Count != count || e.Added != added || e.Writes != writes {
			t.Fatalf("%+v, want %d, %d, %d", e, count, added, writes)
		}
	}
	touch(20)
	s.Wrote(1)
	s.Wrote(2) // counts nowhere
	took(20, 20-minNameAt, 1)
	touch(5)
	took(25, 5, 0)
	touch(3)
	s.Halve() // 28 seen as 14, of which 25 as 12
	took(14, 2, 0)
}

func TestLongKeys(t *testing.T) {
	s := NewSketch(1)
	long := strings.Repeat("x", 247)
	for i := range 300 { // more than there are names
		for range 40 + i {
			s.Touch(uint64(i), fmt.Appendf(nil, "%s%03d", long, i))
		}
	}
	for range 1000 {
		s.Touch(999, []byte(long+"999beyond"))
	}
	checkNames(t, s)
	top := topOf(s, 2)
	if string(top[0].Key) != long+"999" {
		t.Errorf("an overlong key is named %q", top[0].Key)
	}
	if want := long + "299"; string(top[1].Key) != want {
		t.Errorf("named %q, want %q", top[1].Key, want)
	}
}

// The weight of one request must not overflow a count.
func TestCountsSaturate(t *testing.T) {
	s := NewSketch(1)
	for range 3 {
		s.Add(1, []byte("k"), 1<<31)
	}
	if top := topOf(s, 1); top[0].Count != math.MaxUint32 {
		t.Errorf("counts %d", top[0].Count)
	}
}

// A bucket full of hot keys stays theirs, however many cold ones come.
func TestColdKeysDoNotDisplace(t *testing.T) {
	s := NewSketch(1)
	var inBucket []uint64
	for h := uint64(0); len(inBucket) < 5000; h++ {
		if _, at := s.place(h); at == 7 {
			inBucket = append(inBucket, h)
		}
	}
	hot, cold := inBucket[:numSlots], inBucket[numSlots:]
	for i, h := range hot {
		for range 200 + i {
			s.Touch(h, []byte("hot"))
		}
	}
	for _, h := range cold {
		s.Touch(h, []byte("cold"))
	}
	for i, h := range hot {
		if c := s.Touch(h, []byte("hot")); c < uint32(199+i) || c > uint32(201+i) {
			t.Errorf("hot key %d counts %d of %d", i, c, 201+i)
		}
	}
}

// Names follow slots: whatever happens, no key has the name of another.
func TestNamesBelong(t *testing.T) {
	s := NewSketch(3)
	z := newZipf(0.9, 20_000, 3)
	buf := make([]byte, 0, 16)
	for i := range 400_000 {
		n := z.draw()
		s.Touch(hashOf(n+i/50_000*1000), keyOf(buf, n+i/50_000*1000))
		if i%10_000 == 0 {
			s.Halve()
		}
		if i%1000 != 0 {
			continue
		}
		checkNames(t, s)
		for _, e := range topOf(s, maxNames) {
			if hashOf(numberOf(e.Key)) != e.Hash {
				t.Fatalf("key %d has the hash %x", numberOf(e.Key), e.Hash)
			}
			if print, at := s.place(e.Hash); !slices.Contains(s.buckets[at].prints[:], print) {
				t.Fatalf("key %d is named and has no slot", numberOf(e.Key))
			}
		}
	}
}

// checkNames checks that slots and names point to each other.
func checkNames(t *testing.T, s *Sketch) {
	t.Helper()
	named := 0
	for slot, n := range s.named {
		if n == 0 {
			continue
		}
		if named++; int(n) > len(s.names) || int(s.names[n-1].slot) != slot {
			t.Fatalf("slot %d has name %d of %d, which is not its own", slot, n, len(s.names))
		}
	}
	if named != len(s.names) {
		t.Fatalf("%d slots have %d names", named, len(s.names))
	}
}

// Any counter takes the same memory, whatever it is fed.
func TestMemoryIsFlat(t *testing.T) {
	before := heapInUse()
	c := NewCounter(1)
	buf := make([]byte, 0, 16)
	var sample Sample
	for i := range 1_000_000 {
		c.Touch(hashOf(i), keyOf(buf, i))
		c.Moved(hashOf(i), keyOf(buf, i), 1000)
	}
	c.Sample(&sample, 0)
	if got := heapInUse() - before; got > 400<<10 {
		t.Errorf("a counter and a sample take %d KiB", got>>10)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(&sample)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stream is requests in a Zipf order, with their keys and hashes.
type stream struct {
	hashes []uint64
	keys   [][]byte
}

func newStream(s float64) *stream {
	z := newZipf(s, population, 1)
	st := &stream{}
	for range 1 << 16 {
		n := z.draw()
		st.hashes = append(st.hashes, hashOf(n))
		st.keys = append(st.keys, keyOf(nil, n))
	}
	return st
}

func BenchmarkTouch(b *testing.B) {
	for _, s := range []float64{0.9, 0.99, 1.1} {
		b.Run(fmt.Sprintf("zipf=%v", s), func(b *testing.B) {
			st, sketch, i := newStream(s), NewSketch(1), 0
			b.ReportAllocs()
			for b.Loop() {
				at := i & (len(st.keys) - 1)
				sketch.Touch(st.hashes[at], st.keys[at])
				if i++; i&(1<<19-1) == 0 {
					sketch.Halve()
				}
			}
		})
	}
}

func BenchmarkMoved(b *testing.B) {
	st, c, i := newStream(0.99), NewCounter(1), 0
	b.ReportAllocs()
	for b.Loop() {
		at := i & (len(st.keys) - 1)
		c.Moved(st.hashes[at], st.keys[at], 300)
		if i++; i&(1<<19-1) == 0 {
			c.bytes.Halve()
		}
	}
}

func BenchmarkHalve(b *testing.B) {
	s := NewSketch(1)
	for b.Loop() {
		s.Halve()
	}
}

func BenchmarkSample(b *testing.B) {
	st, c := newStream(0.99), NewCounter(1)
	for i := range st.keys {
		c.Touch(st.hashes[i], st.keys[i])
	}
	var sample Sample
	b.ReportAllocs()
	for b.Loop() {
		c.Sample(&sample, 0)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	st, c, i := newStream(0.99), NewCounter(1), 0
	var sample Sample
	c.Sample(&sample, 0)
	count := func() {
		at := i & (len(st.keys) - 1)
		c.Touch(st.hashes[at], st.keys[at])
		c.Moved(st.hashes[at], st.keys[at], 300)
		c.Wrote(st.hashes[at])
		i++
	}
	if n := testing.AllocsPerRun(100_000, count); n > 0 {
		t.Errorf("%v allocations for a request", n)
	}
	c.Sample(&sample, 0)
	if n := testing.AllocsPerRun(100, func() { c.Sample(&sample, 0) }); n > 0 {
		t.Errorf("%v allocations for a sample", n)
	}
}

// The slot that is noted as a bucket's smallest is, whatever comes.
func TestLeastCountIsKnown(t *testing.T) {
	s, z := NewSketch(4), newZipf(0.9, 20_000, 11)
	for i := range 200_000 {
		n := z.draw()
		s.Add(hashOf(n), keyOf(nil, n), 1+uint32(i%3)*uint32(i%200))
		if i%20_000 == 0 {
			s.Halve()
		}
		_, at := s.place(hashOf(n))
		b := &s.buckets[at]
		if least := b.counts[s.least[at]]; least != slices.Min(b.counts[:]) {
			t.Fatalf("after %d keys the smallest of %v is not %d", i+1, b.counts, least)
		}
	}
}
