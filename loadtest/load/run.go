//go:build linux

package load

import (
	"sync/atomic"
	"time"

	"cacherouter/loadtest/origin"
	"cacherouter/loadtest/pace"
)

// run is what the drivers of one run share.
type run struct {
	plan     Plan
	begin    time.Time
	stop     atomic.Bool
	stopped  atomic.Int64   // when that was set, in nanoseconds of the run; 0 if it was not
	schedule *schedule      // nil in a closed loop
	origin   *origin.Origin // may be nil
	series   *series
}

// clock is the time of the run in nanoseconds.
func (r *run) clock() int64 { return int64(time.Since(r.begin)) }

// second is a time of the run in seconds of the wall clock.
func (r *run) second(now int64) uint32 {
	return uint32((r.begin.UnixNano() + now) / int64(time.Second))
}

func (r *run) halt() {
	r.stopped.CompareAndSwap(0, r.clock())
	r.stop.Store(true)
}

// schedule is that of an open loop, which ends.
type schedule struct {
	pace     *pace.Schedule
	requests int           // 0 is no bound
	until    time.Duration // 0 is no bound
}

// take returns when the next request is due, in nanoseconds of the run, and false if there are no more. It
// may be called concurrently.
func (s *schedule) take() (due int64, ok bool) {
	n, after := s.pace.Take()
	return int64(after), (s.requests == 0 || n < s.requests) && (s.until == 0 || after < s.until)
}

// judge says how well an open loop kept its rate that has counted t.
func (r *run) judge(t *tally) *Open {
	requests := t.started
	sending := r.stopped.Load()
	if sending == 0 {
		sending = t.lastSent
	}
	// The last request is due a period before the end of its own time.
	period := time.Duration(float64(time.Second) / r.plan.Rate)
	o := &Open{Asked: r.plan.Rate, Delay: summarize(t.delay)}
	o.Sent = float64(requests) / max(time.Duration(sending), period*time.Duration(requests)).Seconds()
	o.Short = max(0, 1-o.Sent/o.Asked)
	return o
}
