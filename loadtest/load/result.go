//go:build linux

package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts says what became of every request. A multiget counts as one get for each of its keys, as servers
// count. Gets+Sets is what was sent; each of them is exactly one of Hits, Late, Stale, Misses, Stored,
// Errors, Wrong or Unanswered.
type Counts struct {
	Gets       uint64 `json:"gets"`
	Sets       uint64 `json:"sets"`
	Hits       uint64 `json:"hits"`  // values that may be seen
	Late       uint64 `json:"late"`  // values of writes that failed, though later ones were acknowledged
	Stale      uint64 `json:"stale"` // values that were replaced before they were asked for
	Misses     uint64 `json:"misses"`
	Stored     uint64 `json:"stored"`
	Errors     uint64 `json:"errors"`     // answered with an error line
	Wrong      uint64 `json:"wrong"`      // answered with something else than what was asked for
	Unanswered uint64 `json:"unanswered"` // never answered

	Lost      uint64 `json:"lost"`        // of the misses, those of what was stored and should live still: a cache may forget
	NotInTime uint64 `json:"not_in_time"` // requests that found no free connection when they were due
	Fetches   uint64 `json:"fetches"`     // questions to the origin
	Fills     uint64 `json:"fills"`       // of the sets, those of what the origin said
	Connects  uint64 `json:"connects"`    // connections made during the run
}

// Requests is how many requests were sent.
func (c Counts) Requests() uint64 { return c.Gets + c.Sets }

// Answered is how many requests got any answer.
func (c Counts) Answered() uint64 { return c.Requests() - c.Unanswered }

// fields are pointers to all counts.
func (c *Counts) fields() [15]*uint64 {
	return [...]*uint64{&c.Gets, &c.Sets, &c.Hits, &c.Late, &c.Stale, &c.Misses, &c.Stored, &c.Errors, &c.Wrong, &c.Unanswered,
		&c.Lost, &c.NotInTime, &c.Fetches, &c.Fills, &c.Connects}
}

func (c *Counts) add(o Counts) {
	from := o.fields()
	for i, n := range c.fields() {
		*n += *from[i]
	}
}

// since is what was counted after before.
func (c Counts) since(before Counts) Counts {
	from := before.fields()
	for i, n := range c.fields() {
		*n -= *from[i]
	}
	return c
}

// Latency is how times are distributed, in microseconds.
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

// Point is one of a distribution: the share of requests, in per cent, that took no longer.
type Point struct {
	Share float64 `json:"per_cent"`
	Time  float64 `json:"us"`
}

// curve is points ever nearer to all requests, to the last one that tells of a request more.
func curve(h *hdrhistogram.Histogram) (all []Point) {
	rest := 100.0
	for h.TotalCount() > 0 {
		for _, part := range []float64{1, 0.8, 0.6, 0.4, 0.3, 0.2} {
			share := 100 - rest*part
			all = append(all, Point{share, float64(h.ValueAtQuantile(share)) / 1e3})
		}
		if rest /= 10; rest*float64(h.TotalCount()) < 100 {
			break
		}
	}
	return all
}

// Result is what one Run measured.
type Result struct {
	Counts
	Seconds float64 `json:"seconds"` // from the first request to the last reply
	Rate    float64 `json:"rate"`    // answered requests per second
	// Latency is of answered requests, those of several keys once: from the write of their batch to the read of their reply in a
	// closed loop, from when they were due in an open one.
	Latency Latency  `json:"latency"`
	Open    *Open    `json:"open_loop,omitempty"` // nil after a closed loop
	Curve   []Point  `json:"latency_curve"`
	Series  []Window `json:"series"`

	FirstWrong string `json:"first_wrong,omitempty"` // what the first wrong answer said
	FirstStale string `json:"first_stale,omitempty"` // about the first stale value
	FirstError string `json:"first_error,omitempty"` // the first error line
	Broken     string `json:"broken,omitempty"`      // why the first broken connection broke
}

// Open is how well an open loop kept its rate.
type Open struct {
	Asked float64 `json:"asked_rate"` // requests per second
	Sent  float64 `json:"sent_rate"`  // while it was sending
	Short float64 `json:"shortfall"`  // the share of what was due that was not sent, 0 to 1
	// Delay is from when a request was due to when it was written, of those that found a connection free: the
	// generator's own.
	Delay Latency `json:"own_delay"`
}

func (t *tally) result(took time.Duration) Result {
	r := Result{
		Counts: t.Counts, Seconds: took.Seconds(), Latency: summarize(t.latency), Curve: curve(t.latency),
		FirstWrong: t.firstWrong, FirstStale: t.firstStale, FirstError: t.firstError,
	}
	if took > 0 {
		r.Rate = float64(r.Answered()) / took.Seconds()
	}
	if t.firstBroken != nil {
		r.Broken = t.firstBroken.Error()
	}
	return r
}

// tolerated is how much of an open loop's rate may be missed without a word.
const tolerated = 0.01

// Err says what went wrong during the run, nil when every request was sent at its time and answered as it
// should be. A miss is no error.
func (r Result) Err() error {
	var errs []error
	if r.Broken != "" {
		errs = append(errs, errors.New(r.Broken))
	}
	counted := func(n uint64, what, first string) {
		if n > 0 {
			errs = append(errs, fmt.Errorf("%d %s, the first: %s", n, what, first))
		}
	}
	counted(r.Wrong, "wrong answers", r.FirstWrong)
	counted(r.Stale, "stale values", r.FirstStale)
	counted(r.Errors, "error answers", r.FirstError)
	if r.Unanswered > 0 {
		errs = append(errs, fmt.Errorf("%d requests were never answered", r.Unanswered))
	}
	if o := r.Open; o != nil && o.Short > tolerated {
		errs = append(errs, fmt.Errorf("the rate was not kept: of %.0f requests/s asked for %.0f were sent, %.1f %% too few", o.Asked, o.Sent, 100*o.Short))
	}
	return errors.Join(errs...)
}
