package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"cacherouter/embedded"
)

type devCmd struct {
	Backends int              `help:"How many embedded servers to start." default:"3"`
	Memory   int64            `help:"Memory of each embedded server, in MiB." default:"64"`
	Listen   []listenerConfig `help:"Addresses for clients: host:port, or unix: and a path." placeholder:"ADDR"`
	Admin    *string          `help:"Address of the admin HTTP server; empty for none." placeholder:"ADDR"`
}

const maxDevBackends = 1000 // each is a listener

// Run starts the embedded servers and a router in front of them, and serves until a
// signal says to stop.
func (c *devCmd) Run(s streams) error {
	if c.Backends < 1 || c.Backends > maxDevBackends {
		return fmt.Errorf("backends: %d is not between 1 and %d", c.Backends, maxDevBackends)
	}
	if c.Memory < 1 || c.Memory > 1<<20 {
		return fmt.Errorf("memory: %d is not between 1 and %d MiB", c.Memory, 1<<20)
	}
	servers, stop, err := c.startServers()
	if err != nil {
		return errors.Join(err, stop())
	}
	load := func() (config, error) { return c.config(servers) }
	cfg, err := load()
	if err != nil {
		return errors.Join(err, stop())
	}
	log := slog.New(slog.NewTextHandler(s.err, nil))
	show := func(at listening) { banner{s.out, cfg, at}.show() }
	return errors.Join(newServer(cfg, load, log, show, "").serve(), stop())
}

// startServers starts the embedded servers. What stop returns is the errors of closing
// those that were started.
func (c *devCmd) startServers() (servers []serverConfig, stop func() error, err error) {
	var running []*embedded.Server
	stop = func() error {
		var all []error
		for _, s := range running {
			all = append(all, s.Close())
		}
		return errors.Join(all...)
	}
	for i := range c.Backends {
		s, err := embedded.Start("127.0.0.1:0", embedded.Config{Memory: c.Memory << 20})
		if err != nil {
			return nil, stop, err
		}
		running = append(running, s)
		// The ports change from run to run; placement looks at names, which do not.
		servers = append(servers, serverConfig{Name: fmt.Sprintf("server-%d", i+1), Address: s.Addr(), Weight: 1})
	}
	return servers, stop, nil
}

func (c *devCmd) config(servers []serverConfig) (config, error) {
	cfg := defaultConfig()
	if len(c.Listen) > 0 {
		cfg.Listen = c.Listen
	}
	if c.Admin != nil {
		cfg.Admin = *c.Admin
	}
	cfg.Pool.Servers = servers
	return cfg, cfg.validate()
}

// banner says what can be tried with a router that listens.
type banner struct {
	out io.Writer
	cfg config
	at  listening
}

// show writes the banner.
func (b banner) show() {
	var servers []string
	for _, s := range b.cfg.Pool.Servers {
		servers = append(servers, s.String())
	}
	fmt.Fprintf(b.out, "\nA router and %d embedded memcached servers are running.\n\n", len(servers))
	for _, a := range b.at.clients {
		fmt.Fprintf(b.out, "  clients   %s\n", a)
	}
	if b.at.admin != nil {
		fmt.Fprintf(b.out, "  admin     http://%s\n", b.at.admin)
	}
	fmt.Fprintf(b.out, "  servers   %s\n\nTry in another terminal:\n\n", strings.Join(servers, "\n            "))
	fmt.Fprintf(b.out, "  printf 'set hello 0 0 5\\r\\nworld\\r\\nget hello\\r\\nquit\\r\\n' | %s\n", netcat(b.at.clients[0]))
	fmt.Fprintf(b.out, "  %s where --backends %s hello\n", program(os.Args[0]), strings.Join(servers, ","))
	if b.at.admin != nil {
		fmt.Fprintf(b.out, "  curl http://%s/metrics\n", b.at.admin)
	}
	fmt.Fprint(b.out, "\nCtrl-C stops everything.\n\n")
}

// netcat returns the command that connects to a listener.
func netcat(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	switch {
	case a.Network() == "unix":
		return "nc -U " + a.String()
	case err != nil:
		return "nc " + a.String() // not what a listener has
	case net.ParseIP(host).IsUnspecified():
		host = "localhost"
	}
	return "nc " + host + " " + port
}

// program returns how to call this program again, given how it was called: what go run
// builds is gone when it ends.
func program(arg0 string) string {
	if strings.Contains(arg0, "go-build") {
		return "go run ./cmd/cacherouter"
	}
	return arg0
}
