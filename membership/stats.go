package membership

import (
	"fmt"
	"strings"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
)

// Stats is what a cluster can say about itself.
type Stats struct {
	View   view.Stats
	Gossip gossip.Stats // zero without other routers
	// Sources is by the watchers' names.
	Sources map[string]discover.WatcherStats
	// Journals is how many keys each server missed, servers that missed none left out.
	Journals map[string]int
	// Identified counts servers of which it is known which process they are. One that fails
	// before that has to be emptied when it returns, even if it is a new one.
	Identified int
	// Changes counts changes of servers' states at this router, by the new state.
	Changes [health.SlowStart + 1]uint64
	// BadMessages counts messages of other routers that made no sense.
	BadMessages uint64
	// Panic says that so many servers look down that health is ignored.
	Panic bool
}

// Stats returns the present figures.
func (c *Cluster) Stats() Stats {
	s := Stats{Sources: map[string]discover.WatcherStats{}, Journals: map[string]int{}}
	for _, w := range c.cfg.Sources {
		s.Sources[w.Name] = w.Stats()
	}
	if c.link != nil {
		s.Gossip = c.link.Stats()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.View, s.Panic, s.BadMessages, s.Changes = c.node.Stats(), c.pool.Panics(), c.bad, c.said.changes
	for name, w := range c.watched {
		if n := w.journal.Len(); n > 0 {
			s.Journals[name] = n
		}
		if w.process != (journal.Process{}) {
			s.Identified++
		}
	}
	return s
}

// said is what was last logged, so that each change is logged once.
type said struct {
	stats   view.Stats
	panicky bool
	changes [health.SlowStart + 1]uint64
}

// sayLocked logs what has changed.
func (c *Cluster) sayLocked(old, next *State) {
	for _, ch := range c.pool.Changes() {
		c.said.changes[ch.To]++
		c.log.Info("server state", "server", ch.Server, "from", ch.From.String(), "to", ch.To.String(), "reason", ch.Reason)
	}
	for _, s := range next.Servers {
		o, ok := old.Find(s.Name)
		c.outageLocked(s)
		switch {
		case !ok:
			c.log.Info("server listed", "server", s.Name, "addr", s.Address, "status", s.Status.String(), "view", next.Version)
		case o.Status != s.Status:
			c.log.Warn("server status", "server", s.Name, "from", o.Status.String(), "to", s.Status.String(), "reason", c.reasonLocked(s), "view", next.Version)
		}
	}
	for _, s := range old.Servers {
		if _, ok := next.Find(s.Name); !ok {
			c.log.Info("server no longer listed", "server", s.Name, "view", next.Version)
		}
	}
	st, was := c.node.Stats(), &c.said.stats
	c.flip("too few routers can be heard, nothing is decided", st.Frozen, was.Frozen)
	c.flip("this router does not trust its own observations", st.Abstains, was.Abstains)
	c.flip("routers have different lists of servers or parameters", st.ListsDiffer, was.ListsDiffer)
	c.flip("routers place keys differently", st.PlacementsDiffer, was.PlacementsDiffer)
	c.flip("most servers look down, their health is ignored", c.pool.Panics(), c.said.panicky)
	c.said.stats, c.said.panicky = st, c.pool.Panics()
}

// reasonLocked says in a few words why a server has got its status: what of the voters say
// of it, unless an operator has decided.
func (c *Cluster) reasonLocked(s Server) string {
	e, ok := c.node.Explain(s.Name, time.Now())
	if !ok || s.Status == view.Draining {
		return "asked to drain"
	}
	said := make(map[health.Opinion]int)
	for _, voter := range e.Voters {
		said[e.Opinions[voter]]++
	}
	var parts []string
	for o := health.Dead; ; o-- {
		if said[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", said[o], o))
		}
		if o == health.Unsure {
			return fmt.Sprintf("%s, of %d voting", strings.Join(parts, ", "), len(e.Voters))
		}
	}
}

// outageLocked notes when an outage begins: when this router cannot reach the server any
// more, or the others have agreed that they cannot. It ends when the server is in and
// answers.
func (c *Cluster) outageLocked(s Server) {
	w := c.watched[s.Name]
	switch out := s.Status != view.In || s.Health == health.Down; {
	case w == nil:
	case !out && !w.dirty():
		w.began = time.Time{}
	case out && w.began.IsZero():
		w.began = time.Now()
	}
}

// flip logs that something has become true, or is over.
func (c *Cluster) flip(what string, now, before bool) {
	switch {
	case now && !before:
		c.log.Warn(what)
	case before && !now:
		c.log.Info("over: " + what)
	}
}
