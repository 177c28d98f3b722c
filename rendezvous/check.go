package rendezvous

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// check returns an error that names the first entry that no placement can have.
func check(names []string, weights []int, slots int) error {
	switch {
	case len(names) == 0:
		return errors.New("no servers")
	case len(names) > min(slots, maxServers):
		return fmt.Errorf("%d servers: at most %d", len(names), min(slots, maxServers))
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
		if weights != nil {
			if err := checkWeight(name, weights[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkWeight(name string, w int) error {
	if w < 1 || w > MaxWeight {
		return fmt.Errorf("server %q has weight %d: want 1 to %d", name, w, MaxWeight)
	}
	return nil
}

// seedOf is what a server's draws depend on.
func seedOf(name string) uint64 { return xxhash.Sum64String(name) }

// finish derives what follows from the list of servers. Two names with one 64-bit seed would draw alike in every slot;
// that is refused rather than resolved, since one of the two would get nothing.
func (t *Table) finish() error {
	owner := make(map[uint64]string, len(t.seeds))
	t.even = true
	for id, seed := range t.seeds {
		name := t.names[t.index[id]]
		if other, clash := owner[seed]; clash {
			return fmt.Errorf("cannot build rendezvous table: names %q and %q have the same hash: rename one", other, name)
		}
		owner[seed] = name
		t.even = t.even && t.rates[id] == t.rates[0]
	}
	t.setSieve()
	return nil
}
