package hotkey

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// LimitConfig sets up a [Limiter].
type LimitConfig struct {
	// Rate is how many requests a second one hot key may have, through all loops
	// together; above 0 and at most 10,000,000.
	Rate float64
	// Burst is how many may come at once; 0 means as many as the rate is in 100 ms, at
	// least 1.
	Burst int
}

func (c *LimitConfig) validate() error {
	if !(c.Rate > 0 && c.Rate <= 1e7) || c.Burst < 0 {
		return fmt.Errorf("cannot limit a key to %v requests a second and %d at once: the rate must be above 0 and at most 10000000, the other not negative", c.Rate, c.Burst)
	}
	return nil
}

// Limiter bounds the rate of each hot key, and of no other: so it needs no memory for
// those that nobody would limit. A key is limited from when it is hot, which takes some
// tenths of a second, and stays hot while requests on it are counted, those that are
// refused included.
//
// Loops share it, as the clients of one key may all be on one loop or on many. What they
// share is a cache line for each hot key, which is only written when a request is
// allowed, thus at the limited rate. All methods may be called concurrently.
type Limiter struct {
	step    int64 // nanoseconds between two requests
	ahead   int64 // by how much requests may come early
	refused atomic.Uint64
	limits  atomic.Pointer[limits]

	mu sync.Mutex // held while limits is replaced
}

// limits are the buckets of the hot keys, each at its place in heat.
type limits struct {
	heat    *Heat
	buckets []*allowance
}

// allowance is a token bucket, kept as the time at which the next request would be neither
// early nor late (the generic cell rate algorithm, ITU-T I.371).
type allowance struct {
	next atomic.Int64
	_    [56]byte // has a cache line of its own
}

// NewLimiter makes a limiter that does not know any hot key yet. It fails when a field of
// c makes no sense.
func NewLimiter(c LimitConfig) (*Limiter, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Burst == 0 {
		c.Burst = max(1, int(c.Rate/10))
	}
	step := float64(time.Second) / c.Rate
	return &Limiter{step: int64(step), ahead: int64(step * float64(c.Burst-1))}, nil
}

// Follow limits the keys that are in h from now on, and no others. A key that was limited
// before goes on where it was.
func (l *Limiter) Follow(h *Heat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.limits.Load()
	if h == nil {
		l.limits.Store(nil)
		return
	}
	buckets := make([]*allowance, len(h.levels))
	for i, level := range h.levels {
		if level == Cold {
			continue
		}
		if buckets[i] = old.bucket(h.hashes[i]); buckets[i] == nil {
			buckets[i] = new(allowance)
		}
	}
	l.limits.Store(&limits{h, buckets})
}

// bucket returns the bucket of a key, nil if it has none.
func (l *limits) bucket(hash uint64) *allowance {
	if l == nil {
		return nil
	}
	return l.buckets[l.heat.place(hash)]
}

// Allow reports whether a request on a key may go on. Times are measured from any fixed
// instant, the same on all loops; a loop that is a little behind does no harm.
func (l *Limiter) Allow(hash uint64, now time.Duration) bool {
	b := l.limits.Load().bucket(hash)
	if b == nil {
		return true
	}
	for {
		next := b.next.Load()
		if next > int64(now)+l.ahead {
			l.refused.Add(1)
			return false
		}
		if b.next.CompareAndSwap(next, max(next, int64(now))+l.step) {
			return true
		}
	}
}

// Refused returns how many requests were not allowed, since the start.
func (l *Limiter) Refused() uint64 { return l.refused.Load() }
