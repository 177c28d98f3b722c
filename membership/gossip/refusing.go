package gossip

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A router that falls silent has died, or the network between is broken, and from silence
// alone nobody can tell which. But where its process has died and its machine has not, the
// machine's kernel says so: it refuses connections to where the router listened. A broken
// network does not answer at all.

// lost is a router that is not there any more. One that said good-bye is among them, as
// memberlist does not tell.
type lost struct {
	address  string
	since    time.Time
	refusals int // in a row
}

const (
	// knockEvery is the time between two attempts to connect to a lost router, half of it
	// more or less, and knockTimeout what one may take.
	knockEvery, knockTimeout = 2 * time.Second, time.Second
	// enoughRefusals is how many in a row show that it is not just being started again.
	enoughRefusals = 4
	// maxLost is how many lost routers are looked after, and knockFor how long.
	maxLost  = 256
	knockFor = 10 * time.Minute
)

// Refusing returns the names of routers that are gone while their machines go on: for some
// time those have refused connections to where the routers listened. They are sorted.
func (g *Gossip) Refusing() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name, l := range g.lost {
		if l.refusals >= enoughRefusals {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lose notes that a router has gone.
func (g *Gossip) lose(name, address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lost) < maxLost {
		g.lost[name] = &lost{address: address, since: time.Now()}
	}
}

// regain notes that a router is there.
func (g *Gossip) regain(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.lost, name)
}

// knock tries lost routers until the context ends.
func (g *Gossip) knock(ctx context.Context) {
	every := knockEvery
	if g.cfg.fast {
		every /= 20
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(jitter(every)):
		}
		var knocking sync.WaitGroup
		for name, address := range g.losses(time.Now()) {
			knocking.Go(func() { g.knockAt(ctx, name, address) })
		}
		knocking.Wait()
	}
}

// losses returns the addresses of lost routers by name.
func (g *Gossip) losses(now time.Time) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]string{}
	for name, l := range g.lost {
		if now.Sub(l.since) > knockFor {
			delete(g.lost, name)
			continue
		}
		all[name] = l.address
	}
	return all
}

func (g *Gossip) knockAt(ctx context.Context, name, address string) {
	d := net.Dialer{Timeout: knockTimeout}
	c, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		c.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lost[name]
	switch {
	case l == nil || l.address != address: // it is back
	case errors.Is(err, syscall.ECONNREFUSED):
		l.refusals++
	default:
		l.refusals = 0
	}
}
