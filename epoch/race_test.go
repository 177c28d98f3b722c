package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// servers are a home and a copy that threads use at once.
type servers struct {
	*Table
	home, copy, told atomic.Int64
}

// write is one write as the table's comment says; flushes change all keys alike.
func (s *servers) write(all bool) {
	if all {
		s.BeganAll()
	} else {
		s.Began(key)
	}
	version := s.home.Add(1)
	for s.Fills(key) {
		runtime.Gosched()
	}
	s.copy.Store(0)
	if all {
		s.EndedAll()
	} else {
		s.Ended(key)
	}
	for told := s.told.Load(); version > told && !s.told.CompareAndSwap(told, version); told = s.told.Load() {
	}
}

// fill reports whether the copy was stored.
func (s *servers) fill() bool {
	token := s.Now(key)
	version := s.home.Load()
	if !s.FillBegan(key, token) {
		return false
	}
	defer s.FillEnded(key)
	runtime.Gosched() // the copy is on its way
	return s.copy.CompareAndSwap(0, version)
}

// Threads write, fill and read at once; no read of the copy returns what was replaced by
// a write that had been answered before the read began.
func TestThreads(t *testing.T) {
	const rounds = 20_000
	s := &servers{Table: New(4)}
	s.home.Store(1)
	var stored atomic.Int64
	var wg, reader sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for i := range rounds {
				s.write(i%64 == 0)
				runtime.Gosched()
			}
		})
		wg.Go(func() {
			for range rounds {
				if s.fill() {
					stored.Add(1)
				}
			}
		})
	}
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			told := s.told.Load()
			if s.Now(key) == 0 {
				runtime.Gosched()
				continue
			}
			if got := s.copy.Load(); got != 0 && got < told {
				t.Errorf("the copy has version %d after %d was answered", got, told)
				return
			}
		}
	})
	wg.Wait()
	close(stop)
	reader.Wait()
	if s.Fills(key) || s.Now(key) == 0 {
		t.Errorf("something is on its way still: %#x", s.word(key).Load())
	}
	if stored.Load() == 0 {
		t.Error("no copy was ever stored")
	}
}

func TestNothingIsAllocated(t *testing.T) {
	table := New(16)
	n := testing.AllocsPerRun(100, func() {
		table.Began(key)
		table.Ended(key)
		if table.FillBegan(key, table.Now(key)) {
			table.FillEnded(key)
		}
		table.BeganAll()
		table.FillsAny()
		table.EndedAll()
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
