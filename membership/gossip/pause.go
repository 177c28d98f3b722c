package gossip

import (
	"fmt"
	"net"
	"time"
)

// Pause says good-bye to the others and gives up the address, so that a process that replaces
// this one can have it. Until [Gossip.Resume] nobody is there and nothing is sent.
func (g *Gossip) Pause() error {
	g.pausing.Lock()
	defer g.pausing.Unlock()
	l := g.list.Load()
	if l == nil {
		return nil
	}
	// Nobody may be left to hear the good-bye; who does not will find out.
	if err := l.leave(time.Second); err != nil {
		g.cfg.Log.Debug("good-bye not confirmed", "err", err)
	}
	g.list.Store(nil)
	err := l.shutdown()
	g.notice()
	return err
}

// Resume goes on after [Gossip.Pause], and is an error while another process has the address.
func (g *Gossip) Resume() error {
	g.pausing.Lock()
	defer g.pausing.Unlock()
	g.mu.Lock()
	c, closed := g.cfg, g.closed
	g.mu.Unlock()
	if closed || g.list.Load() != nil {
		return nil
	}
	c.Bind = g.bound
	l, err := newMemberList(c, g)
	if err != nil {
		return fmt.Errorf("cannot resume gossip on %s: %w", c.Bind, err)
	}
	g.list.Store(l)
	select {
	case g.again <- struct{}{}:
	default:
	}
	return nil
}

// bound returns what is bound, with the port that was taken if any would do.
func bound(c Config, address string) string {
	host, port, err := net.SplitHostPort(c.Bind)
	if err != nil || port != "0" || c.Advertise != "" {
		return c.Bind
	}
	_, port, _ = net.SplitHostPort(address)
	return net.JoinHostPort(host, port)
}
