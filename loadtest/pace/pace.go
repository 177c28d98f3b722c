// Package pace offers requests at a fixed rate, whether or not the target keeps up.
//
// Latency counts from the moment a request was to start. A target that stalls is thereby charged
// with all requests that should have been sent meanwhile, not with one per connection as in a
// closed loop (coordinated omission; the term is Gil Tene's).
package pace

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Plan says what is offered.
type Plan struct {
	Rate    float64       // requests per second, over 0
	Workers int           // requests outstanding at most, at least 1
	For     time.Duration // no request is to start later; 0 means until ctx is done
	// Count bounds the requests; 0 is no bound. If For and Count are both 0, ctx ends the run.
	Count int
}

// Result is what was measured. Requests that were due but not started when the run ended do not count.
type Result struct {
	Started int           // requests
	Took    time.Duration // from the first intended start to the last end
	// Latency is from the intended start of each request to its end, in nanoseconds.
	Latency *hdrhistogram.Histogram
	// Delay is from the intended start to the start, of requests that found a worker waiting for
	// them, in nanoseconds: how exactly the rate is kept.
	Delay *hdrhistogram.Histogram
	// Late counts requests that found no free worker at their time.
	Late int
}

// slowest is the longest time told from others, and digits how exactly.
const (
	slowest = int64(time.Minute)
	digits  = 3
)

// Run calls do for each request, from as many goroutines as there are workers, and returns when all
// calls have. Worker is 0 to Workers-1 and never used twice at a time; n counts requests from 0.
func Run(ctx context.Context, p Plan, do func(worker, n int)) (Result, error) {
	if p.Rate <= 0 || p.Workers < 1 {
		return Result{}, errors.New("a paced load needs a rate and workers")
	}
	r := &run{Plan: p, ctx: ctx, do: do, begin: time.Now(), due: NewSchedule(p.Rate)}
	results := make([]Result, p.Workers)
	var running sync.WaitGroup
	for i := range results {
		results[i] = Result{Latency: hdrhistogram.New(1, slowest, digits), Delay: hdrhistogram.New(1, slowest, digits)}
		running.Go(func() { r.work(i, &results[i]) })
	}
	running.Wait()
	all := results[0]
	for _, one := range results[1:] {
		all.add(one)
	}
	return all, nil
}

// run is one load: its workers take tickets, each due at its time.
type run struct {
	Plan
	ctx   context.Context
	do    func(worker, n int)
	begin time.Time
	due   *Schedule
}

func (r *run) work(worker int, result *Result) {
	for {
		n, after := r.due.Take()
		due := r.begin.Add(after)
		if r.Count > 0 && n >= r.Count || r.For > 0 && after >= r.For {
			return
		}
		waited := r.await(due)
		if r.ctx.Err() != nil {
			return
		}
		if waited {
			record(result.Delay, time.Since(due))
		} else {
			result.Late++
		}
		r.do(worker, n)
		record(result.Latency, time.Since(due))
		result.Started++
		result.Took = time.Since(r.begin)
	}
}

// await waits until a request is due, or ctx is done. It reports whether there was anything to wait for.
func (r *run) await(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
	return true
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 1), slowest)) // in range, so it cannot fail
}

func (r *Result) add(o Result) {
	r.Started += o.Started
	r.Late += o.Late
	r.Took = max(r.Took, o.Took)
	r.Latency.Merge(o.Latency)
	r.Delay.Merge(o.Delay)
}
