//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cacherouter/loadtest/judge"
)

// judgeCommand is the flags of "judge".
type judgeCommand struct {
	Target  []string      `required:"" help:"Routers, host:port each; a client that gets no answer from one goes on with the next." placeholder:"ADDR,..."`
	Rate    float64       `default:"2000" help:"Requests a second, over all targets."`
	For     time.Duration `default:"30s" help:"How long."`
	Keys    int           `default:"20000" help:"How many keys, all as frequent."`
	Writes  int           `default:"100" help:"Writes, of 1,000 requests."`
	Timeout time.Duration `default:"5s" help:"How long a client waits."`
	Wait    time.Duration `default:"30s" help:"How long the targets may take until they answer and have taken every key at first."`
	Outage  time.Duration `default:"1200ms" help:"How long reads, or writes, may fail in a row: the router's timeout, and 200ms."`
}

// Run is called by kong. It fails if a goal was missed. What was seen before an interrupt is printed.
func (c *judgeCommand) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c *judgeCommand) run(ctx context.Context, out io.Writer) error {
	report, err := judge.Run(ctx, judge.Config{
		Targets: c.Target, Rate: c.Rate, For: c.For, Keys: c.Keys, Writes: c.Writes, Timeout: c.Timeout, Wait: c.Wait,
		Outage: c.Outage, Note: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if err != nil {
		return err
	}
	if err := report.WriteText(out); err != nil {
		return err
	}
	if !report.Pass() {
		return errors.New("goals were missed")
	}
	return nil
}
