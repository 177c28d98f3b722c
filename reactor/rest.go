package reactor

import "time"

// nap is how long a loop at work sleeps without telling the Go scheduler, if that has a
// processor to spare: the beginning of a wait is a raw system call like all others, so to
// the scheduler the loop is still running. At load gaps are shorter than that, and telling
// the scheduler of each would keep its monitor thread awake, which costs more than the
// waiting. A garbage collection that must stop the loop sends it a signal, which ends the
// call. A longer sleep is a real system call, and so is that of a loop that only timers or
// other goroutines have woken: it holds no processor, and the monitor can sleep.
//
// The nap is longer than the kernel's tick, as a shorter timer would have to be written
// to the hardware each time, which is dear on virtual machines.
const nap = 10 * time.Millisecond

// nap is how much of the next wait may be in a raw call.
func (l *Loop) nap() time.Duration {
	if l.spare && (len(l.ready) > 0 || l.resting.expected > 0) {
		return nap
	}
	return 0
}

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

// lone reports whether one event at a time comes, so that it is vain to look for others.
func (r *resting) lone() bool { return r.last <= 1 && r.expected <= 1 }

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
