package view

import (
	"slices"
	"strings"
	"time"
)

// Neighbour is what this router knows of another one.
type Neighbour struct {
	Name string
	// Heard is when it last said something new, on this process's clock.
	Heard time.Time
	// Present says that it can be heard, Abstains that it does not trust its own
	// observations, and Votes that its verdicts count here.
	Present, Abstains, Votes bool
	// SameList says that it has this router's list of servers and parameters, SamePlacement
	// that it places keys as this one does.
	SameList, SamePlacement bool
}

// Neighbours returns the other routers that are known, sorted by name, without those that
// have said good-bye.
func (n *Node) Neighbours() []Neighbour {
	var all []Neighbour
	for name, p := range n.others {
		if p.Left {
			continue
		}
		all = append(all, Neighbour{
			Name: name, Heard: p.heard, Present: p.fresh, Abstains: p.Abstains, Votes: n.votes(p),
			SameList: p.List == n.listed, SamePlacement: p.Placement == n.view.Digest,
		})
	}
	slices.SortFunc(all, func(a, b Neighbour) int { return strings.Compare(a.Name, b.Name) })
	return all
}
