// Package bounded keeps every server's requests in flight below a bound, however skewed
// the keys are: the insert rule of consistent hashing with bounded loads (Mirrokni, Thorup,
// Zadimoghaddam, arXiv 1608.01350) over requests in flight, with a floor.
//
// A server with weight w of W may have
//
//	max(floor, ceil(c * (T+1) * w/W))
//
// units in flight when T are in flight in all. Beyond that a request goes to the key's next
// candidate, and to its home when all are full. Requests in flight show a slow server as well
// as a busy one, without a window of time. The price is that copies of a key come to exist,
// which is why the depth is limited and the floor keeps idle pools from spilling.
package bounded

import (
	"math/bits"
	"sync/atomic"
)

// Bound counts what is in flight and says which candidate takes a request. One is shared by
// all loops of a process: bounds that each see a part of the traffic hold only for that part.
// All methods may be called concurrently and none allocates, except Next.
type Bound struct {
	servers []server
	whole   uint64 // 1000 * the sum of weights
	floor   int64
	depth   int
	shared  *shared
}

// server is one server's count and its part of Bound.whole.
type server struct {
	load *counter
	part uint64 // c in thousandths, times the weight
}

// shared is what a Bound and its successors have in common.
type shared struct {
	total counter
	stats counters
}

// counter has its cache lines to itself: 128 bytes, as processors fetch lines in pairs.
type counter struct {
	units atomic.Int64
	_     [120]byte
}

// New returns a bound with nothing in flight. It fails as Config.Validate does.
func New(c Config) (*Bound, error) {
	return next(c, &shared{}, func(int) *counter { return new(counter) })
}

// Next returns a bound for a changed pool. Server i of it is server from[i] of b, or new if
// from[i] is negative; servers that stay keep their counts and the totals go on. What was
// taken from b is released to b, whenever that is.
func (b *Bound) Next(c Config, from []int) (*Bound, error) {
	if err := checkFrom(from, len(c.Weights), len(b.servers)); err != nil {
		return nil, err
	}
	return next(c, b.shared, func(i int) *counter {
		if from[i] < 0 {
			return new(counter)
		}
		return b.servers[from[i]].load
	})
}

func next(c Config, s *shared, load func(i int) *counter) (*Bound, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := &Bound{servers: make([]server, len(c.Weights)), floor: int64(c.Floor), depth: c.Depth, shared: s}
	for i, w := range c.Weights {
		b.servers[i] = server{load(i), uint64(c.PerMille) * uint64(w)}
		b.whole += 1000 * uint64(w)
	}
	return b, nil
}

// Take finds room for a request of cost units among its candidates, home first: indexes of
// servers in the key's own order, of which the first Depth+1 count. Bit r of barred excludes
// candidate r. When all that remain are full, the first of them takes it nevertheless and
// within is false. The rank is the place in candidates of the server that has it now; the
// caller releases it there. It is -1 when no candidate remains; then nothing was taken.
//
// A server with nothing in flight takes a request of any cost. Otherwise, with within true,
// the server's count including this request is at most its bound for a T that held at
// a moment of this call. T counts what is being placed too, and the count may include what
// another loop is about to take back, so racing calls err on the side of a refusal.
func (b *Bound) Take(candidates []int, barred uint32, cost int) (rank int, within bool) {
	candidates = candidates[:min(len(candidates), b.depth+1)]
	units := int64(cost)
	total := b.shared.total.units.Add(units)
	first := -1
	for rank, i := range candidates {
		if barred>>rank&1 != 0 {
			continue
		}
		if b.reserve(&b.servers[i], units, total) {
			b.shared.stats.took(rank)
			return rank, true
		}
		if first < 0 {
			first = rank
		}
	}
	return b.force(candidates, first, units), false
}

// reserve adds first and compares then: what is compared cannot change in between.
func (b *Bound) reserve(s *server, units, total int64) bool {
	n := s.load.units.Add(units)
	if n <= b.floor || n == units || b.fits(n, total, s.part) {
		return true
	}
	s.load.units.Add(-units)
	return false
}

// fits reports n <= ceil(total * part / whole), as (n-1) * whole < total * part: without
// a division, in 128 bits.
func (b *Bound) fits(n, total int64, part uint64) bool {
	hi, lo := bits.Mul64(uint64(n-1), b.whole)
	topHi, topLo := bits.Mul64(uint64(total), part)
	return hi < topHi || hi == topHi && lo < topLo
}

// Beyond reports whether a server has at least times as many units in flight as it may if one more
// were to come: times 1 is full, 2 is twice that. It counts nothing and may be overtaken by what other
// loops do, so it decides whether a request may leave home, not whether a server takes it. Times is 1
// to 1000.
func (b *Bound) Beyond(server, times int) bool {
	s := &b.servers[server]
	n := s.load.units.Load()
	if n < int64(times)*b.floor {
		return false
	}
	// n >= times*cap is floor(n/times) >= cap, as cap is whole.
	return !b.fits(n/int64(times)+1, b.shared.total.units.Load()+1, s.part)
}

func (b *Bound) force(candidates []int, rank int, units int64) int {
	if rank < 0 {
		b.shared.total.units.Add(-units)
		return -1
	}
	b.servers[candidates[rank]].load.units.Add(units)
	b.shared.stats.forced.Add(1)
	return rank
}

// Add counts units at a server without asking for room: a write, which only its home may
// take, or what a request turned out to cost more, as when the size of a reply is learnt.
func (b *Bound) Add(server, units int) {
	b.shared.total.units.Add(int64(units))
	b.servers[server].load.units.Add(int64(units))
}

// Release takes back units that Take or Add counted at a server. It panics when more comes
// back than was taken, as from then on the bound would mean nothing.
func (b *Bound) Release(server, units int) {
	// The total goes last, as in Take it goes first: so T is never below the sum of counts,
	// and some server always has room.
	if b.servers[server].load.units.Add(-int64(units)) < 0 {
		panic("bug: released more than was taken")
	}
	b.shared.total.units.Add(-int64(units))
}

// InFlight returns the units in flight at a server.
func (b *Bound) InFlight(server int) int { return int(b.servers[server].load.units.Load()) }

// Total returns the units in flight at all servers, those since removed included.
func (b *Bound) Total() int { return int(b.shared.total.units.Load()) }

// Cap returns how many units a server may have in flight if one more were to come now.
func (b *Bound) Cap(server int) int {
	hi, lo := bits.Mul64(uint64(b.Total()+1), b.servers[server].part)
	ceil, rest := bits.Div64(hi, lo, b.whole)
	if rest > 0 {
		ceil++
	}
	return max(int(b.floor), int(ceil))
}

// Depth returns how many candidates after the home may take a request.
func (b *Bound) Depth() int { return b.depth }

// Servers returns how many servers there are.
func (b *Bound) Servers() int { return len(b.servers) }
