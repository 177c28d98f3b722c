package membership

import (
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/journal"
)

// Observe takes in what happened to one loop's requests to a server since the loop's last
// report. A loop reports a failure at once, and successes a few times a second.
func (c *Cluster) Observe(server string, o health.Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	before := c.pool.State(server)
	c.pool.Observe(server, o, now)
	if c.pool.State(server) != before {
		c.advanceLocked(now)
	}
}

// Lag tells the length of a loop's turn. A router that is too busy does not judge others.
func (c *Cluster) Lag(turn time.Duration) {
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
	if j := c.journal(server); j != nil {
		j.Missed(hash, key)
	}
}

// MissedAll notes that a server missed a flush_all.
func (c *Cluster) MissedAll(server string) {
	if j := c.journal(server); j != nil {
		j.MissedAll()
	}
}

// journal returns a server's journal and voids what was made good before.
func (c *Cluster) journal(server string) *journal.Journal {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[server]
	if w == nil {
		return nil
	}
	c.node.Missed(server)
	return w.journal
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

// SendHint sends a hint to all other routers, best effort.
func (c *Cluster) SendHint(b []byte) {
	if c.link != nil {
		c.link.SendHint(b)
	}
}
