package membership

import (
	"errors"
	"time"

	"cacherouter/membership/gossip"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Observe takes in what happened to one loop's requests to a server since the loop's last
// report. A loop reports a failure at once, and successes a few times a second.
// It never waits; what it says is taken in a moment later.
func (c *Cluster) Observe(server string, o health.Observation) { c.reports.add(server, o) }

// takeReports takes in what loops have reported.
func (c *Cluster) takeReports(now time.Time) {
	all := c.reports.take()
	if all == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := false
	for server, o := range all {
		before := c.pool.State(server)
		c.pool.Observe(server, o, now)
		lost := o.Errors() > 0 && c.failedLocked(server)
		changed = changed || lost || c.pool.State(server) != before
	}
	if changed {
		c.advanceLocked(now)
	}
}

// Lag tells the length of a loop's turn. A router that is too busy does not judge others.
func (c *Cluster) Lag(turn time.Duration) {
	if turn <= c.cfg.Health.MaxLag {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool.Lag(turn, time.Now())
}

// Admit asks to send a request to a server in probation, which takes one at a time, until
// Observe has told what came of it.
func (c *Cluster) Admit(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.Admit(server)
}

// Cost returns the mean latency of a server's requests lately, an error counted as a slow
// one; 0 when there were none. Use it to choose among servers that all hold a copy.
func (c *Cluster) Cost(server string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.Cost(server)
}

// Missed notes that a server missed a write of a key, whose hash is given: it failed over,
// or nobody knows whether it was done. The key is copied. Servers that are not listed are
// ignored.
func (c *Cluster) Missed(server string, hash uint64, key []byte) {
	if w := c.find(server); w != nil {
		w.journal.Missed(hash, key)
		c.spoil(server, w)
	}
}

// MissedAll notes that a server missed a flush_all.
func (c *Cluster) MissedAll(server string) {
	if w := c.find(server); w != nil {
		w.journal.MissedAll()
		c.spoil(server, w)
	}
}

func (c *Cluster) find(server string) *watched {
	w, _ := c.journals.Load(server)
	found, _ := w.(*watched)
	return found
}

// spoil voids that a server has been cleaned. Noting a write and then looking whether it
// is clean here, and there saying that it is clean and then looking whether a write was
// noted, leaves no gap between them.
func (c *Cluster) spoil(server string, w *watched) {
	if !w.clean.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.clean.Store(false)
	c.node.Missed(server)
}

// Drain moves a server's keys to the others while it still serves, at all routers. It
// reports false for a server that is not listed, and for the last one.
func (c *Cluster) Drain(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Drain(server, time.Now())
}

// Undrain lets a drained server return. It reports false for one that does not drain.
func (c *Cluster) Undrain(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Undrain(server, time.Now())
}

// SetParameters changes [Config.Parameters], at this router alone.
func (c *Cluster) SetParameters(parameters string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.node.SetParameters(parameters, now)
	c.publishLocked(now)
}

// ForgetRouter says that a router that cannot be heard any more is gone for good, so that
// the others need not wait for it. That must be certain: if it still runs, both sides decide
// for themselves. It reports false for a router that is unknown, or can be heard.
func (c *Cluster) ForgetRouter(router string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Forget(router)
}

// SendHint sends a hint to all other routers, best effort.
func (c *Cluster) SendHint(b []byte) {
	if c.link != nil {
		c.link.SendHint(b)
	}
}

// Routers returns the routers and agents that are there, this one included, sorted by
// name; none without gossip.
func (c *Cluster) Routers() []gossip.Member {
	if c.link == nil {
		return nil
	}
	return c.link.Members()
}

// Pause leaves the other routers, for a process that replaces this one: it can then have this
// router's name and address. Nothing is decided any more; the last state stays in force.
func (c *Cluster) Pause() error {
	if c.link == nil {
		return nil
	}
	return c.link.Pause()
}

// Resume returns to the other routers after [Cluster.Pause].
func (c *Cluster) Resume() error {
	if c.link == nil {
		return nil
	}
	return c.link.Resume()
}

// SetNote changes what the other routers are told of this one; see [gossip.Config].
// Without others it does nothing.
func (c *Cluster) SetNote(note string) error {
	if c.link == nil {
		return nil
	}
	return c.link.SetNote(note)
}

// SetGossipKeys changes the keys of a running cluster; see [gossip.Gossip.SetKeys].
func (c *Cluster) SetGossipKeys(keys [][]byte) error {
	if c.link == nil {
		return errors.New("cannot change the gossip keys: there is no gossip")
	}
	return c.link.SetKeys(keys)
}

// Explain says why a server has the status it has; false for one that is not listed.
func (c *Cluster) Explain(server string) (view.Explanation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Explain(server, time.Now())
}

// Neighbours returns what is known of the other routers, sorted by name.
func (c *Cluster) Neighbours() []view.Neighbour {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Neighbours()
}
