// Package farm models balancers before servers in virtual time. The balancers are the product's own;
// requests arrive whatever became of earlier ones, and any server may get any of them.
package farm

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Machine is a server that works on some requests at a time; the others wait in turn.
type Machine struct {
	Slots int // 0 means any number
	// Serve returns how long a request takes that is begun now, and whether it fails.
	Serve func(now time.Duration) (took time.Duration, failed bool)
}

// Config is one experiment.
type Config struct {
	Policy    string // of package balance
	Balancers int    // that count each for itself; 0 means 1
	Weights   []int  // nil means all 1
	Machines  []Machine
	Requests  int
	// Reports is how often each machine tells all balancers of its load; 0 means never.
	Reports time.Duration
	// Gap returns the time from one arrival to the next.
	Gap func(r *rand.Rand) time.Duration
}

// Outcome is what became of the requests.
type Outcome struct {
	Took   []time.Duration // from arrival to end, in ascending order
	Failed int
	Sent   []int     // by server
	Inside []float64 // by server, requests there, on average over time
}

// Percentile returns the time that a share of all requests did not exceed.
func (o *Outcome) Percentile(share float64) time.Duration {
	return o.Took[int(math.Ceil(share*float64(len(o.Took))))-1]
}

// Share returns a server's share of all requests.
func (o *Outcome) Share(server int) float64 { return float64(o.Sent[server]) / float64(len(o.Took)) }

// Above returns the share of requests that took longer.
func (o *Outcome) Above(d time.Duration) float64 {
	i, _ := slices.BinarySearch(o.Took, d+1)
	return float64(len(o.Took)-i) / float64(len(o.Took))
}

// Evenly has requests arrive at equal distances, so many a second.
func Evenly(rate int) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return time.Second / time.Duration(rate) }
}

// Poisson has them arrive at random.
func Poisson(rate float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * 1e9 / rate) }
}

// OneByOne is a machine that does so many requests a second on average, one at a time, each in
// a random time.
func OneByOne(rate float64, seed uint64) Machine {
	r := rand.New(rand.NewPCG(seed, 1))
	return Machine{1, func(time.Duration) (time.Duration, bool) {
		return time.Duration(r.ExpFloat64() * 1e9 / rate), false
	}}
}

// Constant is a machine that takes so long for each request.
func Constant(slots int, took time.Duration) Machine {
	return Machine{slots, func(time.Duration) (time.Duration, bool) { return took, false }}
}

// Machines returns n machines.
func Machines(n int, m func(i int) Machine) []Machine {
	all := make([]Machine, n)
	for i := range all {
		all[i] = m(i)
	}
	return all
}
