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
		for _, s := range servers {
			g.SendAnnounce([]byte(s.String()))
		}
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

// listener is a handler that has nothing to say and ignores what it is told.
type listener struct{}

func (listener) State() []byte   { return nil }
func (listener) Merge([]byte)    {}
func (listener) Hint([]byte)     {}
func (listener) Announce([]byte) {}
