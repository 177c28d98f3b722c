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
)

// runCommand is the flags of "run".
type runCommand struct {
	Target   string        `default:"127.0.0.1:11311" help:"Address host:port or unix:/path of a memcached or a router."`
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
	JSON     bool          `name:"json" help:"Print JSON instead of a table."`
}

func (c *runCommand) plan() load.Plan {
	return load.Plan{
		Target: c.Target, Connections: c.Conns, Pipeline: c.Pipeline, Keys: c.Keys, ValueSize: c.Size,
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
	if c.Fill {
		if _, err := s.Fill(ctx); err != nil {
			return fmt.Errorf("cannot fill %s: %w", c.Target, err)
		}
	}
	r, err := s.Run(ctx, load.Extent{Duration: c.Duration, Requests: c.Requests})
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("interrupted; this is what was measured so far"))
	}
	return errors.Join(c.print(out, r), err)
}

func (c *runCommand) print(out io.Writer, r load.Result) error {
	if !c.JSON {
		return printResult(out, c.plan(), r)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Plan load.Plan `json:"plan"`
		load.Result
	}{c.plan(), r})
}

func printResult(out io.Writer, p load.Plan, r load.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "target\t%s, %d connections, pipeline %d, %d keys, %d-byte values, sets:gets %d:%d\n",
		p.Target, p.Connections, p.Pipeline, p.Keys, p.ValueSize, p.Sets, p.Gets)
	fmt.Fprintf(w, "sent\t%d requests in %.2f s: %d gets, %d sets\n", r.Requests(), r.Seconds, r.Gets, r.Sets)
	fmt.Fprintf(w, "answered\t%d hits, %d misses, %d stored\n", r.Hits, r.Misses, r.Stored)
	fmt.Fprintf(w, "failed\t%d errors, %d wrong, %d lost\n", r.Errors, r.Wrong, r.Lost)
	fmt.Fprintf(w, "rate\t%.0f requests/s\n", r.Rate)
	l := r.Latency
	fmt.Fprintf(w, "latency\tmean %.0f, p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f us\n",
		l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
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
