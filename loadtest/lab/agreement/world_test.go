package agreement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A server that is gone is moved away from once, by all routers within a turn or two, and comes home when it answers.
func TestServersGoAndComeBack(t *testing.T) {
	for name, state := range map[string]State{"killed": Refuses, "stopped": Silent} {
		t.Run(name, func(t *testing.T) {
			w := New(Config{Routers: 3, Servers: 5, Seed: 1})
			if !w.Placed(0) || !w.Agreed() || len(w.Changes) != 0 {
				t.Fatal("a new world is not settled")
			}
			w.Set(0, state)
			w.Run(8 * time.Second)
			if !w.Out(0) || !w.Agreed() || len(w.Changes) != 3 || w.Changes[2].At-w.Changes[0].At > 100*time.Millisecond {
				t.Errorf("out %v, agreed %v, changes %v", w.Out(0), w.Agreed(), w.Changes)
			}
			w.Set(0, Answers)
			w.Run(20 * time.Second)
			if !w.Placed(0) || !w.Agreed() || len(w.Changes) != 6 || w.Messages == 0 {
				t.Errorf("placed %v, agreed %v, changes %v, %d messages", w.Placed(0), w.Agreed(), w.Changes, w.Messages)
			}
		})
	}
}

// Losing most messages delays what is decided; one run is like the next.
func TestLossDelaysAndRunsAreAlike(t *testing.T) {
	run := func(loss float64) []Change {
		w := New(Config{Routers: 5, Servers: 5, Seed: 3, Loss: loss})
		w.Set(1, Refuses)
		w.Run(15 * time.Second)
		return w.Changes
	}
	few, most := run(0), run(0.9)
	last := func(all []Change) time.Duration {
		if len(all) == 0 {
			return time.Hour
		}
		return all[len(all)-1].At
	}
	if last(most) <= last(few) {
		t.Errorf("with nine of ten messages lost the last router changed at %v, with none lost at %v", last(most), last(few))
	}
	if diff := cmp.Diff(most, run(0.9)); diff != "" {
		t.Errorf("the next run differs:\n%s", diff)
	}
}
