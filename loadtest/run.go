//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

// runCommand is the flags of "run".
type runCommand struct {
	Target   string        `default:"127.0.0.1:11311" help:"Address host:port or unix:/path of a memcached or a router."`
	Protocol load.Protocol `default:"text" enum:"text,meta,binary" help:"How requests are spelled: text, meta or binary."`
	Conns    int           `default:"50" short:"c" help:"Connections."`
	Pipeline int           `default:"1" short:"p" help:"Requests that a connection sends at once before it waits."`
	Keys     int           `default:"10000" help:"Number of keys."`
	Size     int           `default:"100" help:"Bytes in a value."`
	Ratio    ratio         `default:"1:10" help:"Sets to gets."`
	Duration time.Duration `default:"5s" short:"d" help:"How long; 0 is until --requests are sent."`
	Requests int           `default:"0" short:"n" help:"How many requests; 0 is until --duration has passed."`
	Threads  int           `default:"1" help:"Event loops of the generator."`
	Seed     uint64        `default:"1" help:"Seed of the request mix."`
	Fill     bool          `default:"true" negatable:"" help:"Set every key first, not counted."`
	PID      int           `help:"Also measure what the process with this id uses, such as the target." placeholder:"ID"`
	JSON     bool          `name:"json" help:"Print JSON instead of a table."`
}

func (c *runCommand) plan() load.Plan {
	return load.Plan{
		Target: c.Target, Protocol: c.Protocol, Connections: c.Conns, Pipeline: c.Pipeline, Keys: c.Keys, ValueSize: c.Size,
		Sets: c.Ratio.sets, Gets: c.Ratio.gets, Lanes: c.Threads, Seed: c.Seed,
	}
}

// Run is called by kong. It prints what was measured also when the load failed or was interrupted.
func (c *runCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *runCommand) run(ctx context.Context, out io.Writer) error {
	s, err := load.Dial(ctx, c.plan())
	if err != nil {
		return err
	}
	defer s.Close()
	reserveThreads(c.Threads)
	if c.Fill {
		if _, err := s.Fill(ctx); err != nil {
			return fmt.Errorf("cannot fill %s: %w", c.Target, err)
		}
	}
	o, err := c.offer(ctx, s)
	if ctx.Err() != nil {
		err = errors.Join(err, errInterrupted)
	}
	return errors.Join(c.print(out, o), err)
}

var errInterrupted = errors.New("interrupted; this is what was measured until then")

// outcome is what one run prints.
type outcome struct {
	Plan load.Plan `json:"plan"`
	load.Result
	Target *targetCost `json:"process,omitempty"`
}

// targetCost is what the watched process used.
type targetCost struct {
	PID      int     `json:"pid"`
	CPU      float64 `json:"cpu_us"`           // per request
	Switches float64 `json:"context_switches"` // per request
}

func (c *runCommand) offer(ctx context.Context, s *load.Session) (outcome, error) {
	o := outcome{Plan: c.plan()}
	var meter *process.Meter
	var err error
	if c.PID != 0 {
		if meter, err = process.StartMeter(c.PID); err != nil {
			return o, err
		}
	}
	o.Result, err = s.Run(ctx, load.Extent{Duration: c.Duration, Requests: c.Requests})
	if meter == nil {
		return o, err
	}
	spent, errMeter := meter.Spent()
	n := float64(max(o.Answered(), 1))
	o.Target = &targetCost{c.PID, spent.CPU.Seconds() * 1e6 / n, float64(spent.Switches) / n}
	return o, errors.Join(err, errMeter)
}

func (c *runCommand) print(out io.Writer, o outcome) error {
	if !c.JSON {
		return o.writeText(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(o)
}

func (o outcome) writeText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	p, l := o.Plan, o.Latency
	fmt.Fprintf(w, "target\t%s, %s protocol, %d connections, pipeline %d, %d keys, %d-byte values, sets:gets %d:%d\n",
		p.Target, p.Protocol, p.Connections, p.Pipeline, p.Keys, p.ValueSize, p.Sets, p.Gets)
	fmt.Fprintf(w, "sent\t%d requests in %.2f s: %d gets, %d sets\n", o.Requests(), o.Seconds, o.Gets, o.Sets)
	fmt.Fprintf(w, "answered\t%d hits, %d misses, %d stored\n", o.Hits, o.Misses, o.Stored)
	fmt.Fprintf(w, "failed\t%d errors, %d wrong, %d lost\n", o.Errors, o.Wrong, o.Lost)
	fmt.Fprintf(w, "rate\t%.0f requests/s\n", o.Rate)
	fmt.Fprintf(w, "latency\tmean %.0f, p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f us\n",
		l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
	if t := o.Target; t != nil {
		fmt.Fprintf(w, "process %d\t%.2f us of CPU, %.2f context switches per request\n", t.PID, t.CPU, t.Switches)
	}
	return w.Flush()
}

// ratio is written "sets:gets" on the command line.
type ratio struct{ sets, gets int }

// UnmarshalText reads "sets:gets".
func (r *ratio) UnmarshalText(text []byte) error {
	sets, gets, ok := strings.Cut(string(text), ":")
	s, errS := strconv.Atoi(sets)
	g, errG := strconv.Atoi(gets)
	if !ok || errS != nil || errG != nil || s < 0 || g < 0 || s+g == 0 {
		return fmt.Errorf("cannot read %q as sets:gets, as in 1:10", text)
	}
	r.sets, r.gets = s, g
	return nil
}
