package judge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/pace"
	"cacherouter/loadtest/traffic"
)

// Report is what was seen.
type Report struct {
	Config   Config
	Load     pace.Result
	Answered int // requests
	Failed   int
	Verdicts [ledger.NumVerdicts]int // of reads that were answered
	Hits     float64                 // share of the reads that were answered
	Outages  []Outage                // in the order of time
	Bad      []string                // the first values that are stale or wrong
	Late     time.Duration           // how late the load itself was at most, as the machine was busy
}

// Outage is reads that failed, or writes, with no second between them in which none did.
type Outage struct {
	Write  bool
	At     time.Duration // since the beginning, of the first
	Took   time.Duration // to the last
	Failed int
	Err    string // of the first
}

// quiet is how long nothing fails between two outages.
const quiet = time.Second

func (c Config) report(load pace.Result, a *traffic.Account, begin time.Time) *Report {
	r := &Report{Config: c, Load: load, Bad: a.Bad(), Late: time.Duration(load.Delay.Max())}
	r.Answered, r.Failed = a.Done()
	for v := range ledger.NumVerdicts {
		r.Verdicts[v] = a.Count(v)
	}
	r.Hits = a.HitRatio(begin, begin.Add(load.Took+time.Second))
	r.Outages = append(outages(a.Failures(false, begin), begin), outages(a.Failures(true, begin), begin)...)
	slices.SortStableFunc(r.Outages, func(a, b Outage) int { return cmp.Compare(a.At, b.At) })
	return r
}

// outages groups failures of one kind that are in the order of time.
func outages(failures []traffic.Failure, begin time.Time) (all []Outage) {
	for _, f := range failures {
		at, last := f.At.Sub(begin), len(all)-1
		if last < 0 || at-(all[last].At+all[last].Took) > quiet {
			all = append(all, Outage{Write: f.Write, At: at, Err: reason(f.Err)})
			last++
		}
		all[last].Took = at - all[last].At
		all[last].Failed++
	}
	return all
}

// reason is an error without the address, which differs.
func reason(err error) string {
	if refusal := caller.Refusal(""); errors.As(err, &refusal) {
		return string(refusal)
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+len(": "):]
	}
	return text
}

// Longest is how long reads failed at most, or writes; 0 if none did.
func (r *Report) Longest(write bool) (longest time.Duration) {
	for _, o := range r.Outages {
		if o.Write == write {
			longest = max(longest, o.Took)
		}
	}
	return longest
}

// check is one goal.
type check struct {
	what, figure, goal string
	pass               bool
}

// checks hold the figures against their goals. An outage may be longer by as much as the load itself
// was late: a machine that has no time for the load has none for routers either.
func (r *Report) checks() []check {
	bad := r.Verdicts[ledger.Stale] + r.Verdicts[ledger.Wrong]
	reads, writes, limit := r.Longest(false), r.Longest(true), r.Config.Outage+r.Late
	return []check{
		{"requests were answered", fmt.Sprint(r.Answered), "> 0", r.Answered > 0},
		{"values that are stale or wrong", fmt.Sprint(bad), "0", bad == 0},
		{"reads failed at most for", brief(reads), "<= " + brief(limit), reads <= limit},
		{"writes failed at most for", brief(writes), "<= " + brief(limit), writes <= limit},
	}
}

// Pass reports whether all goals were met.
func (r *Report) Pass() bool {
	return !slices.ContainsFunc(r.checks(), func(c check) bool { return !c.pass })
}

func brief(d time.Duration) string { return d.Round(time.Millisecond).String() }

// WriteText writes a table, what failed, and a line for each goal.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(w, "      %s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	row("load", "%d requests in %s, %.0f a second, to %s", r.Load.Started, brief(r.Load.Took), r.Config.Rate, strings.Join(r.Config.Targets, ", "))
	row("its own lateness", "p99 %v, at most %v", time.Duration(r.Load.Delay.ValueAtQuantile(99)).Round(10*time.Microsecond), brief(r.Late))
	row("latency", "p50 %v, p99 %v, p99.9 %v", r.latency(50), r.latency(99), r.latency(99.9))
	row("reads", "%.2f %% hits; %s", 100*r.Hits, r.verdicts())
	for _, o := range r.Outages {
		row(fmt.Sprintf("failed at %.3f s", o.At.Seconds()), "%d %s within %s: %s", o.Failed, kind(o.Write), brief(o.Took), o.Err)
	}
	for _, bad := range r.Bad {
		row("", "%s", bad)
	}
	for _, c := range r.checks() {
		fmt.Fprintf(w, "%s  %s\t%s\tgoal %s\n", verdict(c.pass), c.what, c.figure, c.goal)
	}
	return w.Flush()
}

func kind(write bool) string {
	if write {
		return "writes"
	}
	return "reads"
}

func (r *Report) latency(percent float64) time.Duration {
	return time.Duration(r.Load.Latency.ValueAtQuantile(percent)).Round(10 * time.Microsecond)
}

func (r *Report) verdicts() string {
	var all []string
	for v, n := range r.Verdicts {
		all = append(all, fmt.Sprintf("%d %s", n, ledger.Verdict(v)))
	}
	return strings.Join(all, ", ")
}

func verdict(pass bool) string {
	if pass {
		return "PASS"
	}
	return "FAIL"
}
