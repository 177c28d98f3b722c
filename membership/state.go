package membership

import (
	"slices"
	"strings"
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Writes says what becomes of a write whose home a server is.
type Writes uint8

// The ways of writes.
const (
	// Home: it goes to the server.
	Home Writes = iota
	// Refuse: it is answered with an error. This router cannot reach the server, and
	// others may still read from it.
	Refuse
	// Failover: it goes to the next candidate, with a bounded time to live, and is noted
	// in the server's journal.
	Failover
)

var writesText = [...]string{"home", "refuse", "failover"}

// String names the way in one word.
func (w Writes) String() string { return writesText[w] }

// Server is a server and how to use it.
type Server struct {
	Name, Address string
	// Weight is its weight in the placement, at least 1.
	Weight int
	// Status is what the routers have agreed on. Servers that are out or draining are not
	// in the placement.
	Status view.Status
	// Health is what this router makes of it.
	Health health.State
	// Reads says whether reads of its keys go to it; else they go to the next candidate. Of
	// one that drains it says whether it may be asked for the keys that it had before.
	Reads bool
	// Writes says where writes go.
	Writes Writes
	// Clean says that it answers again, though it does not serve yet: a write that fails
	// over must also delete its key here before it is answered, and if that fails is
	// answered with an error and noted with Missed.
	Clean bool
	// Moved says that its keys may have been moved to others and back since the routers
	// started. The next candidates may then hold old copies of them, which would be read if
	// it went away once more: a write to it must also delete its key at those.
	Moved bool
	// Probation says that reads must be admitted one at a time; see [Cluster.Admit].
	Probation bool
	// Share is how much of its full load it may get where there is a choice, per mille, in
	// steps of 50: it grows while the server is new.
	Share int
}

// State is what a router acts on. It is never changed.
type State struct {
	// Version, List and Digest are the view's; see [view.View].
	Version, List, Digest uint64
	// Since is when the present placement began, on the routers' common clock: the warm
	// hand-over from the one before counts from here.
	Since time.Time
	// Servers are sorted by name.
	Servers []Server
	// Before are the servers, sorted by name, that the placement before this one counted:
	// until Until, on this process's clock, keys that miss can be asked of it, and writes
	// have to delete what it holds. Some may be on no list any more. Nil if there is no such
	// placement, not every router knows it, or it was long ago.
	Before []Server
	Until  time.Time
	// After are the servers, sorted by name, of the placement that will replace this one
	// within seconds, nil mostly. Other routers may already use it, so writes have to delete
	// there too. Some may be on no list yet.
	After []Server
}

// Placed returns the servers that the placement counts, sorted by name.
func (s *State) Placed() []Server {
	return slices.DeleteFunc(slices.Clone(s.Servers), func(x Server) bool { return !x.Status.Placed() })
}

// Find returns a server by name.
func (s *State) Find(name string) (Server, bool) {
	i, ok := slices.BinarySearchFunc(s.Servers, name, func(x Server, n string) int {
		return strings.Compare(x.Name, n)
	})
	if !ok {
		return Server{}, false
	}
	return s.Servers[i], true
}

// stateLocked makes the state.
func (c *Cluster) stateLocked(now time.Time) *State {
	v := c.node.View()
	s := &State{Version: v.Version, List: v.List, Digest: v.Digest, Since: v.Since}
	s.Servers = make([]Server, len(v.Servers))
	for i, p := range v.Servers {
		s.Servers[i] = c.serverLocked(p, now)
	}
	c.changesLocked(s, v, now)
	return s
}

func (c *Cluster) serverLocked(p view.Placed, now time.Time) Server {
	h := c.pool.State(p.Name)
	reachable := c.pool.Reachable(p.Name)
	if !reachable {
		c.holdLocked(p.Name, now)
	}
	s := Server{
		Name: p.Name, Address: p.Address, Weight: p.Weight, Status: p.Status, Health: h, Moved: p.Moved,
		Probation: h == health.Probation, Share: c.pool.Weight(p.Name, now) / 50 * 50,
	}
	switch {
	case p.Status == view.Draining:
		s.Writes, s.Reads = Failover, c.pool.Usable(p.Name)
	case p.Status != view.In:
		s.Writes = Failover
		s.Clean = reachable
	case reachable && c.heldLocked(p.Name, now):
		s.Writes = Refuse
	case reachable && c.dirtyLocked(p.Name):
		s.Writes, s.Clean = Failover, true
	case reachable || c.pool.Panics():
		s.Reads = c.pool.Usable(p.Name)
	case c.cfg.FailoverAtOnce:
		s.Writes = Failover
	default:
		s.Writes = Refuse
	}
	return s
}

// unheard is how long a server that went away while too few routers could be heard is not
// used when it answers again: the others may have moved its keys, and empty it within a
// second or two.
const unheard = 5 * time.Second

// holdLocked notes that a server is away while the others may decide without this router.
func (c *Cluster) holdLocked(name string, now time.Time) {
	if w := c.watched[name]; w != nil && c.node.Stats().Frozen {
		w.held = now.Add(unheard)
	}
}

func (c *Cluster) heldLocked(name string, now time.Time) bool {
	w := c.watched[name]
	return w != nil && now.Before(w.held)
}

func (c *Cluster) dirtyLocked(name string) bool {
	w := c.watched[name]
	return w != nil && w.dirty()
}
