//go:build linux

package scenario

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"cacherouter/loadtest/pace"
	"cacherouter/loadtest/toll"
)

// The kinds of requests that come to servers. The routers' bound counts all but what they ask for the
// sake of copies.
const (
	reads = iota
	writes
	fetches // reads that come home because a copy was not there, however full it is
	errands // for the sake of copies
)

// kindOf tells what a router has sent. With a fetch it asks how long the item has to live, right before.
func kindOf(before, line []byte) int {
	switch verb, rest, _ := bytes.Cut(line, []byte{' '}); string(verb) {
	case "set":
		return writes
	case "get":
		key, asks := bytes.CutPrefix(before, []byte("mg "))
		if key, _, _ = bytes.Cut(key, []byte{' '}); asks && string(rest) == string(key)+"\r\n" {
			return fetches
		}
		return reads
	}
	return errands
}

// charged is what the bound counts.
func charged(c toll.Counts) int { return c[reads] + c[writes] + c[fetches] }

// homely is what of it comes home however full that is.
func homely(c toll.Counts) int { return c[writes] + c[fetches] }

// strain is what was seen while one server was slow.
type strain struct {
	guard   guard
	victim  int
	before  float64     // the share of all requests that came to the victim while it was well
	seen    []toll.Seen // by the gates
	pure    []toll.Seen // by them while nothing was written
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
	return bound * slowServers / x.all(), x.here(homely) * slowServers / x.all()
}

// mostLetIn is the most reads at a time that the slow server had because there was room: while
// nothing was written, as reads of what is being written come home as well. mayLetIn is the bound at the
// moment when most was in flight at all servers.
func (x *strain) mostLetIn() int {
	return x.pure[x.victim].Max(func(s toll.State) int { return s.Here[reads] })
}

func (x *strain) mayLetIn() int {
	return x.guard.bound(x.pure[x.victim].Max(func(s toll.State) int { return charged(s.All) }))
}

func (x *strain) String() string {
	most := x.seen[x.victim].Max(func(s toll.State) int { return charged(s.Here) })
	text := fmt.Sprintf("p50 %v, p99 %v, %d started late, %d of %d failed, hits %.4f, %d stale",
		at(x.load.Latency, 50), at(x.load.Latency, 99), x.load.Late, x.failed, x.done+x.failed, x.hits, x.stale)
	if x.stale > 0 {
		text += fmt.Sprintf(" by up to %v", x.oldest.Round(100*time.Millisecond))
	}
	return text + fmt.Sprintf("; %.1f of %.1f in flight at the slow server: %.2f of the mean, at most %d; %.0f %% of the requests before, %.0f %% now",
		x.here(charged), x.all(), x.peak(), most, 100*x.before, 100*shareOf(x.seen, x.victim))
}

// bounds says how the bound was kept.
func (x *strain) bounds() string {
	bound, home := x.allowed()
	copies := x.here(func(c toll.Counts) int { return c[errands] })
	return fmt.Sprintf("%.2f of the mean allowed and %.2f that may not leave home; at most %d reads let in of %d; the routers tell of %.1f in flight, %d spilled; %.1f more for the sake of copies",
		bound, home, x.mostLetIn(), x.mayLetIn(), x.told, x.spilled, copies)
}

// shareOf is the share of all requests that came to one server.
func shareOf(seen []toll.Seen, server int) float64 {
	all := 0
	for _, s := range seen {
		all += s.Came.Sum()
	}
	return float64(seen[server].Came.Sum()) / float64(max(all, 1))
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
