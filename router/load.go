package router

import (
	"time"

	"cacherouter/balance"
	"cacherouter/bounded"
)

// charge is what a request counts for at the server that it is at. The zero value is
// nothing.
type charge struct {
	bound    *bounded.Bound
	balancer *balance.Balancer
	server   int // its index when it was charged
	units    int
	since    time.Time
}

// load charges a request to a server without asking for room.
func (w *worker) load(c *charge, n *node, units int) {
	b := w.table.Bound
	if b == nil && w.balancer == nil {
		return
	}
	if b != nil {
		b.Add(n.index, units)
	}
	w.note(c, n.index, units)
}

// note remembers what was charged.
func (w *worker) note(c *charge, server, units int) {
	*c = charge{bound: w.table.Bound, balancer: w.balancer, server: server, units: units}
	if c.balancer != nil {
		c.since = w.loop.Now()
		c.balancer.Started(server)
	}
}

// unload takes a charge back when the server has answered, or failed to.
func (w *worker) unload(c *charge, failed bool) {
	if c.units == 0 {
		return
	}
	if c.bound != nil {
		c.bound.Release(c.server, c.units)
	}
	if c.balancer != nil {
		c.balancer.Done(c.server, w.loop.Now().Sub(c.since), failed)
	}
	*c = charge{}
}

// spills reports whether a key may be read from elsewhere when its home is full.
func (w *worker) spills(hash uint64) bool {
	t := w.table
	switch t.Spill {
	case SpillNone:
		return false
	case SpillHot:
		if !w.hot(hash) {
			return false
		}
	}
	return t.Bound != nil && !w.fledgling()
}

// fledgling reports whether copies may be there that this router does not know of, as it
// has made them in a former life.
func (w *worker) fledgling() bool { return w.now() < copyTTL*time.Second+w.r.copyMargin() }

// copied reports whether the copies of a pool may be read.
func (w *worker) copied() bool { return w.balancer != nil && !w.fledgling() }

// roomFor returns which of a key's candidates has room for a read, and charges it.
func (w *worker) roomFor(c *charge, picks []int) int {
	picks = picks[:min(len(picks), w.table.Bound.Depth()+1)]
	var barred uint32
	for rank, i := range picks[1:] {
		if !w.trusted(w.nodes[i]) {
			barred |= 2 << rank
		}
	}
	rank, _ := w.table.Bound.Take(picks, barred, 1)
	w.note(c, picks[rank], 1)
	return rank
}

// isFull reports whether a server is at its bound.
func (w *worker) isFull(n *node) bool {
	b := w.table.Bound
	return b.InFlight(n.index) >= b.Cap(n.index)
}

// choose returns which of the copies of a key is read, by rank.
func (w *worker) choose(picks []int) int {
	w.ranks, w.copies = w.ranks[:0], w.copies[:0]
	for rank, i := range picks[:min(len(picks), w.table.Copies)] {
		if rank == 0 || w.trusted(w.nodes[i]) {
			w.ranks, w.copies = append(w.ranks, rank), append(w.copies, i)
		}
	}
	return w.ranks[w.balancer.Pick(w.copies)]
}

// balanceFor makes the balancer of a table, or keeps the one there is if the servers are
// the same.
func (w *worker) balanceFor(t *Table) {
	if t.Copies < 2 {
		w.balancer = nil
		return
	}
	if w.balancer != nil && w.table != nil && t.sameServers(w.table) {
		return
	}
	c := t.Balance
	c.Now = w.loop.Now
	if t.Bound != nil {
		c.InFlight = t.Bound.InFlight
	}
	b, err := balance.New(c)
	if err != nil {
		panic("bug: a table with a balance that was not checked: " + err.Error())
	}
	w.balancer = b
}

// sameServers reports whether two tables list the same servers in the same order.
func (t *Table) sameServers(o *Table) bool {
	if len(t.Servers) != len(o.Servers) || t.Bound != o.Bound {
		return false
	}
	for i := range t.Servers {
		if t.Servers[i].identity() != o.Servers[i].identity() {
			return false
		}
	}
	return true
}
