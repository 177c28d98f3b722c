package admin

import (
	"cmp"
	"slices"
	"time"

	"cacherouter/membership/view"
)

// Routers is what /api/v1/routers says.
type Routers struct {
	// Known, Present and Voters count all routers, those that can be heard, and those
	// whose verdicts count, this one included.
	Known   int `json:"known"`
	Present int `json:"present"`
	Voters  int `json:"voters"`
	// Frozen says that too few can be heard to decide anything, Abstains that this one
	// does not trust what it sees.
	Frozen   bool `json:"frozen"`
	Abstains bool `json:"abstains"`
	// ListsDiffer and PlacementsDiffer say that this has been so for too long.
	ListsDiffer      bool `json:"lists_differ"`
	PlacementsDiffer bool `json:"placements_differ"`
	// Routers are those that gossip, agents beside servers included, and routers that have
	// fallen silent.
	Routers []Peer `json:"routers"`
}

// Peer is one router or agent.
type Peer struct {
	Name string `json:"name"`
	// Address is where it gossips, empty if it does not any more.
	Address string `json:"address"`
	// Kind is self, router or agent; a router that has said nothing yet looks like an agent.
	Kind string `json:"kind"`
	// Present says that a router can be heard, Votes that its verdicts count, Agrees that it
	// has this one's list of servers and places keys as this one does.
	Present bool `json:"present"`
	Votes   bool `json:"votes"`
	Agrees  bool `json:"agrees"`
	// Silent is how long it has said nothing new; 0 for itself and agents.
	Silent float64 `json:"silent_seconds"`
}

// The kinds of peers.
const (
	kindSelf   = "self"
	kindRouter = "router"
	kindAgent  = "agent"
)

// routersOf puts together what is known about the routers.
func (s *Server) routersOf() Routers {
	m := s.cfg.Membership
	v := m.Stats().View
	out := Routers{
		Known: v.Known, Present: v.Present, Voters: v.Voters, Frozen: v.Frozen, Abstains: v.Abstains,
		ListsDiffer: v.ListsDiffer, PlacementsDiffer: v.PlacementsDiffer, Routers: []Peer{},
	}
	neighbours := make(map[string]view.Neighbour)
	for _, n := range m.Neighbours() {
		neighbours[n.Name] = n
	}
	for _, g := range m.Routers() {
		n, known := neighbours[g.Name]
		delete(neighbours, g.Name)
		switch p := (Peer{Name: g.Name, Address: g.Address, Kind: kindAgent, Present: true}); {
		case g.Name == s.cfg.Name:
			p.Kind, p.Votes, p.Agrees = kindSelf, !v.Abstains, true
			out.Routers = append(out.Routers, p)
		case known:
			out.Routers = append(out.Routers, peerOf(n, g.Address))
		default:
			out.Routers = append(out.Routers, p)
		}
	}
	for _, n := range neighbours {
		out.Routers = append(out.Routers, peerOf(n, ""))
	}
	slices.SortFunc(out.Routers, func(a, b Peer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func peerOf(n view.Neighbour, address string) Peer {
	p := Peer{Name: n.Name, Address: address, Kind: kindRouter, Present: n.Present, Votes: n.Votes, Agrees: n.SameList && n.SamePlacement}
	if !n.Heard.IsZero() {
		p.Silent = time.Since(n.Heard).Round(time.Millisecond).Seconds()
	}
	return p
}
