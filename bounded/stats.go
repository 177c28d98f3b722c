package bounded

import "sync/atomic"

// Stats counts what became of requests since the first of a line of bounds was made. The
// requests that their home had room for are not counted: they are the rest, and counting
// them would cost every loop a shared write.
type Stats struct {
	// Spilled has the requests that went to the candidate of a rank because all before it
	// were full or barred. Spilled[0] is always 0.
	Spilled [MaxDepth + 1]uint64
	// Forced is the number of requests that went to the first candidate although it was
	// full, as all others were too.
	Forced uint64
}

// counters are Stats in the making.
type counters struct {
	spilled [MaxDepth + 1]atomic.Uint64
	forced  atomic.Uint64
}

// took counts a request that a rank had room for.
func (c *counters) took(rank int) {
	if rank > 0 {
		c.spilled[rank].Add(1)
	}
}

// Stats returns the counts so far. They are read one after the other while they grow.
func (b *Bound) Stats() Stats {
	s := Stats{Forced: b.shared.stats.forced.Load()}
	for rank := range s.Spilled {
		s.Spilled[rank] = b.shared.stats.spilled[rank].Load()
	}
	return s
}
