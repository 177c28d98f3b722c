package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"cacherouter/admin"
	"cacherouter/reload"
)

type reloadCmd struct {
	DryRun    bool   `help:"Change nothing: say what would change, and which share of the keys that moves."`
	Force     bool   `help:"Also if more keys move than reload.max_moved allows."`
	Admin     string `help:"Address of the router's admin server, on this host." default:"127.0.0.1:11312" placeholder:"ADDR"`
	TokenFile string `help:"File whose first line is the token that the router's admin_token_file has." type:"path" placeholder:"FILE"`
	JSON      bool   `name:"json" help:"Print JSON."`
}

// Run asks a router to reload, and prints what that changed. One that would be refused is an error,
// also where it is only tried.
func (c *reloadCmd) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ask := admin.Client{Address: c.Admin}
	var err error
	if ask.Token, err = tokenOf(c.TokenFile); err != nil {
		return err
	}
	r, err := ask.Reload(ctx, reload.Options{DryRun: c.DryRun, Force: c.Force})
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(s.out, r)
	} else {
		printReport(s.out, &r)
	}
	if err == nil && !r.OK() {
		err = errors.New("this would be refused: " + r.Error)
	}
	return err
}

// printReport writes for people what a reload changed, or would.
func printReport(out io.Writer, r *reload.Report) {
	for _, c := range r.Changes {
		fmt.Fprintln(out, c)
	}
	for _, setting := range r.Upgrade {
		fmt.Fprintf(out, "%s: takes an upgrade, by SIGUSR2\n", setting)
	}
	switch n := len(r.Changes); {
	case n == 0:
		fmt.Fprintln(out, "nothing to change")
	case r.DryRun:
		fmt.Fprintf(out, "%d to change\n", n)
	default:
		fmt.Fprintf(out, "%d changed\n", n)
	}
}
