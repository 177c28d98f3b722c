package main

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"cacherouter/admin"
)

type drainCmd struct {
	Server    string   `arg:"" help:"Name of the server."`
	Pool      string   `help:"The server's pool, if the router has several." placeholder:"NAME"`
	Undo      bool     `help:"Let the server return."`
	Admin     string   `help:"Address of a router's admin server, on this host; that router tells the others." default:"127.0.0.1:11312" placeholder:"ADDR"`
	TokenFile string   `help:"File whose first line is the token that the router's admin_token_file has." type:"path" placeholder:"FILE"`
	Wait      bool     `help:"Return when the server may be stopped: all routers have moved its keys away, and the hand-over is over."`
	Timeout   duration `help:"How long to wait." default:"15m" placeholder:"15m"`
}

// lookAgain is the time between two looks at a server that drains.
const lookAgain = 500 * time.Millisecond

// Run moves a server's keys away, or lets it return.
func (c *drainCmd) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ask := admin.Client{Address: c.Admin, Pool: c.Pool}
	var err error
	if ask.Token, err = tokenOf(c.TokenFile); err != nil {
		return err
	}
	if err := ask.Drain(ctx, c.Server, c.Undo); err != nil {
		return err
	}
	switch {
	case c.Undo:
		fmt.Fprintf(s.out, "%s returns when it has been emptied and has answered for a while\n", c.Server)
		return nil
	case !c.Wait:
		fmt.Fprintf(s.out, "%s drains; do not stop it before /api/v1/members says may_stop\n", c.Server)
		return nil
	}
	return c.wait(ctx, s, ask)
}

// tokenOf returns the token that a file of the command line has, empty if there is none.
func tokenOf(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	token, err := readToken(file)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return token, nil
}

// wait returns when the server may be stopped.
func (c *drainCmd) wait(ctx context.Context, s streams, ask admin.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Timeout))
	defer cancel()
	t := time.NewTicker(lookAgain)
	defer t.Stop()
	for said := false; ; {
		m, err := ask.Members(ctx)
		i := slices.IndexFunc(m.Servers, func(m admin.Member) bool { return m.Name == c.Server })
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && i < 0:
			return fmt.Errorf("server %s is no longer listed", c.Server)
		case err == nil && m.Servers[i].MayStop:
			fmt.Fprintf(s.out, "%s may be stopped\n", c.Server)
			return nil
		case err == nil && m.Handover != nil && !said:
			said = true
			fmt.Fprintf(s.out, "%s holds no keys any more, and is asked for those it had until %s\n", c.Server, m.Handover.Local().Format(time.TimeOnly))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server %s may not be stopped yet: %w", c.Server, ctx.Err())
		case <-t.C:
		}
	}
}
