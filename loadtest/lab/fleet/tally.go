package fleet

import "time"

// Outcome is what a run saw. Shares are of all gets but for those said.
type Outcome struct {
	Gets     int
	Spilled  float64 // sent to another server than the home
	CopyHits float64 // of those, answered there
	Hits     float64 // answered to the client with a value, of those answered
	Failed   float64 // not answered in time
	Stale    int     // hits with a value that a completed write had replaced
	Origin   float64 // requests to the origin for each get
	P50, P99 time.Duration
	// Fullest is the fullest server's calls in flight by the mean of all: on average over
	// time, and its 99th percentile.
	Fullest, Fullest99 float64
	InFlight           float64 // calls in flight per server
}

// Granularity of latencies.
const (
	grain  = 50 * time.Microsecond
	grains = int(2*timeout/grain) + 1
)

// tally is an Outcome in the making.
type tally struct {
	from time.Duration // when counting begins

	gets, spills, copyHits, hits, misses, failures, stale int

	latency [grains]int
	looks   int
	ratio   [4096]int // in hundredths
	sum     int       // of all ratios
	total   int       // of all calls in flight
}

// counts reports whether a get began after the warm-up.
func (t *tally) counts(c *call) bool { return c.began >= t.from }

func (t *tally) look(most, total, servers int) {
	if total == 0 {
		return
	}
	ratio := most * servers * 100 / total
	t.ratio[ratio]++
	t.looks++
	t.sum += ratio
	t.total += total
}

func (t *tally) took(took time.Duration) {
	t.gets++
	t.latency[min(int(took/grain), grains-1)]++
}

func (t *tally) hit(c *call, version uint32, now time.Duration) {
	if !t.counts(c) {
		return
	}
	t.took(now - c.began)
	t.hits++
	if version < c.need {
		t.stale++
	}
}

func (t *tally) miss(c *call, now time.Duration) {
	if t.counts(c) {
		t.took(now - c.began)
		t.misses++
	}
}

func (t *tally) failed(c *call) {
	if t.counts(c) {
		t.took(timeout)
		t.failures++
	}
}

func (t *tally) spilled(c *call, hit bool) {
	if !t.counts(c) || c.rank == 0 {
		return
	}
	t.spills++
	if hit {
		t.copyHits++
	}
}

// percentile returns the first index up to which there is a share of all that was counted.
func percentile(counts []int, all int, share float64) int {
	seen := 0
	for i, n := range counts {
		if seen += n; float64(seen) >= share*float64(all) {
			return i
		}
	}
	return len(counts) - 1
}

func (t *tally) outcome(servers int) Outcome {
	part := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	at := func(share float64) time.Duration {
		return time.Duration(percentile(t.latency[:], t.gets, share)) * grain
	}
	return Outcome{
		Gets: t.gets, Spilled: part(t.spills, t.gets), CopyHits: part(t.copyHits, t.spills),
		Hits: part(t.hits, t.hits+t.misses), Failed: part(t.failures, t.gets), Stale: t.stale, Origin: part(t.misses, t.gets),
		P50: at(.5), P99: at(.99),
		Fullest: part(t.sum, t.looks) / 100, Fullest99: float64(percentile(t.ratio[:], t.looks, .99)) / 100,
		InFlight: part(t.total, t.looks) / float64(servers),
	}
}
