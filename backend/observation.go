package backend

import (
	"time"

	"cacherouter/reactor"
)

// Observation is what happened to one loop's calls to a server since the loop's last
// report. The zero value says nothing.
//
// A failed attempt to connect that no call waited for counts as a failed call, so that a
// loop without traffic learns of a dead server too. So does a lost connection all of whose
// calls are sent again; what becomes of those is counted as well.
type Observation struct {
	// OK counts calls that were answered, be it with an error. Latency is the sum of
	// their durations, from the turn of the loop that sent a call to the one that read
	// the end of its reply.
	OK      int
	Latency time.Duration
	// Failures counts those that were not, by reason. Busy says more of this router, which
	// had too much to send, than of the server. Calls that ended because the router gave
	// the server up, by Retire or Close, are not counted.
	Failures [NumFailures]int
	// Streak is how many of the failures came after the last success, without those that
	// say nothing about the server's life: Busy, and Denied.
	Streak int
}

// observeEvery is how long successes are gathered before they are told.
const observeEvery = 250 * time.Millisecond

// observer gathers what happens to a server's calls until it is told. Nothing is told
// from within a call: a timer does it, which is set once for many calls. A failure moves
// the timer to the present, so that it runs at the end of the turn, or after what else
// fails by a timer, and many calls that fail together are told of once.
type observer struct {
	loop   *reactor.Loop
	tell   func(Observation) // nil when nobody wants to know
	seen   Observation
	timer  reactor.Timer
	urgent bool // the timer was moved to the present
}

func (o *observer) init(l *reactor.Loop, tell func(Observation)) {
	o.loop, o.tell = l, tell
	o.timer.Func = o.report
}

// answered notes a call that was answered.
func (o *observer) answered(took time.Duration) {
	if o.tell == nil {
		return
	}
	o.seen.OK++
	o.seen.Latency += took
	o.seen.Streak = 0
	o.later()
}

// failed notes a call that was not.
func (o *observer) failed(f Failure) {
	if o.tell == nil {
		return
	}
	o.seen.Failures[f]++
	if f == Busy || f == Denied {
		o.later()
		return
	}
	o.seen.Streak++
	if !o.urgent {
		o.urgent = true
		o.loop.Set(&o.timer, o.loop.Now())
	}
}

func (o *observer) later() {
	if !o.timer.Armed() {
		o.loop.Set(&o.timer, o.loop.Now().Add(observeEvery))
	}
}

// report tells what was seen.
func (o *observer) report() {
	o.loop.Stop(&o.timer)
	o.urgent = false
	if seen := o.seen; seen != (Observation{}) {
		o.seen = Observation{}
		o.tell(seen)
	}
}

// end tells what was seen before, and nothing more.
func (o *observer) end() {
	if o.tell != nil {
		o.report()
		o.tell = nil
	}
}
