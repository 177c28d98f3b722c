package main

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"cacherouter/fresh"
	"cacherouter/membership"
)

type agentCmd struct {
	Announce []serverConfig `help:"Servers to tell the routers of, each name=host:port[@weight]." required:"" placeholder:"SERVER,..."`
	Join     []string       `help:"Addresses on which some routers gossip." required:"" placeholder:"ADDR,..."`
	Gossip   string         `help:"Address to gossip on; by default the host of the first server, and a free port." placeholder:"ADDR"`
	Name     string         `help:"The agent's name among agents and routers; by default made of the host's and the first server's." placeholder:"NAME"`
	Pool     string         `help:"The pool that the servers are for, if the routers have several." placeholder:"NAME"`
	Cluster  string         `help:"Name of the fleet." placeholder:"NAME"`
	Keyring  string         `help:"File of keys for the gossip." type:"path" placeholder:"FILE"`
}

// Run announces servers until a signal says to stop.
func (c *agentCmd) Run(s streams) error {
	for i := range c.Announce {
		if err := c.Announce[i].check("--announce"); err != nil {
			return err
		}
	}
	g := gossipConfig{Bind: cmp.Or(c.Gossip, c.bind()), Join: c.Join, Cluster: c.Cluster, Keyring: c.Keyring}
	if err := g.validate(); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.err, nil))
	a := membership.Agent{Servers: found(c.Announce), Pool: c.Pool}
	var err error
	if a.Gossip, err = g.config(); err != nil {
		return err
	}
	a.Gossip.Name, a.Gossip.Log = c.name(), log
	if c.Keyring != "" {
		keys, err := fresh.New(log, g.keys, c.Keyring)
		if err != nil {
			return err
		}
		a.Keys = keys.Get
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.Info("announcing", "name", a.Gossip.Name, "servers", len(a.Servers), "bind", g.Bind)
	if err := a.Run(ctx); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// bind returns the address to gossip on: where the first server is reached the agent can
// be, too.
func (c *agentCmd) bind() string {
	host, _, err := net.SplitHostPort(c.Announce[0].Address)
	if err != nil || net.ParseIP(host) == nil {
		host = "0.0.0.0"
	}
	return net.JoinHostPort(host, "0")
}

func (c *agentCmd) name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "agent"
	}
	return cmp.Or(c.Name, host+"/"+c.Announce[0].Name)
}
