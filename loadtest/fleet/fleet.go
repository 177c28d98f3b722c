//go:build linux

// Package fleet runs memcached servers and routers as processes of one machine, each at an address
// of its own, breaks them on demand, and tells from the routers' logs what they made of it.
//
// All addresses are in one loopback network chosen at random, so that fleets do not meet, a server
// that is started again has its old address, and packets between two routers can be told apart.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"cacherouter/loadtest/process"
)

// Ports of all servers and routers; their addresses differ.
const (
	serverPort = 21211
	clientPort = 21311
	adminPort  = 21312
	gossipPort = 21313
)

// Config says what a fleet is made of.
type Config struct {
	Binary  string // of cacherouter; must be set
	Servers int    // memcached processes, 1 to 90
	Routers int    // 0 to 50; those of more than one gossip with each other
	// Listed is how many of the servers the routers know at first; 0 is all.
	Listed int
	// Timeout is how long the routers wait for a server; 0 is their default.
	Timeout time.Duration
	// Loops are the event loops of each router; 0 is 1.
	Loops int
	// Pool is more of the routers' pool section, in lines of YAML, each setting of which is in one line.
	Pool []string
	// Static turns membership off: keys stay where they are placed.
	Static bool
	// Handover is how long keys that miss are asked of the server they were on before; 0 is the routers' default.
	Handover time.Duration
	// Keep has a server that is replaced take over the old process's memory.
	Keep bool
	// Front puts something before each server when it has started, and returns the address at which
	// the routers reach it; nil means that they reach it directly. Servers come in their order. What
	// stands before a server stays when that ends, and CutServer does not cut it off.
	Front func(server string) (addr string, err error)
	// Logs gets what the routers log, each line behind its router's name; nil means nobody wants it.
	// It is written to from several goroutines, a line at a time.
	Logs io.Writer
}

// Fleet is a set of running processes. Its methods must not be called concurrently, except those
// that read.
type Fleet struct {
	Servers []*Server
	Routers []*Router

	config  Config
	dir     string
	network string // "127.A.B."
	listed  int
}

// Start starts the servers, then the routers, and returns when all answer. The caller must Stop it.
func Start(ctx context.Context, c Config) (f *Fleet, err error) {
	if c.Servers < 1 || c.Servers > 90 || c.Routers < 0 || c.Routers > 50 || c.Listed > c.Servers {
		return nil, fmt.Errorf("cannot start a fleet of %d servers, %d listed, and %d routers", c.Servers, c.Listed, c.Routers)
	}
	f = &Fleet{config: c, listed: c.Listed}
	if f.listed == 0 {
		f.listed = c.Servers
	}
	if f.dir, err = os.MkdirTemp("", "fleet-"); err != nil {
		return nil, fmt.Errorf("cannot start a fleet: %w", err)
	}
	os.Chmod(f.dir, 0o755) // routers may run as other users
	if f.network, err = freeNetwork(); err == nil {
		err = f.start(ctx)
	}
	if err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// freeNetwork finds a loopback network in which nobody listens at our ports.
func freeNetwork() (string, error) {
	for range 100 {
		n := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(250), rand.IntN(250))
		if !process.Answers(fmt.Sprintf("%s%d:%d", n, firstServer, serverPort)) &&
			!process.Answers(fmt.Sprintf("%s%d:%d", n, firstRouter, clientPort)) {
			return n, nil
		}
	}
	return "", errors.New("cannot find a free loopback network")
}

func (f *Fleet) start(ctx context.Context) error {
	for i := range f.config.Servers {
		f.Servers = append(f.Servers, f.newServer(i))
	}
	for _, s := range f.Servers {
		if err := s.Start(ctx); err != nil {
			return err
		}
		if err := f.front(s); err != nil {
			return err
		}
	}
	for i := range f.config.Routers {
		f.Routers = append(f.Routers, f.newRouter(i))
	}
	for _, r := range f.Routers {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// front puts before a server what the configuration wants there.
func (f *Fleet) front(s *Server) (err error) {
	if s.Front = s.Addr; f.config.Front != nil {
		s.Front, err = f.config.Front(s.Addr)
	}
	return err
}

// Stop ends all processes and returns when they are gone. It may be called again.
func (f *Fleet) Stop() {
	for _, r := range f.Routers {
		r.Stop()
	}
	for _, s := range f.Servers {
		s.Kill()
	}
	os.RemoveAll(f.dir)
}

// List has all routers take the first n servers as their list.
func (f *Fleet) List(n int) error {
	f.listed = n
	return f.Reload()
}

// Reload has all routers read their configuration again.
func (f *Fleet) Reload() error {
	for _, r := range f.Routers {
		if err := r.reload(); err != nil {
			return err
		}
	}
	return nil
}

// Targets are the addresses that clients use.
func (f *Fleet) Targets() (all []string) {
	for _, r := range f.Routers {
		all = append(all, r.Addr)
	}
	return all
}

func (f *Fleet) path(name string) string { return filepath.Join(f.dir, name) }

// Await asks done every few milliseconds until it is true. It is an error if that takes longer than
// the limit, or ctx ends.
func Await(ctx context.Context, what string, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited %v in vain until %s: %w", limit, what, ctx.Err())
		}
	}
	return nil
}
