package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"cacherouter/admin"
)

type healthcheckCmd struct {
	Admin   string   `help:"Address of a router's admin server: host:port, or unix: and a path." default:"127.0.0.1:11312" placeholder:"ADDR"`
	Timeout duration `help:"How long the router may take to answer." default:"3s" placeholder:"3s"`
}

// Help says what it is for.
func (*healthcheckCmd) Help() string {
	return `Asks the router's /readyz, as containers do that have neither a shell nor curl: the status is 0 if the router
takes traffic, and 1, with the reason, if it starts, drains, reaches no server, or does not answer.`
}

// Run asks once.
func (c *healthcheckCmd) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Timeout))
	defer cancel()
	if err := (admin.Client{Address: c.Admin}).Ready(ctx); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "ready")
	return nil
}
