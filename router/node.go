package router

import (
	"sync/atomic"
	"time"

	"cacherouter/backend"
)

// standing is what the loops of a router have in common about a server. It outlives
// tables.
type standing struct {
	health backend.Health
	// distrusted is until when no copy on the server may be read, on the router's clock: a
	// copy that should have been deleted may still be there.
	distrusted atomic.Int64
	// failedOver is when a write last went to another server in its place, on the router's
	// clock; 0 if none did. What was written there may live on for a while.
	failedOver atomic.Int64
}

// distrust keeps copies on the server from being read until a time on the router's clock.
func (st *standing) distrust(until time.Duration) {
	for {
		old := st.distrusted.Load()
		if old >= int64(until) || st.distrusted.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// node is a server as one loop sees it, and how it may be used now.
type node struct {
	*backend.Server
	use      Server // as in the table in force
	index    int    // in it
	standing *standing
}

// identity is what makes a server another one.
type identity struct{ name, address string }

func (s *Server) identity() identity { return identity{s.Name, s.Address} }

// well reports whether nothing need be known of the server but where it is.
func (s *Server) well() bool {
	return *s == Server{Name: s.Name, Address: s.Address}
}

// lingers reports whether what was written elsewhere in the server's place may still be
// there.
func (w *worker) lingers(n *node) bool {
	at := n.standing.failedOver.Load()
	return at != 0 && w.now()-time.Duration(at) < w.p.cfg.FailoverTTL+w.p.copyMargin()
}

// answers reports whether it makes sense to ask the server for anything.
func (s *Server) answers() bool {
	return s.Writes == WriteHere || s.Clean || s.Reads != ReadNext
}

// recoversFrom reports whether the server answers more than when it was used as before.
func (s *Server) recoversFrom(before *Server) bool {
	return s.answers() && !before.answers() ||
		s.Writes == WriteHere && before.Writes != WriteHere ||
		s.Reads != ReadNext && before.Reads == ReadNext
}

// trusted reports whether a copy on the server may be read.
func (w *worker) trusted(n *node) bool {
	return n.use.Reads == ReadHere && !n.Retired() && n.standing.distrusted.Load() < int64(w.now())
}

// readable reports whether the server takes a read of a key that lives on it.
func (w *worker) readable(n *node) bool {
	switch n.use.Reads {
	case ReadHere:
		return true
	case ReadOne:
		m := w.p.cfg.Membership
		return m == nil || m.Admit(n.use.Name)
	}
	return false
}
