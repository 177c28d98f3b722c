package view

import (
	"slices"
	"time"

	"cacherouter/membership/health"
)

// Explanation is why a server has the status it has.
type Explanation struct {
	Status Status
	// Next and At are what it will be and when, on the routers' common clock, if a decision
	// is still to take effect. At is zero otherwise.
	Next Status
	At   time.Time
	// Opinions are what the routers say, by name; only those of Voters count.
	Opinions map[string]health.Opinion
	Voters   []string
	// Quorum is how many voters it takes.
	Quorum int
	// Penalty is for flapping, and Until the time before which the server does not get its
	// keys back because of it; zero if it is in.
	Penalty int
	Until   time.Time
}

// Explain explains a server's status; false for one that is not listed.
func (n *Node) Explain(server string, now time.Time) (Explanation, bool) {
	if !n.lists(server) {
		return Explanation{}, false
	}
	e := Explanation{
		Status: n.status(server, now), Quorum: n.quorum(), Voters: []string{n.cfg.Router},
		Opinions: map[string]health.Opinion{n.cfg.Router: n.verdict(server, now).Opinion},
	}
	for name, p := range n.others {
		e.Opinions[name] = p.of(server).Opinion
		if n.votes(p) {
			e.Voters = append(e.Voters, name)
		}
	}
	slices.Sort(e.Voters)
	m := n.markOf(server)
	e.Penalty = m.Value(n.cfg.Damping, n.wall(now))
	if e.Status == Out {
		e.Until = m.Until(n.cfg.Damping)
	}
	if d := n.decisions[server]; d != nil && d.pending(n.wall(now)) {
		e.Next, e.At = d.Now, d.At
	}
	return e, true
}
