package toll

import (
	"maps"
	"time"
)

// NumKinds is how many kinds of requests can be counted apart.
const NumKinds = 4

// Counts is how many requests there are of each kind.
type Counts [NumKinds]int

// State is what is in flight at a moment.
type State struct{ Here, All Counts } // at one server, and at all

// Seen is what a gate has seen.
type Seen struct {
	Spells map[State]time.Duration // how long it was so
	Came   Counts                  // requests
}

func newSeen() Seen { return Seen{Spells: map[State]time.Duration{}} }

func (s Seen) clone() Seen { return Seen{maps.Clone(s.Spells), s.Came} }

// Mean is the mean over time of something about the states. It is 0 when no time has passed.
func (s Seen) Mean(of func(State) float64) float64 {
	sum, time := 0.0, 0.0
	for state, d := range s.Spells {
		sum += d.Seconds() * of(state)
		time += d.Seconds()
	}
	if time == 0 {
		return 0
	}
	return sum / time
}

// Max is the most of something about the states. It is 0 if nothing was more.
func (s Seen) Max(of func(State) int) (most int) {
	for state, d := range s.Spells {
		if d > 0 {
			most = max(most, of(state))
		}
	}
	return most
}

// Sum is that of all kinds.
func (c Counts) Sum() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}
