//go:build linux

package scenario

import (
	"fmt"
	"math"
	"time"

	"cacherouter/loadtest/pace"
	"cacherouter/loadtest/toll"
)

// The kinds of requests that come to servers. The routers' bound counts reads and writes, not what they
// ask on their own for the sake of copies. A read that comes home because a copy was not there comes
// with a question, how long the item has to live: so questions tell how many reads were not let in
// by the bound.
const (
	reads = iota
	writes
	questions
	errands
)

var kinds = map[string]int{"set": writes, "mg": questions, "add": errands, "delete": errands}

// charged is what the bound counts.
func charged(c toll.Counts) int { return c[reads] + c[writes] }

// forced is what of it comes however full the server is.
func forced(c toll.Counts) int { return c[writes] + c[questions] }

// letIn is the reads that came because there was room.
func letIn(c toll.Counts) int { return c[reads] - c[questions] }

// strain is what was seen while one server was slow.
type strain struct {
	guard   guard
	victim  int
	before  float64     // the share of all requests that came to the victim while it was well
	seen    []toll.Seen // by the gates
	load    pace.Result
	hits    float64
	done    int // requests
	failed  int
	stale   int
	oldest  time.Duration
	spilled int     // reads, as the routers count them
	told    float64 // what is in flight at the victim in the mean, as the routers tell; 0 if they do not count
}

// here is the mean of something that is in flight at the slow server, all of what is at all.
func (x *strain) here(of func(toll.Counts) int) float64 {
	return x.seen[x.victim].Mean(func(s toll.State) float64 { return float64(of(s.Here)) })
}

func (x *strain) all() float64 {
	return x.seen[x.victim].Mean(func(s toll.State) float64 { return float64(charged(s.All)) })
}

// peak is what the bound counts at the slow server, to the mean of all servers.
func (x *strain) peak() float64 { return x.here(charged) * slowServers / x.all() }

// allowed is what peak may be: the bound of what was in flight at each moment, and what may not leave
// home.
func (x *strain) allowed() (bound, home float64) {
	bound = x.seen[x.victim].Mean(func(s toll.State) float64 { return float64(x.guard.bound(charged(s.All))) })
	return bound * slowServers / x.all(), x.here(forced) * slowServers / x.all()
}

// mostLetIn is the most reads at a time that came because there was room, and mayLetIn the bound when
// most was in flight at all servers.
func (x *strain) mostLetIn() int {
	return x.seen[x.victim].Max(func(s toll.State) int { return letIn(s.Here) })
}

func (x *strain) mayLetIn() int {
	return x.guard.bound(x.seen[x.victim].Max(func(s toll.State) int { return charged(s.All) }))
}

func (x *strain) String() string {
	most := x.seen[x.victim].Max(func(s toll.State) int { return charged(s.Here) })
	text := fmt.Sprintf("p50 %v, p99 %v, hits %.4f, %d of %d failed, %d stale", x.quantile(50), x.quantile(99), x.hits, x.failed, x.done+x.failed, x.stale)
	if x.stale > 0 {
		text += fmt.Sprintf(" by up to %v", x.oldest.Round(100*time.Millisecond))
	}
	return text + fmt.Sprintf("; %.1f of %.1f in flight at the slow server: %.2f of the mean, at most %d; %.0f %% of the requests before, %.0f %% now",
		x.here(charged), x.all(), x.peak(), most, 100*x.before, 100*shareOf(x.seen, x.victim))
}

// bounds says how the bound was kept.
func (x *strain) bounds() string {
	bound, home := x.allowed()
	copies := x.here(func(c toll.Counts) int { return c[questions] + c[errands] })
	return fmt.Sprintf("%.2f of the mean allowed and %.2f that may not leave home; at most %d reads let in of %d; the routers tell of %.1f in flight, %d spilled; %.1f more for the sake of copies",
		bound, home, x.mostLetIn(), x.mayLetIn(), x.told, x.spilled, copies)
}

func (x *strain) quantile(q float64) time.Duration {
	return time.Duration(x.load.Latency.ValueAtQuantile(q)).Round(time.Millisecond)
}

// shareOf is the share of all requests that came to one server.
func shareOf(seen []toll.Seen, server int) float64 {
	all := 0
	for _, s := range seen {
		all += s.Requests()
	}
	return float64(seen[server].Requests()) / float64(max(all, 1))
}

// median is the server whose share is nearest to the mean.
func median(seen []toll.Seen) (server int) {
	off := func(i int) float64 { return math.Abs(shareOf(seen, i) - 1/float64(len(seen))) }
	for i := range seen {
		if off(i) < off(server) {
			server = i
		}
	}
	return server
}
