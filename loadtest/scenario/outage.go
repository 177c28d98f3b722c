//go:build linux

package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// outage is what clients saw of a fault, over all repeats.
type outage struct {
	reads, writes span
}

// span is about the failures of reads, or of writes.
type span struct {
	failed int           // requests, over all repeats
	most   int           // at one router, in one repeat
	last   time.Duration // from the fault to the last failure, at most
	kinds  map[string]int
}

// add takes in the failures from one fault on.
func (o *outage) add(a *traffic.Account, fault time.Time) {
	o.reads.add(a.Failures(false, fault), fault)
	o.writes.add(a.Failures(true, fault), fault)
}

// unharmed judges what clients must not notice, from begin until now: that no request failed, and
// that hits were what they were before, but for one in twenty.
func (s *stage) unharmed(what string, a *traffic.Account, begin time.Time, hits float64) {
	var o outage
	o.add(a, begin)
	s.row(what+"failed reads", "%s", &o.reads)
	s.row(what+"failed writes", "%s", &o.writes)
	s.atMost(what+"failed requests", o.reads.failed+o.writes.failed, 0)
	s.ratioAtLeast(what+"worst second's hits, to before", a.WorstHitRatio(begin, time.Now(), time.Second)/hits, 0.95)
}

func (s *span) add(failures []traffic.Failure, fault time.Time) {
	at := map[int]int{}
	if s.kinds == nil {
		s.kinds = map[string]int{}
	}
	for _, f := range failures {
		s.failed++
		at[f.Target]++
		s.most = max(s.most, at[f.Target])
		s.last = max(s.last, f.At.Sub(fault))
		s.kinds[kind(f.Err)]++
	}
}

// kind is an error without what differs from one to the next.
func kind(err error) string {
	var refusal caller.Refusal
	if errors.As(err, &refusal) {
		return string(refusal)
	}
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+len(": "):]
}

func (s *span) String() string {
	if s.failed == 0 {
		return "none"
	}
	kinds := make([]string, 0, len(s.kinds))
	for k, n := range s.kinds {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%d, at most %d at a router, the last after %v (%s)", s.failed, s.most, s.last.Round(time.Millisecond), strings.Join(kinds, ", "))
}

// correct reports what values were seen, and holds those that must not be against 0.
func (s *stage) correct(a *traffic.Account) {
	done, failed := a.Done()
	s.row("requests", "%d answered, %d failed; reads: %d fresh, %d absent, %d lost, %d of failed writes", done, failed,
		a.Count(ledger.Fresh), a.Count(ledger.Absent), a.Count(ledger.Lost), a.Count(ledger.Late))
	for _, bad := range a.Bad() {
		s.row("bad", "%s", bad)
	}
	s.atMost("stale values", a.Count(ledger.Stale), 0)
	s.atMost("wrong values", a.Count(ledger.Wrong), 0)
}

// stopLoad ends the load, reports how well the rate was kept and returns the account.
func (s *stage) stopLoad(r *traffic.Running) *traffic.Account {
	p := r.Stop()
	s.row("load", "%.0f requests/s for %v, p50 %v, p99 %v, max %v; %d of %d started late; own delay p99 %v",
		float64(p.Started)/p.Took.Seconds(), p.Took.Round(time.Second), at(p.Latency, 50), at(p.Latency, 99), at(p.Latency, 100),
		p.Late, p.Started, at(p.Delay, 99))
	return r.Account()
}

// switching is when the routers carried out changes of placement, over all repeats.
type switching struct {
	after  []time.Duration // from the fault to each router's change
	spread time.Duration   // from the first router to the last, at most
}

// add takes in one change. It is an error if a router has not made it.
func (w *switching) add(when []time.Time, fault time.Time) error {
	for _, t := range when {
		if t.IsZero() {
			return errors.New("a router did not change its placement")
		}
		w.after = append(w.after, t.Sub(fault))
	}
	w.spread = max(w.spread, slices.MaxFunc(when, time.Time.Compare).Sub(slices.MinFunc(when, time.Time.Compare)))
	return nil
}

// quantile is the smallest time that at least the share q of all do not exceed.
func (w *switching) quantile(q float64) time.Duration {
	sorted := slices.SortedFunc(slices.Values(w.after), cmp.Compare[time.Duration])
	if len(sorted) == 0 {
		return 0
	}
	rank := int(q*float64(len(sorted)) + 0.9999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// awaitChange waits until all routers have placed the server, or placed it elsewhere.
func (s *stage) awaitChange(f *fleet.Fleet, server string, placed bool, since time.Time, limit time.Duration) error {
	what := "all routers move the keys of " + server
	if placed {
		what = "all routers move the keys back to " + server
	}
	return fleet.Await(s.ctx, what, limit, func() bool {
		return !slices.ContainsFunc(f.ChangedAt(server, placed, since), time.Time.IsZero)
	})
}

// at is a quantile, in per cent, of a histogram of nanoseconds.
func at(h *hdrhistogram.Histogram, quantile float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(quantile)).Round(10 * time.Microsecond)
}
