package membership

import (
	"context"
	"errors"
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
)

const (
	// takeover is how long the loops have to act on a new state: what they note about a
	// server that answers again comes within it.
	takeover = 500 * time.Millisecond
	// cleanTimeout bounds one attempt to make good what a server missed.
	cleanTimeout = 30 * time.Second
	// retryCleaning is the pause after an attempt that failed.
	retryCleaning = time.Second
	// portion is how many keys are replayed at a time.
	portion = 4096
)

// errQuarantine keeps a server out for good.
var errQuarantine = errors.New("the server may hold old values and is not to be emptied")

// returnLocked begins to make good what a server missed that answers again.
func (c *Cluster) returnLocked(r view.Return) {
	w := c.watched[r.Server]
	if w == nil {
		return
	}
	o := journal.Outage{Before: w.process, Began: w.began, Ended: time.Now(), Lost: r.Flush}
	c.goLocked(func() { c.clean(r.Server, w, o) })
}

// clean does so, and tells the node, which holds the server back until then.
func (c *Cluster) clean(name string, w *watched, o journal.Outage) {
	c.pause(takeover)
	ctx, cancel := context.WithTimeout(c.ctx, cleanTimeout)
	defer cancel()
	action, emptied, err := c.makeGood(ctx, w, o)
	switch {
	case c.ctx.Err() != nil:
		return
	case err == nil:
		c.log.Info("server cleaned", "server", name, "action", action.String())
	default:
		c.log.Warn("server not cleaned, it stays away", "server", name, "action", action.String(), "err", err)
		c.pause(retryCleaning)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.clean.Store(err == nil)
	if err != nil || w.dirty() {
		w.clean.Store(false)
		c.node.CleaningFailed(name)
		return
	}
	c.node.Cleaned(name, emptied)
}

// recoverLocked looks for servers that never left, as the other routers reach them, but
// missed writes that this router failed over. They serve none of its reads before those
// are made good.
func (c *Cluster) recoverLocked(now time.Time) {
	for _, p := range c.node.View().Servers {
		w := c.watched[p.Name]
		if w == nil || p.Status != view.In || w.cleaning || !w.dirty() || c.pool.Verdict(p.Name, now).Opinion != health.Fine {
			continue
		}
		w.cleaning = true
		o := journal.Outage{Before: w.process, Began: w.began, Ended: now}
		c.goLocked(func() { c.recover(p.Name, w, o) })
	}
}

func (c *Cluster) recover(name string, w *watched, o journal.Outage) {
	c.pause(takeover)
	ctx, cancel := context.WithTimeout(c.ctx, cleanTimeout)
	defer cancel()
	action, _, err := c.makeGood(ctx, w, o)
	if err != nil {
		c.log.Warn("server not cleaned, it is not read from", "server", name, "action", action.String(), "err", err)
		c.pause(retryCleaning)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.cleaning = false
}

// makeGood does what the policy says, and reports whether nothing is left of what the
// server held.
func (c *Cluster) makeGood(ctx context.Context, w *watched, o journal.Outage) (a journal.Action, emptied bool, err error) {
	address := c.addressOf(w)
	if o.After, err = c.cfg.Prober.Identify(ctx, address); err != nil {
		return a, false, err
	}
	o.Missed, o.Overflow = w.journal.Len(), w.journal.Overflow()
	switch a = c.cfg.Readmit.Decide(o); a {
	case journal.Quarantine:
		return a, false, errQuarantine
	case journal.Flush:
		if err = c.cfg.Prober.Flush(ctx, address); err == nil {
			w.journal.Reset()
		}
		return a, err == nil, err
	case journal.Replay:
		return a, false, c.replay(ctx, w, address)
	}
	fresh := o.Lost || o.Overflow || o.Missed > 0 // else it would not have been admitted
	if fresh {
		w.journal.Reset()
	}
	return a, fresh, nil
}

// replay deletes what the server missed. Keys that could not be deleted are noted again.
func (c *Cluster) replay(ctx context.Context, w *watched, address string) error {
	for {
		keys, overflow := w.journal.Take(portion)
		switch {
		case overflow:
			return errors.New("more was missed than was noted")
		case len(keys) == 0:
			return nil
		}
		if err := c.cfg.Prober.Delete(ctx, address, keys); err != nil {
			for _, k := range keys {
				w.journal.Missed(k.Hash, k.Key)
			}
			return err
		}
	}
}

func (c *Cluster) addressOf(w *watched) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.address
}

// pause waits, or until the cluster ends.
func (c *Cluster) pause(d time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-time.After(d):
	}
}
