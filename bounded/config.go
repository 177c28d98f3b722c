package bounded

import (
	"fmt"
	"slices"
)

// Limits of a Config.
const (
	MaxDepth  = 31     // Take's mask has a bit for each candidate
	MaxWeight = 65_535 // as in placement
	maxFactor = 1_000_000
)

// Config says how much each server of a pool may have in flight.
type Config struct {
	// Weights has each server's share of the load, 0 to MaxWeight. A server with weight 0
	// has no share: it is out or leaving, and the others share what it had. At least one is
	// above 0.
	Weights []int
	// PerMille is c in thousandths: how far above its share a server may be; 1000 and more.
	// Between 1250 and 2000 is usual. Nearer to 1000 more requests leave their home.
	PerMille int
	// Floor is the number of units that every server may have in flight whatever the
	// others do; at least 1. A low floor makes requests leave home when hardly any are in
	// flight, as the bound is then one or two.
	Floor int
	// Depth is how many candidates after the home may take a request: 0 never leaves home,
	// and it is less than the number of servers. Each one is one more server that a write has
	// to clean, one fewer lets the home go further above its bound.
	Depth int
}

// Default returns the configuration to start from: 1.25 times the share, a floor of 8, two
// candidates after the home, or as many as there are.
func Default(weights []int) Config {
	return Config{Weights: weights, PerMille: 1250, Floor: 8, Depth: max(0, min(2, len(weights)-1))}
}

// Validate says what is wrong with a configuration, and why it cannot be so.
func (c *Config) Validate() error {
	switch {
	case len(c.Weights) == 0:
		return fmt.Errorf("cannot bound the load of no servers")
	case c.PerMille < 1000:
		return fmt.Errorf("cannot bound load at %d.%03d times the mean: below 1 the servers together could not take what is in flight", c.PerMille/1000, max(0, c.PerMille)%1000)
	case c.PerMille > maxFactor:
		return fmt.Errorf("cannot bound load at %d times the mean: it is at most %d", c.PerMille/1000, maxFactor/1000)
	case c.Floor < 1:
		return fmt.Errorf("cannot bound load with a floor of %d: at least 1 request must be allowed, and below 4 up to half of all leave home when few are in flight", c.Floor)
	case c.Depth < 0 || c.Depth > MaxDepth:
		return fmt.Errorf("cannot bound load with depth %d: it is 0 to %d", c.Depth, MaxDepth)
	case c.Depth >= len(c.Weights):
		return fmt.Errorf("cannot bound load with depth %d: %d servers have %d candidates after the home", c.Depth, len(c.Weights), len(c.Weights)-1)
	}
	return c.validateWeights()
}

func (c *Config) validateWeights() error {
	for i, w := range c.Weights {
		if w < 0 || w > MaxWeight {
			return fmt.Errorf("cannot bound load of server %d with weight %d: it is 0 to %d", i, w, MaxWeight)
		}
	}
	if slices.Max(c.Weights) == 0 {
		return fmt.Errorf("cannot bound load when no server has a weight above 0")
	}
	return nil
}

// checkFrom checks that each former server goes on as at most one.
func checkFrom(from []int, servers, former int) error {
	if len(from) != servers {
		return fmt.Errorf("cannot carry counts over: %d servers, but the origin of %d is given", servers, len(from))
	}
	used := make([]bool, former)
	for i, f := range from {
		if f >= former {
			return fmt.Errorf("cannot carry counts over to server %d: there was no server %d", i, f)
		}
		if f >= 0 && used[f] {
			return fmt.Errorf("cannot carry counts over to server %d: server %d goes on as two", i, f)
		}
		if f >= 0 {
			used[f] = true
		}
	}
	return nil
}
