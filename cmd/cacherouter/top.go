package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"cacherouter/admin"
	"cacherouter/top"
)

type topCmd struct {
	Admin     string `help:"Address of a router's admin server: host:port, or unix: and a path." default:"127.0.0.1:11312" placeholder:"ADDR"`
	Pool      string `help:"The pool to look at, if the router has several." placeholder:"NAME"`
	TokenFile string `help:"File whose first line is the token that the router's admin_token_file has. The router itself wants none of those who only look." type:"path" placeholder:"FILE"`
	Once      bool   `help:"Print all there is to see at this moment, and end. So it does when the output is no terminal."`
}

// Help explains what is shown.
func (*topCmd) Help() string {
	return `Shows what the router's page shows: whether all is well, in a sentence, the figures, each server's
load against its bound, hot keys, the other routers, and the last changes. Once a second, and at once after a
change. Servers in trouble come first, then those with the most requests.

Tab and the arrow keys give one part all the room, q and Ctrl-C end it. What is not printable ASCII, in keys
above all, is escaped as in Go. With NO_COLOR set there are no colours; without UTF-8 in LC_ALL, LC_CTYPE or LANG
bars are of ASCII.

The status is 1 if the router does not answer at first; later on it is asked again.`
}

// pipeWidth is the width in columns of what goes to no terminal.
const pipeWidth = 160

// Run shows a router until somebody has seen enough.
func (c *topCmd) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	show := top.Config{Ask: admin.Client{Address: c.Admin, Pool: c.Pool}, Zone: time.Local}
	if c.TokenFile != "" {
		var err error
		if show.Ask.Token, err = readToken(c.TokenFile); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	show.Look.Unicode = utf8Locale(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	width, terminal := pipeWidth, false
	if f, is := s.out.(*os.File); is {
		if w, ok := top.IsTerminal(f); ok {
			width, terminal = cmp.Or(w, pipeWidth), os.Getenv("TERM") != "dumb"
		}
	}
	if c.Once || !terminal {
		return show.Once(ctx, s.out, width)
	}
	show.Look.Color = os.Getenv("NO_COLOR") == ""
	return show.Run(ctx)
}

// utf8Locale reports whether a locale's characters are those of UTF-8: C.UTF-8, de_DE.utf8.
func utf8Locale(locale string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8")
}
