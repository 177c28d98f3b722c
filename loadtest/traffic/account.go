package traffic

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/loadtest/ledger"
)

// Failure is a request that was not done.
type Failure struct {
	At     time.Time // when the client knew
	Target int       // its place among the plan's targets; with Switch, of the client's first one
	Write  bool      // a write or a delete, else a read
	Err    error
}

// window is the grain in which reads are counted over time.
const window = 100 * time.Millisecond

// tally counts the reads that ended within a window.
type tally struct{ reads, hits int }

// Account is what a load has seen. It may be used concurrently.
type Account struct {
	begin time.Time
	again atomic.Int64 // requests

	mu       sync.Mutex // guards all below
	verdicts [ledger.NumVerdicts]int
	writes   int
	failures []Failure
	tallies  []tally // by windows since begin
	shown    []string
	oldest   time.Duration
}

// shownBad is how many stale or wrong answers are described.
const shownBad = 5

func newAccount() *Account { return &Account{begin: time.Now()} }

func (a *Account) read(at time.Time, v ledger.Verdict, hit bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.verdicts[v]++
	i := int(at.Sub(a.begin) / window)
	for len(a.tallies) <= i {
		a.tallies = append(a.tallies, tally{})
	}
	a.tallies[i].reads++
	if hit {
		a.tallies[i].hits++
	}
}

// bad takes in what a stale or wrong answer was.
func (a *Account) bad(v ledger.Verdict, age time.Duration, explain string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.oldest = max(a.oldest, age)
	if len(a.shown) < shownBad {
		a.shown = append(a.shown, v.String()+" "+time.Now().Format("15:04:05.000")+" "+explain)
	}
}

func (a *Account) wrote() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes++
}

func (a *Account) failed(f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.At = time.Now() // in here, so that they are in order
	a.failures = append(a.failures, f)
}

// Count is how many reads had the verdict.
func (a *Account) Count(v ledger.Verdict) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.verdicts[v]
}

// Done is how many reads and writes were answered, and Failed how many were not.
func (a *Account) Done() (done, failed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done = a.writes
	for _, n := range a.verdicts {
		done += n
	}
	return done, len(a.failures)
}

// Again is how often a request was asked of another target because one failed.
func (a *Account) Again() int { return int(a.again.Load()) }

// Bad describes the first stale and wrong answers.
func (a *Account) Bad() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.shown)
}

// Oldest is how long the stalest value had been replaced when it was read.
func (a *Account) Oldest() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.oldest
}

// Failures are those since a moment, reads or writes, oldest first.
func (a *Account) Failures(write bool, since time.Time) (all []Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.failures {
		if f.Write == write && !f.At.Before(since) {
			all = append(all, f)
		}
	}
	return all
}

// HitRatio is the share of hits among the reads from one moment to another, to the tenth of a
// second. It is 1 when there were none.
func (a *Account) HitRatio(from, to time.Time) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hitRatioLocked(from, to)
}

func (a *Account) hitRatioLocked(from, to time.Time) float64 {
	first, last := int(from.Sub(a.begin)/window), int(to.Sub(a.begin)/window)
	var sum tally
	for _, t := range a.tallies[min(max(first, 0), len(a.tallies)):min(max(last, 0), len(a.tallies))] {
		sum.reads += t.reads
		sum.hits += t.hits
	}
	if sum.reads == 0 {
		return 1
	}
	return float64(sum.hits) / float64(sum.reads)
}

// WorstHitRatio is the lowest hit ratio of any span of the given length between two moments.
func (a *Account) WorstHitRatio(from, to time.Time, span time.Duration) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	worst := 1.0
	for at := from; !at.Add(span).After(to); at = at.Add(window) {
		worst = min(worst, a.hitRatioLocked(at, at.Add(span)))
	}
	return worst
}
