package admin

import (
	"cmp"
	"iter"
	"slices"

	"cacherouter/router"
)

// Placing is how keys are placed, as whoever has made the placement gives it to be shown.
type Placing struct {
	// Table has the placement as its Picker; its first servers are those that are placed.
	Table *router.Table
	// Weights are those of the servers that are placed.
	Weights []int
	// Distribution is its name, Digest tells it from others.
	Distribution, Digest string
	// Ring says that it is one, Exact that Spans is the placement and not samples of it.
	Ring, Exact bool
	// Spans yields the space of hashes in order, as pairs of a span's last hash and its
	// home.
	Spans iter.Seq2[uint64, int]
}

// Placement is what /api/v1/placement says. It does not change while Digest stays.
type Placement struct {
	Distribution string `json:"distribution"`
	Digest       string `json:"digest"`
	// Shape says how to draw it: ring, or table.
	Shape string `json:"shape"`
	// Exact says that shares are those of the placement itself, not of samples.
	Exact bool `json:"exact"`
	// Total is how many servers hold keys, Servers those with the largest shares, and
	// OthersShare the share of all keys that the rest has, 0 to 1.
	Total       int            `json:"total"`
	Servers     []PlacedServer `json:"servers"`
	OthersShare float64        `json:"others_share"`
	// Cells cuts the space of hashes into equal parts: the server in the middle of each, and
	// the one that takes its place if it fails, as indexes of Servers, -1 for those that are
	// not there. The second list is empty if there is one server only.
	Cells      []int `json:"cells"`
	TakerCells []int `json:"taker_cells"`
}

// PlacedServer is one server and its part of the keys.
type PlacedServer struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
	// Share is the share of all keys that it is home to, 0 to 1.
	Share float64 `json:"share"`
	// Takers are where its keys go if it fails, by share; more than maxTakers are summed up
	// in the last one, which then has no name.
	Takers []Taker `json:"takers"`
}

// Taker is a server that takes keys of one that fails.
type Taker struct {
	Server string `json:"server"`
	// Share is how much of the keys of the failed server it takes, 0 to 1.
	Share float64 `json:"share"`
	// Servers is how many servers are summed up here, if it is not one.
	Servers int `json:"servers,omitempty"`
}

const (
	// numCells is enough for a picture.
	numCells = 720
	// maxTakers is how many takers are named for each server.
	maxTakers = 24
)

// top returns a placement with the n servers that have the largest shares, and the one that
// is named.
func (p *Placement) top(n int, named string) *Placement {
	if len(p.Servers) <= n {
		return p
	}
	order := make([]int, len(p.Servers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			-cmp.Compare(number(p.Servers[a].Name == named), number(p.Servers[b].Name == named)),
			cmp.Compare(p.Servers[b].Share, p.Servers[a].Share),
		)
	})
	out := *p
	out.Servers = nil
	at := make([]int, len(order)) // by index in p: the index in out, or -1
	for rank, i := range order {
		at[i] = -1
		if rank < n {
			at[i] = rank
			out.Servers = append(out.Servers, p.Servers[i])
		} else {
			out.OthersShare += p.Servers[i].Share
		}
	}
	out.Cells, out.TakerCells = renumber(p.Cells, at), renumber(p.TakerCells, at)
	return &out
}

func renumber(cells, at []int) []int {
	out := make([]int, len(cells))
	for i, server := range cells {
		out[i] = at[server]
	}
	return out
}

// placementOf works the picture out: it walks the space of hashes once, and looks at home
// and next candidate of each span.
func placementOf(p *Placing) *Placement {
	out := &Placement{Distribution: p.Distribution, Digest: p.Digest, Shape: "table", Exact: p.Exact, Total: len(p.Weights), Cells: []int{}, TakerCells: []int{}}
	if p.Ring {
		out.Shape = "ring"
	}
	shares := make([]float64, len(p.Weights))
	moves := make(map[[2]int]float64) // by home and taker
	pieces := newCells(p.Spans)
	var picks []int
	for width, at := range pieces.walk(p.Spans) {
		shares[at.home] += width
		picks = p.Table.Picker.Pick(picks[:0], at.last, 2)
		taker := -1
		if len(picks) > 1 {
			taker = picks[1]
			moves[[2]int{at.home, taker}] += width
		}
		for range at.cells {
			out.Cells = append(out.Cells, at.home)
			if taker >= 0 {
				out.TakerCells = append(out.TakerCells, taker)
			}
		}
	}
	for i, w := range p.Weights {
		out.Servers = append(out.Servers, PlacedServer{Name: p.Table.Servers[i].Name, Weight: w, Share: shares[i], Takers: []Taker{}})
	}
	for m, width := range moves {
		s := &out.Servers[m[0]]
		s.Takers = append(s.Takers, Taker{Server: out.Servers[m[1]].Name, Share: width / shares[m[0]]})
	}
	for i := range out.Servers {
		out.Servers[i].Takers = largest(out.Servers[i].Takers)
	}
	return out
}

// largest sorts takers, and sums up those that are too many.
func largest(all []Taker) []Taker {
	slices.SortFunc(all, func(a, b Taker) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Server, b.Server))
	})
	if len(all) <= maxTakers {
		return all
	}
	rest := Taker{Servers: len(all) - maxTakers + 1}
	for _, t := range all[maxTakers-1:] {
		rest.Share += t.Share
	}
	return append(all[:maxTakers-1:maxTakers-1], rest)
}

// cells cut the space of hashes into equal parts.
type cells struct{ whole float64 }

// newCells learns how large the space is: some programs' hashes have less than 64 bits.
func newCells(spans iter.Seq2[uint64, int]) cells {
	largest := uint64(0)
	for last := range spans {
		largest = last
	}
	return cells{float64(largest) + 1}
}

// span is one span: its last hash, its home, and how many cells have their middle in it.
type span struct {
	last        uint64
	home, cells int
}

// walk yields the spans and the share of the space that each has.
func (c cells) walk(spans iter.Seq2[uint64, int]) iter.Seq2[float64, span] {
	return func(yield func(float64, span) bool) {
		start, done := 0.0, 0
		for last, home := range spans {
			end := (float64(last) + 1) / c.whole
			reached := int(end*numCells + 0.5)
			if !yield(end-start, span{last, home, reached - done}) {
				return
			}
			start, done = end, reached
		}
	}
}
