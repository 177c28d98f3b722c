//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"cacherouter/loadtest/chaos"
)

// chaosCommand is the flags of "chaos".
type chaosCommand struct {
	Faults  []chaos.Fault `arg:"" help:"What happens, in this order: kill=SERVICE, pause=SERVICE, cut=SERVICE, cut=SERVICE@NETWORK."`
	Socket  string        `default:"/var/run/docker.sock" help:"The Docker engine's socket." placeholder:"PATH"`
	Project string        `help:"The Compose project; by default that of the container which this is run in." placeholder:"NAME"`
	First   time.Duration `default:"10s" help:"Time before the first fault: routers decide nothing at first."`
	Hold    time.Duration `default:"5s" help:"How long each fault lasts."`
	Rest    time.Duration `default:"5s" help:"Time after each fault."`
}

// Run is called by kong.
func (c *chaosCommand) Run(ctx context.Context) error {
	return chaos.Run(ctx, chaos.Config{Socket: c.Socket, Project: c.Project, Faults: c.Faults, First: c.First, Hold: c.Hold, Rest: c.Rest,
		Note: func(text string) { fmt.Fprintln(os.Stdout, text) }})
}
