//go:build linux

// Package protocols compares what the protocols cost the router: meta and binary with text, and TLS
// with the least that a Go server does over TLS (package echo). What is measured, and how runs take
// turns, is package paired's.
package protocols

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
)

// Config describes a comparison. Router, Echo, Rounds and Duration must be set.
type Config struct {
	Router   string   // path of a cacherouter binary
	Echo     []string // program and arguments of an echo server; --cert FILE --key FILE is added
	Rounds   int      // how often each contender runs each load
	Duration time.Duration
	Warmup   time.Duration // of the same load just before each run, not measured
	Layout   process.Layout
	Only     []string     // names of comparisons to make; none means all
	Progress func(string) // told what is going on; nil is silence
}

// Names of the comparisons.
const (
	Spelling = "protocols" // text, meta and binary
	Security = "tls"
)

const serverCount = 4

func (c Config) validate() error {
	if c.Router == "" || len(c.Echo) == 0 {
		return errors.New("cannot compare: the router or the echo server is missing")
	}
	if c.Rounds < 1 || c.Duration <= 0 {
		return fmt.Errorf("cannot compare in %d rounds of %v", c.Rounds, c.Duration)
	}
	return nil
}

// EchoPlan is what an echo server is asked, but for the number of connections.
func EchoPlan() load.Plan { return load.DefaultPlan("an echo server") }

// comparison is a table that is to be filled.
type comparison struct {
	name       string
	pipeline   int
	contenders []paired.Contender
	questions  []question
}

// question is a figure made of the samples of one round, by contender.
type question struct {
	name   string
	of     func(round []paired.Sample) float64
	unit   string  // empty for a ratio
	target float64 // not to be exceeded; 0 is for information
}

// ratio divides what contender a costs by what the others cost together.
func ratio(a int, others ...int) func([]paired.Sample) float64 {
	return func(round []paired.Sample) float64 {
		sum := 0.0
		for _, b := range others {
			sum += round[b].CPU
		}
		return round[a].CPU / sum
	}
}

// excess is what contender a costs more than b, in microseconds.
func excess(a, b int) func([]paired.Sample) float64 {
	return func(round []paired.Sample) float64 { return round[a].CPU - round[b].CPU }
}

// Compare runs c. When ctx ends early, the report holds what was measured so far and the error is
// ctx's. All processes it started are gone when it returns.
func Compare(ctx context.Context, c Config) (*Report, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s, err := setUp(ctx, c)
	defer s.tearDown()
	if err != nil {
		return nil, err
	}
	r := &Report{Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Layout: c.Layout}
	for _, x := range s.comparisons() {
		samples, err := s.run(ctx, x)
		r.Tables = append(r.Tables, conclude(x, samples))
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (s *stage) run(ctx context.Context, x comparison) (paired.Samples, error) {
	p := paired.Config{Rounds: s.config.Rounds, Duration: s.config.Duration, Warmup: s.config.Warmup}
	if s.config.Progress != nil {
		p.Progress = func(text string) {
			s.config.Progress(fmt.Sprintf("%s, pipeline %d: %s", x.name, x.pipeline, text))
		}
	}
	return paired.Run(ctx, p, x.contenders)
}

// comparisons are those that are wanted, each without and with pipelining.
func (s *stage) comparisons() (all []comparison) {
	for _, prepare := range []func(pipeline int) comparison{s.spelling, s.security} {
		for _, pipeline := range []int{1, 16} {
			if x := prepare(pipeline); s.config.wants(x.name) {
				all = append(all, x)
			}
		}
	}
	return all
}

// spelling compares three loads of one process.
func (s *stage) spelling(pipeline int) comparison {
	x := comparison{name: Spelling, pipeline: pipeline, questions: []question{
		{"meta / text", ratio(1, 0), "", 1.15},
		{"binary / text", ratio(2, 0), "", 1.15},
	}}
	for _, protocol := range []load.Protocol{load.Text, load.Meta, load.Binary} {
		p := load.DefaultPlan(s.router.Plain)
		p.Pipeline, p.Protocol = pipeline, protocol
		x.contenders = append(x.contenders, paired.Contender{Name: string(protocol), Plan: p, PID: s.router.ID()})
	}
	return x
}

// security compares the router with the echo server. The router also asks a server for each request,
// which the echo server does not, so it is compared with an echo over TLS and a router in the clear
// together as well. All contenders get their load from the same kind of generator, a goroutine for
// each connection, because how requests arrive decides what they cost.
func (s *stage) security(pipeline int) comparison {
	x := comparison{name: Security, pipeline: pipeline, questions: []question{
		{"router, TLS / echo, TLS", ratio(0, 1), "", 1.30},
		{"router, TLS / (echo, TLS + router, plain)", ratio(0, 1, 2), "", 0},
		{"TLS adds to the router", excess(0, 2), " us", 0},
		{"TLS adds to the echo", excess(1, 3), " us", 0},
	}}
	add := func(name, target string, of *process.Dual, wrap wrapper) {
		p := load.DefaultPlan(target)
		p.Pipeline, p.Wrap = pipeline, wrap
		x.contenders = append(x.contenders, paired.Contender{Name: name, Plan: p, PID: of.ID()})
	}
	add("router, TLS", s.router.Secure, s.router, s.secure)
	add("echo, TLS", s.echo.Secure, s.echo, s.secure)
	add("router, plain", s.router.Plain, s.router, plain)
	add("echo, plain", s.echo.Plain, s.echo, plain)
	return x
}
