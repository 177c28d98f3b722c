package balance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Names of policies.
const (
	RoundRobin           = "round_robin"
	WeightedRoundRobin   = "weighted_round_robin"
	EDF                  = "edf"
	Random               = "random"
	LeastRequest         = "least_request"
	WeightedLeastRequest = "weighted_least_request"
	P2C                  = "p2c"
	PeakEWMA             = "peak_ewma"
	Reported             = "reported"
)

var policies = map[string]policy{
	RoundRobin:           roundRobin{},
	WeightedRoundRobin:   smooth{},
	EDF:                  deadline{},
	Random:               random{},
	LeastRequest:         least{},
	WeightedLeastRequest: weightedLeast{},
	P2C:                  twoChoices{},
	PeakEWMA:             peak{},
	Reported:             reported{},
}

// MaxWeight is the largest weight of a server, as in placement.
const MaxWeight = 65_535

// Config says how to choose. Default has values for all but the weights.
type Config struct {
	// Policy is one of the names above.
	Policy string
	// Weights has each server's weight, 1 to MaxWeight. RoundRobin, Random, PeakEWMA and
	// Reported do without.
	Weights []int
	// Bias is how much WeightedLeastRequest minds requests in flight: weight/(active+1)^Bias,
	// 0 to 10. With 0 it is weighted round robin.
	Bias float64
	// Decay is how long PeakEWMA takes to forget: in this time the weight of what was
	// measured falls to 1/e.
	Decay time.Duration
	// ErrorTime is how long a failed request counts as having taken, at least.
	ErrorTime time.Duration
	// ErrorPenalty is how much of its capacity a server seems to use, for Reported, when all its
	// requests fail; see Weight.
	ErrorPenalty float64
	// Blackout is how long the reports of a server are not believed after its first one,
	// and Expiry how long one is believed when no other comes. Reported works out weights anew
	// once each Update.
	Blackout, Expiry, Update time.Duration

	// Seed makes all random choices repeatable; 0 means that they are not.
	Seed uint64
	// Now returns the time and never goes back; nil means time.Now. The time at which a loop's turn began
	// will do, as only PeakEWMA and Reported ask.
	Now func() time.Time
	// InFlight returns the requests in flight at a server, when they are counted elsewhere, as
	// by a bound that all loops of a process share; nil means those that this balancer started.
	// A loop that sees one request in twenty sees next to nothing.
	InFlight func(server int) int
}

// Default returns the configuration to start from, P2C.
func Default(weights []int) Config {
	return Config{
		Policy: P2C, Weights: weights, Bias: 1, Decay: 10 * time.Second, ErrorTime: time.Second,
		ErrorPenalty: 1, Blackout: 10 * time.Second, Expiry: 3 * time.Minute, Update: time.Second,
	}
}

// Policies returns the names of all policies in alphabetical order.
func Policies() []string { return slices.Sorted(maps.Keys(policies)) }

// Validate says what is wrong with a configuration.
func (c *Config) Validate() error {
	switch {
	case policies[c.Policy] == nil:
		return fmt.Errorf("cannot balance by %q: policies are %s", c.Policy, strings.Join(Policies(), ", "))
	case len(c.Weights) == 0:
		return fmt.Errorf("cannot balance over no servers")
	case !(c.Bias >= 0 && c.Bias <= 10):
		return fmt.Errorf("cannot balance with bias %v: it is 0 to 10", c.Bias)
	case !(c.ErrorPenalty >= 0 && c.ErrorPenalty <= 1000):
		return fmt.Errorf("cannot balance with error penalty %v: it is 0 to 1000", c.ErrorPenalty)
	case c.Decay <= 0 || c.ErrorTime <= 0 || c.Expiry <= 0 || c.Update <= 0 || c.Blackout < 0:
		return fmt.Errorf("cannot balance with decay %v, error time %v, expiry %v, update %v, blackout %v: all are above 0, but blackout may be 0",
			c.Decay, c.ErrorTime, c.Expiry, c.Update, c.Blackout)
	}
	for i, w := range c.Weights {
		if w < 1 || w > MaxWeight {
			return fmt.Errorf("cannot balance over server %d with weight %d: it is 1 to %d", i, w, MaxWeight)
		}
	}
	return nil
}

// source returns the random numbers of one balancer.
func (c *Config) source() *rand.Rand {
	seed := c.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, seed))
}
