//go:build linux

package main

import (
	"fmt"
	"io"
	"os"

	"cacherouter/loadtest/lab"
)

// labCommand is the flags of "lab".
type labCommand struct {
	List labListCommand `cmd:"" help:"List the experiments."`
	Run  labRunCommand  `cmd:"" default:"withargs" help:"Run one experiment, or all."`
}

type labListCommand struct{}

// Run is called by kong.
func (*labListCommand) Run() error {
	for _, e := range lab.Experiments() {
		fmt.Printf("%-16s %-7s %s\n", e.Name, e.Facts, e.About)
	}
	return nil
}

type labRunCommand struct {
	Name string `arg:"" help:"Name of an experiment, or all."`
	SVG  string `name:"svg" placeholder:"DIR" help:"Also draw each experiment into a file in this folder."`
}

// Run is called by kong.
func (c *labRunCommand) Run() error { return c.run(os.Stdout) }

func (c *labRunCommand) run(out io.Writer) error {
	if c.SVG != "" {
		if err := os.MkdirAll(c.SVG, 0o777); err != nil {
			return fmt.Errorf("cannot draw: %w", err)
		}
	}
	ran, differ := 0, 0
	for _, e := range lab.Experiments() {
		if c.Name != "all" && c.Name != e.Name {
			continue
		}
		_, n, err := e.Run(out, c.SVG)
		if err != nil {
			return err
		}
		ran++
		differ += n
	}
	switch {
	case ran == 0:
		return fmt.Errorf("cannot run %q: lab list has the names", c.Name)
	case differ > 0:
		return fmt.Errorf("%d figures differ from what they should be", differ)
	}
	_, err := fmt.Fprintf(out, "%d experiments, nothing differs\n", ran)
	return err
}
