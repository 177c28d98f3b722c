//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"cacherouter/loadtest/echo"
	"cacherouter/loadtest/process"
	"cacherouter/loadtest/protocols"
)

// protocolsCommand is the flags of "protocols".
type protocolsCommand struct {
	Router   string        `help:"Binary of the router; empty builds ./cmd/cacherouter." placeholder:"PATH"`
	Pairs    int           `default:"20" help:"Runs of each contender for each load."`
	Duration time.Duration `default:"400ms" short:"d" help:"Length of one measured run."`
	Warmup   time.Duration `default:"100ms" help:"Length of the unmeasured run before it."`
	Only     []string      `enum:"protocols,tls" help:"Only this: protocols, or tls. Repeatable." placeholder:"WHAT"`
	Pin      string        `default:"one" enum:"one,split,none" help:"Processors: one keeps everything on processor 0, split the router and the echo server on 0 and all else on 1, none lets the kernel choose."`
	JSON     bool          `name:"json" help:"Print JSON instead of tables."`
	Quiet    bool          `short:"q" help:"Say nothing while running."`
}

// Run is called by kong. It prints what was measured also when it was interrupted.
func (c *protocolsCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *protocolsCommand) run(ctx context.Context, out io.Writer) error {
	remove, err := provide(ctx, &c.Router)
	if err != nil {
		return err
	}
	defer remove()
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot start an echo server: %w", err)
	}
	reserveThreads(1)
	report, err := protocols.Compare(ctx, c.config(own))
	if ctx.Err() != nil {
		err = errInterrupted
	}
	return errors.Join(c.print(out, report), err)
}

func (c *protocolsCommand) config(own string) protocols.Config {
	config := protocols.Config{
		Router: c.Router, Echo: []string{own, "echo"}, Rounds: c.Pairs, Duration: c.Duration, Warmup: c.Warmup,
		Layout: process.Layout(c.Pin), Only: c.Only,
	}
	if !c.Quiet {
		config.Progress = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	return config
}

func (c *protocolsCommand) print(out io.Writer, r *protocols.Report) error {
	switch {
	case r == nil:
		return nil
	case c.JSON:
		return printJSON(out, r)
	}
	return r.WriteText(out)
}

// echoCommand is the flags of "echo", which "protocols" starts.
type echoCommand struct {
	Cert string `required:"" help:"Certificate, PEM."`
	Key  string `required:"" help:"Its key, PEM."`
}

// Run is called by kong. It gives the server as many processors as a router with one loop has.
func (c *echoCommand) Run(ctx context.Context) error {
	runtime.GOMAXPROCS(2)
	return echo.Serve(ctx, echo.Config{
		Plan: protocols.EchoPlan(), CertFile: c.Cert, KeyFile: c.Key, Out: os.Stdout,
	})
}
