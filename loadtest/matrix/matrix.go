//go:build linux

// Package matrix measures many loads on many contenders, in turns: memcached itself, proxies, and the router with
// each of its engines. What is measured, and how runs take turns, is package paired's.
package matrix

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
	"cacherouter/loadtest/workload"
)

// Config says what is measured. Router, Rounds and Duration must be set.
type Config struct {
	Router   string        // binary of the router
	MCProxy  string        // binary of a memcached with its proxy; empty leaves it out
	Only     []string      // names of loads and contenders; empty is all of the kind
	Rounds   int           // how often each contender runs each load
	Duration time.Duration // of one measured run
	Warmup   time.Duration // of the same load just before it, not measured
	Layout   process.Layout
	Progress func(string) // told what is going on; nil is silence
}

// Load is one form of load.
type Load struct {
	Name        string          `json:"name"`
	Connections int             `json:"connections"`
	Pipeline    int             `json:"pipeline"`
	Keys        int             `json:"keys"`
	ValueSize   int             `json:"value_size"`
	Multiget    int             `json:"multiget"` // keys of each get; 0 is 1
	Choice      workload.Choice `json:"choice"`
	// Share is the part of what Nutcracker can do at most that is asked for, in an open loop; 0 is a closed one.
	Share float64 `json:"share"`
}

// Loads are those that are measured.
func Loads() []Load {
	return []Load{
		{Name: "alone", Connections: 1, Pipeline: 1, Keys: 10_000, ValueSize: 100},
		{Name: "single", Connections: 50, Pipeline: 1, Keys: 10_000, ValueSize: 100},
		{Name: "crowd", Connections: 1000, Pipeline: 1, Keys: 10_000, ValueSize: 100},
		{Name: "pipelined", Connections: 50, Pipeline: 16, Keys: 10_000, ValueSize: 100},
		{Name: "multiget-10", Connections: 50, Pipeline: 1, Keys: 10_000, ValueSize: 100, Multiget: 10},
		{Name: "multiget-100", Connections: 50, Pipeline: 1, Keys: 10_000, ValueSize: 100, Multiget: 100},
		{Name: "4KiB", Connections: 50, Pipeline: 1, Keys: 2000, ValueSize: 4 << 10},
		{Name: "100KiB", Connections: 50, Pipeline: 1, Keys: 200, ValueSize: 100 << 10},
		{Name: "zipf", Connections: 50, Pipeline: 1, Keys: 10_000, ValueSize: 100, Choice: "zipf:1.2"},
		{Name: "steady", Connections: 50, Pipeline: 16, Keys: 10_000, ValueSize: 100, Share: 0.7},
	}
}

func (l Load) plan(target string, rate float64) load.Plan {
	p := load.DefaultPlan(target)
	p.Connections, p.Pipeline, p.Keys, p.ValueSize, p.Choice = l.Connections, l.Pipeline, l.Keys, workload.Fixed(l.ValueSize), l.Choice
	if l.Multiget > 0 {
		p.Ratio, p.MultigetKeys = workload.Ratio{Multigets: 1}, l.Multiget
	}
	p.Rate = l.Share * rate
	return p
}

// Outcome is what one load found. Its slices are by contender.
type Outcome struct {
	Load     Load              `json:"load"`
	Samples  [][]paired.Sample `json:"samples"`
	Medians  []paired.Sample   `json:"medians"`
	Resident []uint64          `json:"resident"` // bytes, after the load
	Calls    []float64         `json:"calls"`    // system calls per request; 0 is not known
	Failed   []string          `json:"failed,omitempty"`
}

// Report is what was measured.
type Report struct {
	Contenders []string       `json:"contenders"`
	Rounds     int            `json:"rounds"`
	Seconds    float64        `json:"seconds"`
	Layout     process.Layout `json:"layout"`
	Outcomes   []Outcome      `json:"outcomes"`
	Failed     []string       `json:"failed,omitempty"` // loads that could not be measured, and why
}

// Measure runs c. With an error the report, if there is one, holds what was measured so far. All processes that
// it started are gone when it returns.
func Measure(ctx context.Context, c Config) (*Report, error) {
	s, err := setUp(ctx, c)
	defer s.tearDown()
	if err != nil {
		return nil, err
	}
	r := &Report{Contenders: s.names(), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Layout: c.Layout}
	for _, l := range Loads() {
		if !c.wants(l.Name, loadNames()) {
			continue
		}
		o, err := s.run(ctx, l)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil { // the others may go well
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %v", l.Name, err))
			continue
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	return r, nil
}

// wants reports whether a name is asked for: all of a kind are when none of it is named.
func (c Config) wants(name string, kind []string) bool {
	named := slices.ContainsFunc(c.Only, func(o string) bool { return slices.Contains(kind, o) })
	return !named || slices.Contains(c.Only, name)
}

func (c Config) say(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

// Names are what Only may name.
func Names() []string { return append(loadNames(), contenderNames()...) }

func loadNames() (names []string) {
	for _, l := range Loads() {
		names = append(names, l.Name)
	}
	return names
}

// run lets the contenders take turns with one load.
func (s *stage) run(ctx context.Context, l Load) (Outcome, error) {
	o := Outcome{Load: l}
	rate := 0.0
	if l.Share > 0 {
		var err error
		if rate, err = s.most(ctx, l); err != nil {
			return o, err
		}
	}
	c := paired.Config{
		Rounds: s.config.Rounds, Duration: s.config.Duration, Warmup: s.config.Warmup,
		Progress: func(text string) { s.config.say("%s: %s", l.Name, text) },
	}
	var contenders []paired.Contender
	for _, x := range s.contenders {
		contenders = append(contenders, paired.Contender{Name: x.name, Plan: l.plan(x.server.Addr, rate), PID: x.server.ID()})
	}
	samples, err := paired.Run(ctx, c, contenders)
	o.Samples, o.Failed = samples.Of, samples.Failed
	for i, x := range s.contenders {
		o.Medians = append(o.Medians, paired.Median(o.Samples[i]))
		resident, _ := process.Resident(x.server.ID())
		o.Resident = append(o.Resident, resident)
	}
	if err == nil && l.Share == 0 && l.Connections <= 50 && l.ValueSize < 100<<10 {
		o.Calls = s.countCalls(ctx, l, &o)
	}
	return o, err
}

// most is the rate at which the slowest of proxies with a name in the field, or whoever is there, answers in a closed
// loop without pipelining.
func (s *stage) most(ctx context.Context, l Load) (float64, error) {
	x := s.contenders[max(0, slices.Index(s.names(), Nutcracker))]
	p := l.plan(x.server.Addr, 0)
	p.Pipeline = 1
	samples, err := paired.Run(ctx, paired.Config{Rounds: 5, Duration: s.config.Duration, Warmup: s.config.Warmup},
		[]paired.Contender{{Name: x.name, Plan: p, PID: x.server.ID()}})
	return paired.Median(samples.Of[0]).Rate, err
}

// makeDir makes a folder for what contenders need.
func makeDir() (string, error) {
	dir, err := os.MkdirTemp("", "loadtest-matrix-")
	if err != nil {
		err = fmt.Errorf("cannot make a directory for the servers: %w", err)
	}
	return dir, err
}
