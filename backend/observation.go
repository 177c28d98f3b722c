package backend

import "time"

// Observation is what happened to one loop's calls to a server since the loop's last
// report. The zero value says nothing.
type Observation struct {
	// OK counts calls that were answered, Latency is the sum of their durations.
	OK      int
	Latency time.Duration
	// Failures counts those that were not, by reason.
	Failures [NumFailures]int
	// Streak is how many of the failures came after the last success.
	Streak int
}
