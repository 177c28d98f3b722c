//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"cacherouter/loadtest/scenario"
)

// scenarioCommand is the flags of "scenario".
type scenarioCommand struct {
	Name    string        `arg:"" optional:"" help:"Which one, or all; without it they are listed."`
	Ours    string        `help:"Binary of the router; empty builds ./cmd/cacherouter." placeholder:"PATH"`
	Long    bool          `help:"The long forms: more repeats, more operations, longer faults."`
	Repeats int           `help:"How often, where something is repeated; 0 is the form's own number."`
	For     time.Duration `help:"How long soak and steady last; 0 is as long as their form does." placeholder:"TIME"`
	Logs    string        `help:"File for what the routers log." placeholder:"PATH"`
	Quiet   bool          `short:"q" help:"Say nothing while running."`
}

// Run is called by kong. It fails if a goal was missed.
func (c *scenarioCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *scenarioCommand) run(ctx context.Context, out io.Writer) error {
	if c.Name == "" {
		return list(out)
	}
	scenarios, err := scenario.Find(c.Name)
	if err != nil {
		return err
	}
	remove, err := provide(ctx, &c.Ours)
	if err != nil {
		return err
	}
	defer remove()
	reserveThreads(1)
	return c.runAll(ctx, out, scenarios)
}

func list(out io.Writer) error {
	for _, s := range scenario.All() {
		if _, err := fmt.Fprintf(out, "%-12s %s\n", s.Name, s.About); err != nil {
			return err
		}
	}
	return nil
}

// runAll goes on after a scenario that failed, but not after an interrupt.
func (c *scenarioCommand) runAll(ctx context.Context, out io.Writer, scenarios []scenario.Scenario) error {
	config := scenario.Config{Binary: c.Ours, Long: c.Long, Repeats: c.Repeats, For: c.For}
	if !c.Quiet {
		config.Note = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	if c.Logs != "" {
		logs, err := os.Create(c.Logs)
		if err != nil {
			return fmt.Errorf("cannot keep the logs: %w", err)
		}
		defer logs.Close()
		config.Logs = logs
	}
	var errs []error
	var missed []string
	for _, s := range scenarios {
		fmt.Fprintf(out, "%s: %s\n", s.Name, s.About)
		report, err := scenario.Run(ctx, s, config)
		if ctx.Err() != nil {
			err = errInterrupted
		}
		if !report.Pass() || err != nil {
			missed = append(missed, s.Name)
		}
		errs = append(errs, err, report.WriteText(out))
		fmt.Fprintln(out)
		if ctx.Err() != nil {
			break
		}
	}
	if len(missed) > 0 {
		errs = append(errs, errors.New("goals were missed: "+strings.Join(missed, ", ")))
	}
	return errors.Join(errs...)
}
