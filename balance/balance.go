// Package balance chooses among servers that all hold a copy of a key: the copies of a
// replicated pool, or of a hot key. Where a key's home is, is not its business.
//
// The policies differ in what they go by: nothing (RoundRobin, Random), fixed weights
// (WeightedRoundRobin, EDF), the requests in flight (LeastRequest, WeightedLeastRequest, P2C),
// those and the time of replies (PeakEWMA), or what the servers say of themselves (Reported).
// Comparing two random candidates, as P2C and PeakEWMA do, is nearly as even as comparing
// all, and a server that looks idle because it is new, or fails fast, cannot draw more than twice
// its share.
package balance

import (
	"math/rand/v2"
	"time"
)

// Balancer chooses by one policy. It belongs to one loop: it has no locks, and methods
// must not be called concurrently. None of them allocates. A changed set of servers needs a new
// Balancer.
type Balancer struct {
	config  Config
	servers []server
	policy  policy
	rand    *rand.Rand
	began   time.Time
	picks   uint64        // how often touch was called
	due     time.Duration // Reported: when weights are worked out next
	weights []float64     // Reported: room for sorting
}

// server is what is known of one.
type server struct {
	weight   int64
	active   int64
	picked   uint64        // touch: which pick was the last of this server
	current  int64         // smoothly: what it is owed
	turns    int64         // deadline: times picked
	ewma     float64       // observe: moving average of reply times, nanoseconds
	measured time.Duration // observe: when ewma was brought up to date
	known    bool          // observe: ewma means something
	report   report
}

// policy picks a position in candidates, which are more than one.
type policy interface {
	pick(b *Balancer, candidates []int) int
}

// New returns a balancer for servers 0 to len(c.Weights)-1, of which nothing is known yet. It
// fails as Config.Validate does.
func New(c Config) (*Balancer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := &Balancer{config: c, servers: make([]server, len(c.Weights)), policy: policies[c.Policy], rand: c.source()}
	b.weights = make([]float64, 0, len(c.Weights))
	if c.Now == nil {
		b.config.Now = time.Now
	}
	b.began = b.config.Now()
	all, sum := make([]int, len(c.Weights)), 0
	for i, w := range c.Weights {
		all[i], b.servers[i].weight = i, int64(w)
		sum += w
	}
	// A hundred routers must not all begin with the same server.
	for range b.rand.IntN(min(sum, 1024)) {
		b.Pick(all)
	}
	return b, nil
}

// Pick returns the position in candidates of the server to ask. Candidates are different
// servers, at least one.
func (b *Balancer) Pick(candidates []int) int {
	if len(candidates) == 1 {
		return 0
	}
	return b.policy.pick(b, candidates)
}

// Started counts a request that is sent to a server.
func (b *Balancer) Started(server int) { b.servers[server].active++ }

// Done takes the end of a request that Started counted: how long it took, and whether it
// failed. An error within no time must not make a server look fast, so it counts as a reply that
// took ErrorTime, or as long as it did.
func (b *Balancer) Done(server int, took time.Duration, failed bool) {
	s := &b.servers[server]
	s.active--
	if failed {
		took = max(took, b.config.ErrorTime)
	}
	if b.config.Policy == PeakEWMA {
		s.observe(b.now(), took, b.config.Decay)
	}
}

// active returns the requests in flight at a server.
func (b *Balancer) active(server int) int64 {
	if b.config.InFlight != nil {
		return int64(b.config.InFlight(server))
	}
	return b.servers[server].active
}

// now returns the time since the balancer was made.
func (b *Balancer) now() time.Duration { return b.config.Now().Sub(b.began) }
