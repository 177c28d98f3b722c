package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
)

// Agent announces servers to the routers from beside them, until its context ends. It
// takes no part in their decisions. The gossip's Name must differ from every router's.
func Agent(ctx context.Context, cfg gossip.Config, servers []discover.Server) error {
	g, err := gossip.Start(cfg, listener{})
	if err != nil {
		return fmt.Errorf("cannot announce servers: %w", err)
	}
	t := time.NewTicker(announceEvery * tick)
	defer t.Stop()
	for ctx.Err() == nil {
		announce(servers, g.SendAnnounce)
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

// announcementSize is the size, in bytes, up to which servers are put into one message, so
// that it goes in one packet: routers could not take in a packet for each of thousands.
const announcementSize = 1100

// announce sends servers, one a line.
func announce(servers []discover.Server, send func(b []byte)) {
	var b []byte
	for _, s := range servers {
		line := s.String()
		if len(b) > 0 && len(b)+len(line) >= announcementSize {
			send(b)
			b = nil
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, line...)
	}
	if len(b) > 0 {
		send(b)
	}
}

// listener is a handler that has nothing to say and ignores what it is told.
type listener struct{}

func (listener) State() []byte   { return nil }
func (listener) Merge([]byte)    {}
func (listener) Hint([]byte)     {}
func (listener) Announce([]byte) {}
