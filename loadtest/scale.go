//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cacherouter/loadtest/process"
	"cacherouter/loadtest/scale"
)

// scaleCommand is the flags of "scale".
type scaleCommand struct {
	Router   string        `help:"Binary of the router; empty builds ./cmd/cacherouter." placeholder:"PATH"`
	Only     []string      `help:"Only these dimensions. Repeatable." placeholder:"NAME"`
	Rounds   int           `default:"8" help:"Runs of each point."`
	Duration time.Duration `default:"400ms" short:"d" help:"Length of one measured run."`
	Warmup   time.Duration `default:"100ms" help:"Length of the unmeasured run before it."`
	Pin      string        `default:"one" enum:"one,split,none" help:"Processors: one keeps everything on processor 0, split the routers on 0 and all else on 1, none lets the kernel choose."`
	Into     string        `help:"Also write the table into this folder." placeholder:"DIR"`
	JSON     bool          `name:"json" help:"Print JSON instead of a table."`
	Quiet    bool          `short:"q" help:"Say nothing while running."`
}

// Run is called by kong. It prints what was measured also when it was interrupted.
func (c *scaleCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *scaleCommand) run(ctx context.Context, out io.Writer) error {
	for _, name := range c.Only {
		if names := scale.Names(); !slices.Contains(names, name) {
			return fmt.Errorf("there is no dimension %q: %q", name, names)
		}
	}
	remove, err := provide(ctx, &c.Router)
	if err != nil {
		return err
	}
	defer remove()
	reserveThreads(1)
	config := scale.Config{
		Router: c.Router, Only: c.Only, Rounds: c.Rounds, Duration: c.Duration, Warmup: c.Warmup, Layout: process.Layout(c.Pin),
	}
	if !c.Quiet {
		config.Progress = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	outcomes, err := scale.Measure(ctx, config)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	return errors.Join(c.print(out, outcomes), err)
}

func (c *scaleCommand) print(out io.Writer, all []scale.Outcome) error {
	if c.Into != "" {
		f, err := os.Create(filepath.Join(c.Into, "scale.txt"))
		if err != nil {
			return fmt.Errorf("cannot write the table: %w", err)
		}
		if err := errors.Join(scale.WriteText(f, all), f.Close()); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(out, all)
	}
	return scale.WriteText(out, all)
}
