//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"cacherouter/loadtest/matrix"
	"cacherouter/loadtest/process"
)

// matrixCommand is the flags of "matrix".
type matrixCommand struct {
	Router   string        `help:"Binary of the router; empty builds ./cmd/cacherouter." placeholder:"PATH"`
	MCProxy  string        `name:"mcproxy" help:"Binary of a memcached built with --enable-proxy, to compare with too." placeholder:"PATH"`
	Only     []string      `help:"Only these loads, and only these contenders. Repeatable." placeholder:"NAME"`
	Rounds   int           `default:"12" help:"Runs of each contender for each load."`
	Duration time.Duration `default:"400ms" short:"d" help:"Length of one measured run."`
	Warmup   time.Duration `default:"100ms" help:"Length of the unmeasured run before it."`
	Pin      string        `default:"one" enum:"one,split,none" help:"Processors: one keeps everything on processor 0, split the proxies on 0 and all else on 1, none lets the kernel choose."`
	Into     string        `help:"Also write the table and charts into this folder." placeholder:"DIR"`
	JSON     bool          `name:"json" help:"Print JSON instead of tables."`
	Quiet    bool          `short:"q" help:"Say nothing while running."`
}

// Run is called by kong. It prints what was measured also when it was interrupted.
func (c *matrixCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *matrixCommand) run(ctx context.Context, out io.Writer) error {
	for _, name := range c.Only {
		if names := matrix.Names(); !slices.Contains(names, name) {
			return fmt.Errorf("there is no load and no contender %q: %v", name, names)
		}
	}
	remove, err := provide(ctx, &c.Router)
	if err != nil {
		return err
	}
	defer remove()
	reserveThreads(1)
	config := matrix.Config{
		Router: c.Router, MCProxy: c.MCProxy, Only: c.Only, Rounds: c.Rounds, Duration: c.Duration, Warmup: c.Warmup,
		Layout: process.Layout(c.Pin),
	}
	if !c.Quiet {
		config.Progress = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	report, err := matrix.Measure(ctx, config)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	return errors.Join(c.print(out, report), err)
}

func (c *matrixCommand) print(out io.Writer, r *matrix.Report) error {
	if r == nil {
		return nil
	}
	if c.Into != "" {
		if err := r.Draw(c.Into); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(out, r)
	}
	return r.WriteText(out)
}
