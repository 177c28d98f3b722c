//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"cacherouter/loadtest/peers"
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
	Pin        string        `default:"split" enum:"split,one,none" help:"split keeps the proxies on processor 0 and all else on processor 1, one keeps everything on processor 0."`
	JSON       bool          `name:"json" help:"Print JSON instead of a table."`
	Quiet      bool          `short:"q" help:"Say nothing while running."`
}

// Run is called by kong. It prints what was measured also when it was interrupted.
func (c *peersCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *peersCommand) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "loadtest-build-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for the binary: %w", err)
	}
	defer os.RemoveAll(dir)
	if c.Ours == "" {
		if c.Ours, err = build(ctx, dir); err != nil {
			return err
		}
	}
	reserveThreads(1)
	r, err := c.measure(ctx)
	if r == nil {
		return err
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	if c.JSON {
		return errors.Join(r.WriteJSON(out), err)
	}
	return errors.Join(r.WriteText(out), err)
}

// build makes the router as it is shipped, without the race detector.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "cacherouter")
	text, err := exec.CommandContext(ctx, "go", "build", "-o", path, "cacherouter/cmd/cacherouter").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the router: %w\n%s", err, text)
	}
	return path, nil
}

func (c *peersCommand) config() peers.Config {
	config := peers.Config{
		Ours: c.Ours, Against: c.Against, RouterArgs: c.RouterArgs,
		Pairs: c.Pairs, Duration: c.Duration, Warmup: c.Warmup, Layout: peers.Layout(c.Pin),
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

func (c *peersCommand) measure(ctx context.Context) (*peers.Report, error) {
	r, err := peers.Compare(ctx, c.config())
	if err != nil || !c.wants("idle") {
		return r, err
	}
	r.Idle, err = peers.MeasureIdle(ctx, c.config(), peers.IdleClients)
	return r, err
}
