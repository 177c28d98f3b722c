package ring

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// MaxWeight is the largest weight of a server; the smallest is 1.
const MaxWeight = 65535

const maxServers = 65535

// check returns an error that names the first entry that no ring can have.
func check(names []string, weights []int) error {
	switch {
	case len(names) == 0:
		return errors.New("no servers")
	case len(names) > maxServers:
		return fmt.Errorf("%d servers: at most %d", len(names), maxServers)
	case weights != nil && len(weights) != len(names):
		return fmt.Errorf("%d weights for %d servers", len(weights), len(names))
	}
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if name == "" {
			return fmt.Errorf("server %d has no name", i)
		}
		if first, dup := seen[name]; dup {
			return fmt.Errorf("servers %d and %d have the same name %q", first, i, name)
		}
		seen[name] = i
		if weights != nil && (weights[i] < 1 || weights[i] > MaxWeight) {
			return fmt.Errorf("server %q has weight %d: want 1 to %d", name, weights[i], MaxWeight)
		}
	}
	return nil
}

// byName returns the indexes of names in ascending order of the names.
func byName(names []string) []int {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	return order
}
