package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
)

// watched is a server that is probed: listed, or about to be.
type watched struct {
	address string
	journal *journal.Journal
	cancel  context.CancelFunc
	// process is who it was when it was last in, began when it failed.
	process journal.Process
	asked   time.Time
	began   time.Time
	since   time.Time // when it began to be watched
	held    time.Time // until when it is not used though it answers
	// vetted says that it may be listed: it has answered, and holds nothing from an
	// earlier life.
	vetted  bool
	vetting bool
	// clean says that the node was told that nothing is missing.
	clean atomic.Bool
	// cleaning says that what this router alone failed over is being made good.
	cleaning bool
}

// dirty reports whether the server missed anything.
func (w *watched) dirty() bool { return w.journal.Len() > 0 || w.journal.Overflow() }

// firstList asks all sources, once or until an announcement has come.
func (c *Cluster) firstList(ctx context.Context) ([]view.Server, error) {
	for {
		for _, w := range c.cfg.Sources {
			w.Look(ctx)
		}
		list := c.found()
		switch {
		case len(list) > 0:
			return list, nil
		case c.cfg.Announced == nil || ctx.Err() != nil:
			return nil, errors.New("no source names any server")
		}
		select {
		case <-ctx.Done():
		case <-time.After(refreshEvery * tick):
		}
	}
}

// found puts the sources' lists together.
func (c *Cluster) found() []view.Server {
	var all []view.Server
	seen := map[string]bool{}
	for _, w := range c.cfg.Sources {
		for _, s := range w.List() {
			if !seen[s.Name] {
				seen[s.Name] = true
				all = append(all, view.Server{Name: s.Name, Address: s.Address, Weight: s.Weight})
			}
		}
	}
	return all
}

// refreshList proposes the list that the sources give now, without servers that have not
// answered yet.
func (c *Cluster) refreshList(now time.Time) {
	found := c.found()
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[string]bool{}
	for _, s := range found {
		wanted[s.Name] = true
		if w := c.watched[s.Name]; w == nil {
			c.pool.Add(s.Name, false, now)
			c.watchLocked(s)
		} else {
			w.address = s.Address
		}
	}
	if list := c.vettedLocked(found, now); len(list) > 0 {
		c.node.SetList(list, now)
	}
	c.forgetLocked(wanted, now)
}

// patience is how long servers that are no longer found stay for the sake of new ones that
// have yet to answer: where one replaces another the placement then changes once.
const patience = 5 * time.Second

// vettedLocked returns the servers that may be listed of those found.
func (c *Cluster) vettedLocked(found []view.Server, now time.Time) []view.Server {
	v := c.node.View()
	awaited := false
	list := slices.DeleteFunc(slices.Clone(found), func(s view.Server) bool {
		if _, known := v.Find(s.Name); known || c.vetLocked(s, now) {
			return false
		}
		awaited = awaited || now.Sub(c.watched[s.Name].since) < patience
		return true
	})
	for _, p := range v.Servers {
		leaves := !slices.ContainsFunc(found, func(s view.Server) bool { return s.Name == p.Name })
		if leaves && awaited {
			list = append(list, p.Server)
		}
	}
	return list
}

// forgetLocked stops watching servers that are neither found nor listed.
func (c *Cluster) forgetLocked(wanted map[string]bool, now time.Time) {
	for _, p := range c.node.View().Servers {
		wanted[p.Name] = true
	}
	for name, w := range c.watched {
		if !wanted[name] {
			w.cancel()
			delete(c.watched, name)
			c.journals.Delete(name)
			c.pool.Remove(name)
			c.goneLocked(name, now)
		}
	}
}

// maxGone bounds how many servers that left the list are remembered.
const maxGone = 4096

// goneLocked remembers when a server left, and forgets the one that has been gone longest
// when there are too many.
func (c *Cluster) goneLocked(name string, now time.Time) {
	c.gone[name] = now
	if len(c.gone) <= maxGone {
		return
	}
	oldest := name
	for n, at := range c.gone {
		if at.Before(c.gone[oldest]) {
			oldest = n
		}
	}
	delete(c.gone, oldest)
}

// vetLocked reports whether a new server may be listed: when it has answered, and, if it
// was listed before, once it is certain to be empty.
func (c *Cluster) vetLocked(s view.Server, now time.Time) bool {
	w := c.watched[s.Name]
	if w.vetted || c.pool.Verdict(s.Name, now).Opinion != health.Fine {
		return w.vetted
	}
	left, before := c.gone[s.Name]
	if !before {
		w.vetted = true
	} else if !w.vetting {
		w.vetting = true
		c.goLocked(func() { c.vet(s, left) })
	}
	return w.vetted
}

// vet empties a server that was listed before, unless its process is new.
func (c *Cluster) vet(s view.Server, left time.Time) {
	ctx, cancel := context.WithTimeout(c.ctx, cleanTimeout)
	defer cancel()
	p, err := c.cfg.Prober.Identify(ctx, s.Address)
	if err != nil || p.Started.Before(left) {
		err = c.cfg.Prober.Flush(ctx, s.Address)
	}
	if err != nil {
		c.pause(retryCleaning)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watched[s.Name]; w != nil {
		w.vetting, w.vetted = false, err == nil
	}
}

// handler takes in what other routers say.
type handler struct{ c *Cluster }

// maxEarly bounds how many messages are kept until there is a node to take them.
const maxEarly = 64

func (h handler) State() []byte {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.c.node == nil {
		return view.Encode(view.Message{})
	}
	return view.Encode(h.c.node.Full())
}

func (h handler) Merge(b []byte) {
	m, err := view.Decode(b)
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	switch {
	case err != nil:
		h.c.bad++
	case h.c.node != nil:
		h.c.node.Step(m, time.Now())
	case len(h.c.early) < maxEarly:
		h.c.early = append(h.c.early, m)
	}
}

func (h handler) Hint(b []byte) {
	if h.c.cfg.OnHint != nil {
		h.c.cfg.OnHint(b)
	}
}

func (h handler) Announce(b []byte) {
	if h.c.cfg.Announced == nil {
		return
	}
	from, lines, _ := strings.Cut(string(b), "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		if s, err := discover.Parse(line); err == nil {
			h.c.cfg.Announced.Announce(from, s, time.Now())
		}
	}
}

// announce tells the other routers, and this one, of the servers that it is to announce.
func (c *Cluster) announce() {
	if c.link != nil {
		announce(c.cfg.Router, c.cfg.Announce, c.link.SendAnnounce)
	}
	if c.cfg.Announced != nil {
		for _, s := range c.cfg.Announce {
			c.cfg.Announced.Announce(c.cfg.Router, s, time.Now())
		}
	}
}
