package membership

import (
	"context"
	"math/rand/v2"
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
)

// watchLocked begins to probe a server.
func (c *Cluster) watchLocked(s view.Server) {
	ctx, cancel := context.WithCancel(c.ctx)
	w := &watched{address: s.Address, cancel: cancel, since: time.Now(), journal: journal.New(c.cfg.Journal)}
	c.watched[s.Name] = w
	c.journals.Store(s.Name, w)
	c.goLocked(func() { c.probe(ctx, s.Name) })
}

// probe asks a server again and again whether it answers, with a fifth of jitter, so that
// routers do not ask all at once.
func (c *Cluster) probe(ctx context.Context, name string) {
	for {
		every, address := c.next(name)
		select {
		case <-ctx.Done():
			return
		case <-time.After(every*4/5 + rand.N(every*2/5)):
		}
		started := time.Now()
		err := c.probeOnce(ctx, address)
		if ctx.Err() != nil {
			return
		}
		c.probed(name, err == nil, started)
		if err == nil && c.unidentified(name) {
			c.identify(ctx, name, address)
		}
	}
}

func (c *Cluster) next(name string) (time.Duration, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[name]
	if w == nil {
		return time.Second, ""
	}
	return c.pool.ProbeEvery(name), w.address
}

func (c *Cluster) probeOnce(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ProbeTimeout)
	defer cancel()
	return c.cfg.Prober.Probe(ctx, address)
}

func (c *Cluster) probed(name string, ok bool, started time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	before := c.pool.State(name)
	c.pool.Probe(name, ok, started, now)
	if c.pool.State(name) != before {
		c.advanceLocked(now)
	}
}

// identifyEvery is the time after which a server in use is asked again who it is.
const identifyEvery = 10 * time.Second

// unidentified reports whether to ask a server who it is: only while it is in and well,
// as what counts is who it was before it failed.
func (c *Cluster) unidentified(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[name]
	if w == nil || time.Since(w.asked) < identifyEvery {
		return false
	}
	p, listed := c.node.View().Find(name)
	well := c.pool.Verdict(name, time.Now()).Opinion == health.Fine
	if !listed || p.Status != view.In || !well {
		return false
	}
	w.asked = time.Now()
	return true
}

func (c *Cluster) identify(ctx context.Context, name, address string) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ProbeTimeout)
	defer cancel()
	p, err := c.cfg.Prober.Identify(ctx, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watched[name]; w != nil && err == nil && c.pool.State(name) != health.Down {
		w.process = p
	}
}
