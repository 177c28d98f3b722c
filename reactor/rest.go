package reactor

import "time"

// A loop of which much is expected but that finds little to do rests a moment before it
// looks again. A turn costs its system calls whether they carry one request or many, and
// with other processors at work on the answers they come one by one: resting, they come
// together. Below restFrom nothing is delayed, so a lone client notices nothing.
const (
	restFrom = 16                     // events expected
	restTime = 120 * time.Microsecond // about what a server takes for a few requests
	// restMax is the most turns, as a power of two, that a loop goes without a rest after
	// rests that brought nothing: what is expected may come from a server that is stuck,
	// and others must not wait for it.
	restMax = 6
)

// resting decides when a loop rests.
type resting struct {
	expected int  // events known to be on their way
	last     int  // events that the last poll brought
	rested   bool // before that poll
	vain     int  // rests in a row that brought less than two events
	skip     int  // turns without a rest still to come
}

// due reports whether to rest before the next poll.
func (r *resting) due() bool {
	sparse := r.expected >= restFrom && r.last*3 < r.expected
	if sparse && r.skip > 0 {
		r.skip--
		sparse = false
	}
	r.rested = sparse
	return sparse
}

// found tells how many events a poll has brought.
func (r *resting) found(n int) {
	r.last = n
	switch {
	case !r.rested:
	case n < 2:
		r.vain = min(r.vain+1, restMax)
		r.skip = 1 << r.vain
	default:
		r.vain = 0
	}
	r.rested = false
}
