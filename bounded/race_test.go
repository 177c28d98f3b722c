package bounded

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var picks = flag.Int("picks", 400_000, "requests placed by TestBoundUnderContention")

// placer is what the storm below needs of a Bound.
type placer interface {
	Take(candidates []int, barred uint32, cost int) (rank int, within bool)
	Release(server, units int)
}

const (
	stormers = 8
	holding  = 61 // requests that each stormer has in flight
)

// stormConfig returns a configuration and the cap of each server for the most that the storm
// can have in flight.
func stormConfig() (c Config, caps []int) {
	c = Config{Weights: []int{1, 1, 1, 2, 2, 3, 5, 8}, PerMille: 1250, Floor: 8, Depth: 7}
	for s := range c.Weights {
		caps = append(caps, capOf(c, stormers*holding, s))
	}
	return c, caps
}

// storm has stormers place and release n requests in all, and returns how often a server had
// more requests that a bound admitted than its cap for the highest total. It counts them itself,
// from after a request is placed until before it is released.
func storm(p placer, caps []int, n int) (violations, forced int64) {
	admitted := make([]counter, len(caps))
	var over, full atomic.Int64
	var all sync.WaitGroup
	for seed := range stormers {
		all.Go(func() {
			s := &stormer{p: p, rand: rand.New(rand.NewPCG(6, uint64(seed))), order: upTo(len(caps)), admitted: admitted}
			for range n / stormers {
				s.place(caps, &over, &full)
			}
			s.releaseAll()
		})
	}
	all.Wait()
	return over.Load(), full.Load()
}

type stormer struct {
	p        placer
	rand     *rand.Rand
	order    []int
	admitted []counter
	held     []held
}

type held struct {
	server int
	within bool
}

func (s *stormer) place(caps []int, over, full *atomic.Int64) {
	if len(s.held) == holding {
		s.release(s.rand.IntN(holding))
	}
	// Half of all requests are for the same key as the one before.
	if s.rand.IntN(2) == 0 {
		i := s.rand.IntN(len(s.order))
		s.order[0], s.order[i] = s.order[i], s.order[0]
	}
	rank, within := s.p.Take(s.order, 0, 1)
	server := s.order[rank]
	s.held = append(s.held, held{server, within})
	if !within {
		full.Add(1)
	} else if s.admitted[server].units.Add(1) > int64(caps[server]) {
		over.Add(1)
	}
}

func (s *stormer) release(i int) {
	h := s.held[i]
	if h.within {
		s.admitted[h.server].units.Add(-1)
	}
	s.p.Release(h.server, 1)
	s.held[i] = s.held[len(s.held)-1]
	s.held = s.held[:len(s.held)-1]
}

func (s *stormer) releaseAll() {
	for len(s.held) > 0 {
		s.release(len(s.held) - 1)
	}
}

func TestBoundUnderContention(t *testing.T) {
	c, caps := stormConfig()
	b := must(t, c)
	violations, forced := storm(b, caps, *picks)
	if violations != 0 {
		t.Errorf("%d of %d requests went above a bound", violations, *picks)
	}
	for s := range c.Weights {
		if n := b.InFlight(s); n != 0 {
			t.Errorf("server %d has %d in flight when all are released", s, n)
		}
	}
	if b.Total() != 0 {
		t.Errorf("in flight %d when all are released", b.Total())
	}
	spilled := uint64(0)
	for _, n := range b.Stats().Spilled {
		spilled += n
	}
	if spilled < uint64(*picks)/10 {
		t.Errorf("only %d of %d requests met a full server", spilled, *picks)
	}
	t.Logf("%d requests: %d spilled, %d forced", *picks, spilled, forced)
}

// checkFirst is the mistake that the test above must find: it looks before it adds.
type checkFirst struct{ *Bound }

func (b checkFirst) Take(candidates []int, barred uint32, cost int) (int, bool) {
	for rank, s := range candidates {
		if b.InFlight(s) < b.Cap(s) {
			runtime.Gosched()
			b.Add(s, cost)
			return rank, true
		}
	}
	b.Add(candidates[0], cost)
	return 0, false
}

func TestContentionShowsCheckingFirst(t *testing.T) {
	c, caps := stormConfig()
	if violations, _ := storm(checkFirst{must(t, c)}, caps, 100_000); violations == 0 {
		t.Error("a bound that checks before it adds passed")
	}
}
