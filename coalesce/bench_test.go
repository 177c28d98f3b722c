package coalesce

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

type waiter struct{ answered int }

type bencher struct {
	*Table[*waiter]
	keys   [][]byte
	hashes []uint64
	who    waiter
	flying []*Flight[*waiter]
	lent   []Flight[*waiter] // of those that are flying
	asks   Flight[*waiter]   // of a get that follows
	i      int
}

func newBencher(t testing.TB, flying int) *bencher {
	table, err := New[*waiter](Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bencher{Table: table, flying: make([]*Flight[*waiter], flying), lent: make([]Flight[*waiter], flying)}
	for i := range 4096 {
		b.keys = append(b.keys, fmt.Appendf(nil, "user:profile:%08d", i))
		b.hashes = append(b.hashes, rand.Uint64())
	}
	for i := range b.flying {
		b.flying[i] = b.lead(&b.lent[i])
	}
	return b
}

func (b *bencher) join(own *Flight[*waiter]) *Flight[*waiter] {
	i := b.i % len(b.keys)
	own.Ask(b.hashes[i], b.keys[i], 0, &b.who, time.Second)
	f, _ := b.Join(own, 0, 0)
	return f
}

func (b *bencher) lead(own *Flight[*waiter]) *Flight[*waiter] {
	b.i++
	return b.join(own)
}

func (b *bencher) land(f *Flight[*waiter]) *Flight[*waiter] {
	var crew Crew[*waiter]
	next := b.Landed(f, &crew, 0)
	for w, ok := b.Pop(&crew); ok; w, ok = b.Pop(&crew) {
		w.answered++
	}
	return next
}

// turn leads one flight and lands the one led longest ago.
func (b *bencher) turn() {
	i := b.i % len(b.flying)
	b.land(b.flying[i])
	b.flying[i] = b.lead(&b.lent[i])
	b.Sent()
}

// shared lands a flight for which 15 others wait.
func (b *bencher) shared(f *Flight[*waiter]) *Flight[*waiter] {
	b.Sent()
	for range 15 {
		b.join(&b.asks)
	}
	return b.land(f)
}

func BenchmarkUncontended(b *testing.B) {
	for _, flying := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("flying=%d", flying), func(b *testing.B) {
			table := newBencher(b, flying)
			b.ReportAllocs()
			for b.Loop() {
				table.turn()
			}
		})
	}
}

// One operation is 15 gets that share a flight.
func BenchmarkShared(b *testing.B) {
	table := newBencher(b, 1)
	f := table.flying[0]
	b.ReportAllocs()
	for b.Loop() {
		f = table.shared(f)
	}
}

// BenchmarkSeal is what a write pays when nobody reads its key.
func BenchmarkSeal(b *testing.B) {
	table := newBencher(b, 64)
	b.ReportAllocs()
	for b.Loop() {
		table.Seal(table.hashes[0], table.keys[0], 0)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	b := newBencher(t, 64)
	if n := testing.AllocsPerRun(1000, b.turn); n > 0 {
		t.Errorf("%v allocations for a flight", n)
	}
	b = newBencher(t, 1)
	f := b.flying[0]
	f = b.shared(f)
	if n := testing.AllocsPerRun(1000, func() { f = b.shared(f) }); n > 0 {
		t.Errorf("%v allocations for a shared flight", n)
	}
}
