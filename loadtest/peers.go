//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"cacherouter/loadtest/peers"
	"cacherouter/loadtest/process"
)

// peersCommand is the flags of "peers".
type peersCommand struct {
	Ours       string        `help:"Binary of the router, or nutcracker; empty builds ./cmd/cacherouter." placeholder:"PATH"`
	Against    string        `default:"nutcracker" help:"What to compare with: nutcracker, or another binary of the router."`
	RouterArgs []string      `sep:"none" help:"Further argument for the router under test, as in --router-args=--distribution=ketama. Repeatable." placeholder:"ARG"`
	Pairs      int           `default:"20" help:"Runs of each contender for each load."`
	Duration   time.Duration `default:"500ms" short:"d" help:"Length of one measured run."`
	Warmup     time.Duration `default:"200ms" help:"Length of the unmeasured run before it."`
	Only       []string      `enum:"single,pipelined,alone,idle" help:"Only these: single, pipelined, alone, idle. Repeatable." placeholder:"LOAD"`
	Pin        []string      `default:"one,split" enum:"one,split,none" help:"Processors, one comparison for each: one keeps everything on processor 0, split the proxies on 0 and all else on 1, none lets the kernel choose."`
	JSON       bool          `name:"json" help:"Print JSON instead of a table."`
	Quiet      bool          `short:"q" help:"Say nothing while running."`
}

// Run is called by kong. It prints what was measured also when it was interrupted.
func (c *peersCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *peersCommand) run(ctx context.Context, out io.Writer) error {
	remove, err := provide(ctx, &c.Ours)
	if err != nil {
		return err
	}
	defer remove()
	reserveThreads(1)
	reports, err := c.measure(ctx)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	return errors.Join(c.print(out, reports), err)
}

func (c *peersCommand) print(out io.Writer, reports []*peers.Report) error {
	if len(reports) == 0 {
		return nil
	}
	if c.JSON {
		return printJSON(out, reports)
	}
	for _, r := range reports {
		if err := r.WriteText(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}

// provide builds the router if no binary is given, and returns what removes it.
func provide(ctx context.Context, binary *string) (remove func(), err error) {
	if *binary != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "loadtest-build-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for the binary: %w", err)
	}
	os.Chmod(dir, 0o755) // some run routers as users of their own
	remove = func() { os.RemoveAll(dir) }
	if *binary, err = build(ctx, dir); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// printJSON is what commands print with --json.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// build makes the router as it is shipped, without the race detector.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "cacherouter")
	text, err := exec.CommandContext(ctx, "go", "build", "-pgo=auto", "-o", path, "cacherouter/cmd/cacherouter").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the router: %w\n%s", err, text)
	}
	return path, nil
}

func (c *peersCommand) config(layout process.Layout) peers.Config {
	config := peers.Config{
		Ours: c.Ours, Against: c.Against, RouterArgs: c.RouterArgs,
		Pairs: c.Pairs, Duration: c.Duration, Warmup: c.Warmup, Layout: layout,
	}
	for _, s := range peers.Shapes() {
		if c.wants(s.Name) {
			config.Shapes = append(config.Shapes, s)
		}
	}
	if !c.Quiet {
		config.Progress = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	return config
}

func (c *peersCommand) wants(load string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, load)
}

// measure compares in each layout. Idle clients cost the same in all, so they come with the first.
func (c *peersCommand) measure(ctx context.Context) (reports []*peers.Report, err error) {
	for i, layout := range c.Pin {
		config := c.config(process.Layout(layout))
		if len(config.Shapes) == 0 && i > 0 {
			break
		}
		r, err := peers.Compare(ctx, config)
		if r != nil {
			reports = append(reports, r)
		}
		if err == nil && i == 0 && c.wants("idle") {
			r.Idle, err = peers.MeasureIdle(ctx, config, peers.IdleClients)
		}
		if err != nil {
			return reports, err
		}
	}
	return reports, nil
}
