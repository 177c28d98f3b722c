//go:build linux

// Package report shows what a load has measured: as a table, as JSON, and as a page with plots that needs nothing
// but itself.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"cacherouter/loadtest/counters"
	"cacherouter/loadtest/load"
)

// Outcome is what one run has measured.
type Outcome struct {
	Mix  string    `json:"mix,omitempty"` // the published workload that the plan follows
	Plan load.Plan `json:"plan"`
	load.Result
	Generator *Process          `json:"generator,omitempty"` // the load test itself
	Process   *Process          `json:"process,omitempty"`   // nil if none was watched
	Servers   []counters.Server `json:"servers,omitempty"`   // by the servers' own counters
	Error     string            `json:"error,omitempty"`     // what went wrong, one thing a line
}

// Process is what a process used.
type Process struct {
	PID      int     `json:"pid"`
	CPU      float64 `json:"cpu_us"`           // per request
	Switches float64 `json:"context_switches"` // per request
}

// WriteJSON writes everything.
func (o Outcome) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(o)
}

// WriteText writes a table for a terminal.
func (o Outcome) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range o.rows() {
		fmt.Fprintf(w, "%s\t%s\n", r.name, r.text)
	}
	return w.Flush()
}

// row is a line of the table.
type row struct{ name, text string }

func (o Outcome) rows() (all []row) {
	add := func(name, format string, args ...any) { all = append(all, row{name, fmt.Sprintf(format, args...)}) }
	add("target", "%s", o.target())
	add("workload", "%s", o.workload())
	add("sent", "%d requests in %.2f s: %d gets, %d sets", o.Requests(), o.Seconds, o.Gets, o.Sets)
	add("answered", "%d hits, %d misses, %d stored", o.Hits, o.Misses, o.Stored)
	add("failed", "%d errors, %d wrong, %d unanswered", o.Errors, o.Wrong, o.Unanswered)
	if o.Plan.Versions {
		add("values", "%d stale; %d of writes that failed; %d of the misses lost what was stored", o.Stale, o.Late, o.Lost)
	}
	add("rate", "%.0f requests/s", o.Rate)
	if open := o.Open; open != nil {
		add("open loop", "%.0f requests/s asked for, %.0f sent; %d found no free connection when they were due", open.Asked, open.Sent, o.NotInTime)
	}
	add("latency", "%s", times(o.Latency))
	if o.Open != nil {
		add("own delay", "%s%s", times(o.Open.Delay), warning(o.Open.Delay))
	}
	if o.Plan.Origin != nil {
		add("origin", "asked %d times, %.0f/s, %d/s at most; %d values set", o.Fetches, float64(o.Fetches)/max(o.Seconds, 1e-9), o.worstFetches(), o.Fills)
	}
	if o.Connects > 0 {
		add("churn", "%d connections made, %.0f/s", o.Connects, float64(o.Connects)/max(o.Seconds, 1e-9))
	}
	if p := o.Generator; p != nil {
		add("generator", "%.2f us of CPU, %.2f context switches per request", p.CPU, p.Switches)
	}
	if p := o.Process; p != nil {
		add(fmt.Sprintf("process %d", p.PID), "%.2f us of CPU, %.2f context switches per request", p.CPU, p.Switches)
	}
	for _, s := range o.Servers {
		add("server "+s.Addr, "%d gets, %d sets, %d hits, %d evicted, %d items; %.2f of the mean", s.Gets, s.Sets, s.Hits, s.Evictions, s.Items, o.toMean(s))
	}
	return all
}

func (o Outcome) target() string {
	p := o.Plan
	who := string(p.Protocol) + " protocol"
	if p.Client == load.Gomemcache {
		who += " by gomemcache"
	}
	text := fmt.Sprintf("%s, %s, %d connections, pipeline %d", p.Target, who, p.Connections, p.Pipeline)
	if p.Churn > 0 {
		text += fmt.Sprintf(", each made anew after %d requests", p.Churn)
	}
	return text
}

func (o Outcome) workload() string {
	p := o.Plan
	text := fmt.Sprintf("%d keys, %s, values of %s bytes, sets:gets %v", p.Keys, orElse(string(p.Choice), "uniform"), p.ValueSize, p.Ratio)
	if p.Ratio.Multigets > 0 {
		text += fmt.Sprintf(" of %d keys", orElse(p.MultigetKeys, 10))
	}
	if p.KeySize != "" {
		text += fmt.Sprintf(", keys of %s bytes", p.KeySize)
	}
	if p.Lives != "" {
		text += fmt.Sprintf(", living %s", p.Lives)
	}
	if o.Mix != "" {
		text = o.Mix + ": " + text
	}
	return text
}

// orElse is v, or what stands for its zero value.
func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// warning says that latencies are as much the generator's as the target's.
func warning(delay load.Latency) string {
	const much = 1000 // us
	if delay.P99 <= much {
		return ""
	}
	return "; the generator was late itself: give it precedence (chrt -r 1), another machine or more --threads"
}

func times(l load.Latency) string {
	return fmt.Sprintf("mean %.0f, p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f us", l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
}

// worstFetches is how often the origin was asked in the worst second.
func (o Outcome) worstFetches() (most uint64) {
	for _, w := range o.Series {
		most = max(most, w.Fetches)
	}
	return most
}

// toMean is a server's load to the mean of all.
func (o Outcome) toMean(s counters.Server) float64 {
	sum := 0
	for _, s := range o.Servers {
		sum += s.Gets + s.Sets
	}
	return float64((s.Gets+s.Sets)*len(o.Servers)) / float64(max(sum, 1))
}
