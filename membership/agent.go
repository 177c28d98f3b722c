package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
)

// Agent announces servers to the routers from beside them. It takes no part in their
// decisions.
type Agent struct {
	// Gossip is how to reach the routers. Its Name must differ from every router's.
	Gossip gossip.Config
	// Servers are what is announced.
	Servers []discover.Server
	// Pool is the pool that they are for; empty means DefaultPool.
	Pool string
	// Keys, if not nil, gives the keys of the gossip now; it is asked every few seconds.
	// Gossip has those to begin with.
	Keys func() [][]byte
}

// Run announces until the context ends, and then says good-bye.
func (a Agent) Run(ctx context.Context) error {
	g, err := gossip.Start(a.Gossip, listener{})
	if err != nil {
		return fmt.Errorf("cannot announce servers: %w", err)
	}
	t := time.NewTicker(announceEvery * tick)
	defer t.Stop()
	for keys := a.Gossip.Keys; ctx.Err() == nil; {
		keys = a.rotate(g, keys)
		announce(a.Gossip.Name, a.Servers, func(b []byte) { g.SendAnnounce(enclose(cmp.Or(a.Pool, DefaultPool), b)) })
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := g.Close(closing); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cannot leave the routers: %w", err)
	}
	return nil
}

// rotate takes over other keys, and returns those in force.
func (a Agent) rotate(g *gossip.Gossip, keys [][]byte) [][]byte {
	if a.Keys == nil {
		return keys
	}
	next := a.Keys()
	if !slices.EqualFunc(keys, next, slices.Equal[[]byte]) && g.SetKeys(next) != nil {
		return keys // they are tried again, and the file they come from was checked
	}
	return next
}

// announcementSize is the size, in bytes, up to which servers are put into one message, so
// that it goes in one packet: routers could not take in a packet for each of thousands.
const announcementSize = 1100

// announce sends who announces, and servers, one a line.
func announce(from string, servers []discover.Server, send func(b []byte)) {
	b := []byte(from)
	for _, s := range servers {
		line := s.String()
		if len(b) > len(from) && len(b)+len(line) >= announcementSize {
			send(b)
			b = []byte(from)
		}
		b = append(b, '\n')
		b = append(b, line...)
	}
	if len(b) > len(from) {
		send(b)
	}
}

// listener is a handler that has nothing to say and ignores what it is told.
type listener struct{}

func (listener) State() []byte   { return nil }
func (listener) Merge([]byte)    {}
func (listener) Hint([]byte)     {}
func (listener) Announce([]byte) {}
