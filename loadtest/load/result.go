//go:build linux

package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts says what became of every request. Gets+Sets is what was sent; each of them is exactly
// one of Hits, Misses, Stored, Errors, Wrong or Lost.
type Counts struct {
	Gets   uint64 `json:"gets"`
	Sets   uint64 `json:"sets"`
	Hits   uint64 `json:"hits"`
	Misses uint64 `json:"misses"`
	Stored uint64 `json:"stored"`
	Errors uint64 `json:"errors"` // answered with an error line
	Wrong  uint64 `json:"wrong"`  // answered with something else than what was asked for
	Lost   uint64 `json:"lost"`   // never answered
}

// Requests is how many requests were sent.
func (c Counts) Requests() uint64 { return c.Gets + c.Sets }

// Answered is how many requests got any answer.
func (c Counts) Answered() uint64 { return c.Requests() - c.Lost }

func (c *Counts) add(o Counts) {
	c.Gets += o.Gets
	c.Sets += o.Sets
	c.Hits += o.Hits
	c.Misses += o.Misses
	c.Stored += o.Stored
	c.Errors += o.Errors
	c.Wrong += o.Wrong
	c.Lost += o.Lost
}

// Latency is the time from the write of a request's batch to the read of its reply, in
// microseconds.
type Latency struct {
	Mean float64 `json:"mean_us"`
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p99_9_us"`
	Max  float64 `json:"max_us"`
}

func summarize(h *hdrhistogram.Histogram) Latency {
	us := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	if h.TotalCount() == 0 {
		return Latency{}
	}
	return Latency{
		Mean: h.Mean() / 1e3, P50: us(50), P90: us(90), P99: us(99), P999: us(99.9),
		Max: float64(h.Max()) / 1e3,
	}
}

// Result is what one Run measured.
type Result struct {
	Counts
	Seconds    float64 `json:"seconds"`               // from the first request to the last reply
	Rate       float64 `json:"rate"`                  // answered requests per second
	Latency    Latency `json:"latency"`               // of answered requests
	FirstWrong string  `json:"first_wrong,omitempty"` // what the first wrong answer said
	FirstError string  `json:"first_error,omitempty"` // the first error line
	Broken     string  `json:"broken,omitempty"`      // why the first broken connection broke
}

func (t *tally) result(took time.Duration) Result {
	r := Result{
		Counts: t.Counts, Seconds: took.Seconds(), Latency: summarize(t.latency),
		FirstWrong: t.firstWrong, FirstError: t.firstError,
	}
	if took > 0 {
		r.Rate = float64(r.Answered()) / took.Seconds()
	}
	if t.firstBroken != nil {
		r.Broken = t.firstBroken.Error()
	}
	return r
}

// Err says what went wrong during the run, nil when every request was answered as it should be.
// A miss is no error.
func (r Result) Err() error {
	var errs []error
	if r.Broken != "" {
		errs = append(errs, errors.New(r.Broken))
	}
	if r.Wrong > 0 {
		errs = append(errs, fmt.Errorf("%d wrong answers, the first: %s", r.Wrong, r.FirstWrong))
	}
	if r.Errors > 0 {
		errs = append(errs, fmt.Errorf("%d error answers, the first: %s", r.Errors, r.FirstError))
	}
	if r.Lost > 0 {
		errs = append(errs, fmt.Errorf("%d requests were never answered", r.Lost))
	}
	return errors.Join(errs...)
}
