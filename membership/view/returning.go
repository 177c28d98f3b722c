package view

import (
	"slices"
	"strings"
	"time"

	"cacherouter/membership/health"
)

// returning is a server that is not in, as this router has to deal with it.
type returning struct {
	tainted bool      // somebody's record of what it missed is lost
	clean   bool      // what it missed has been made good
	flushed bool      // by emptying it
	stalled time.Time // since when only a minority holds it back; zero if none does
	told    bool
}

// Return is a server that answers again and is not to serve before what it missed has
// been made good.
type Return struct {
	Server string
	// Flush says that replaying this router's journal is not enough, as somebody else's is
	// lost or cannot be replayed.
	Flush bool
}

// track keeps account of the servers that are not in.
func (n *Node) track(now time.Time) {
	for _, s := range n.list {
		st, r := n.status(s.Name, now), n.returning[s.Name]
		switch {
		case st == In:
			delete(n.returning, s.Name)
			continue
		case r == nil:
			// A decision that is older than this run was journaled by nobody here.
			r = &returning{tainted: n.decisions[s.Name].At.Before(n.started.Round(0))}
			n.returning[s.Name] = r
		}
		r.tainted = r.tainted || st == Out || st == Draining
		n.trackOpinion(s.Name, r, now)
	}
}

// trackOpinion notices that the server has failed once more, which voids what was made
// good, and that a minority holds it back.
func (n *Node) trackOpinion(server string, r *returning, now time.Time) {
	if o := n.judge.Verdict(server, now).Opinion; o != health.Fine {
		if o != health.Unsure {
			r.clean, r.flushed, r.told = false, false, false
		}
		r.stalled = time.Time{}
		return
	}
	p := n.poll(server, now)
	switch {
	case p.unanimous() || p.fine < n.quorum() || p.flushed:
		r.stalled = time.Time{}
	case r.stalled.IsZero():
		r.stalled = now
	case now.Sub(r.stalled) >= n.cfg.Patience && p.first == n.cfg.Router && !r.tainted:
		r.tainted, r.clean, r.told = true, false, false
	}
}

// taint notes that a router's journals are lost: of every server that is not in, nobody
// knows any more all that it missed.
func (n *Node) taint() {
	for _, r := range n.returning {
		r.tainted = true
		if !r.flushed {
			r.clean, r.told = false, false
		}
	}
}

// Returning returns the servers that have begun to answer since the last call. For each
// the caller makes good what it missed and then calls Cleaned, or Failed.
func (n *Node) Returning(now time.Time) []Return {
	var all []Return
	for name, r := range n.returning {
		if r.told || r.clean || n.judge.Verdict(name, now).Opinion != health.Fine {
			continue
		}
		if n.status(name, now) == Draining {
			continue
		}
		r.told = true
		all = append(all, Return{name, r.tainted})
	}
	slices.SortFunc(all, func(a, b Return) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// Cleaned says that what a server missed has been made good. Emptied says that nothing of
// what it held before is left, because it was flushed or is a new process.
func (n *Node) Cleaned(server string, emptied bool) {
	r := n.returning[server]
	if r == nil || r.tainted && !emptied {
		if r != nil {
			r.told = false // tainted meanwhile: once more, with a flush
		}
		return
	}
	r.clean, r.flushed = true, emptied
}

// CleaningFailed says that it could not be; the server is returned by Returning again.
func (n *Node) CleaningFailed(server string) {
	if r := n.returning[server]; r != nil {
		r.told = false
	}
}

// Missed says that a server has missed one more write since it was cleaned.
func (n *Node) Missed(server string) {
	if r := n.returning[server]; r != nil && r.clean {
		r.clean, r.told = false, false
	}
}
