package router

import (
	"slices"
	"time"

	"cacherouter/balance"
	"cacherouter/bounded"
)

// charge is what a request counts for at the server that it is at. The zero value is
// nothing.
type charge struct {
	bound    *bounded.Bound
	balancer *balance.Balancer
	server   int32 // its index when it was charged
	units    int32
	since    time.Duration // on the router's clock; only if there is a balancer
}

// load charges a request to a server without asking for room.
func (w *worker) load(c *charge, n *node, units int) {
	if w.tally == nil && w.balancer == nil {
		return
	}
	if w.tally != nil {
		w.count(n.index, units)
	}
	w.note(c, n.index, units)
}

// note remembers what was charged.
func (w *worker) note(c *charge, server, units int) {
	*c = charge{bound: w.table.Bound, balancer: w.balancer, server: int32(server), units: int32(units)}
	if c.balancer != nil {
		c.since = w.now()
		c.balancer.Started(server)
	}
}

// unload takes a charge back when the server has answered, or failed to.
func (w *worker) unload(c *charge, failed bool) {
	if c.units == 0 {
		return
	}
	switch {
	case c.bound == nil:
	case c.bound == w.table.Bound:
		w.count(int(c.server), -int(c.units))
	default: // of a table before
		c.bound.Release(int(c.server), int(c.units))
	}
	if c.balancer != nil {
		c.balancer.Done(int(c.server), w.now()-c.since, failed)
	}
	*c = charge{}
}

// count changes what is in flight at a server. The other loops learn of it when the turn ends.
func (w *worker) count(server, units int) {
	w.tally.Add(server, units)
	if w.leaving() {
		w.tally.Settle()
	}
}

// leaving reports whether the turn has ended and what it has written leaves now. A connection that
// fails then, or a client that has taken its replies, may have more sent.
func (w *worker) leaving() bool { return w.left == w.loop.Elapsed() }

// settle tells the other loops what this one has in flight.
func (w *worker) settle() {
	if w.tally != nil {
		w.tally.Settle()
	}
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
// has made them in a former life, or when it had the pool before.
func (w *worker) fledgling() bool { return w.now()-w.p.born < w.p.copyLife() }

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
	w.settle()
	rank, _ := w.table.Bound.Take(picks, barred, 1)
	w.note(c, picks[rank], 1)
	return rank
}

// isFull reports whether a server is at its bound.
func (w *worker) isFull(n *node) bool {
	w.settle()
	b := w.table.Bound
	return b.InFlight(n.index) >= b.Cap(n.index)
}

// choose returns which of the copies of a key is read, by rank.
func (w *worker) choose(picks []int) int {
	w.ranks, w.copies = w.ranks[:0], w.copies[:0]
	for rank, i := range picks[:min(len(picks), w.table.Copies)] {
		if rank == 0 || w.trusted(w.nodes[i]) {
			if w.table.Near != nil && w.table.Near[i] {
				return rank
			}
			w.ranks, w.copies = append(w.ranks, rank), append(w.copies, i)
		}
	}
	return w.ranks[w.balancer.Pick(w.copies)]
}

// Report takes what a server says of its load, for the policy that goes by it. Each loop
// takes it in between two turns; where the table in force has no use for it nothing
// happens. Any goroutine may call it.
func (p *Pool) Report(server string, report balance.Report) {
	p.onBalancers(server, func(b *balance.Balancer, i int) { b.Report(i, report) })
}

// ForgetReports forgets the reports of a server, which is not the process that it was. Any
// goroutine may call it.
func (p *Pool) ForgetReports(server string) {
	p.onBalancers(server, (*balance.Balancer).Forget)
}

// onBalancers does something to each loop's balancer about a server of the table.
func (p *Pool) onBalancers(server string, do func(b *balance.Balancer, server int)) {
	for _, w := range p.workers {
		w.loop.Post(func() {
			i := slices.IndexFunc(w.table.Servers, func(s Server) bool { return s.Name == server })
			if w.balancer != nil && i >= 0 {
				do(w.balancer, i)
			}
		})
	}
}

// believed counts the servers whose reports decide where reads go.
func (w *worker) believed() (n int) {
	if w.balancer == nil || w.table.Balance.Policy != balance.Reported {
		return 0
	}
	for i := range w.table.Servers {
		if w.balancer.Standing(i) == balance.Believed {
			n++
		}
	}
	return n
}

// rebalance makes the balancer of the table in force, or keeps the one there is, and what
// it has learnt, if the table before said the same of servers and policy.
func (w *worker) rebalance(before *Table) {
	t := w.table
	if t.Copies < 2 {
		w.balancer = nil
		return
	}
	if w.balancer != nil && t.balancesLike(before) {
		return
	}
	c := t.Balance
	c.Now = w.loop.Now
	if t.Bound != nil { // of the table in force by then, which has the same servers
		c.InFlight = func(server int) int { return w.tally.InFlight(server) }
	}
	b, err := balance.New(c)
	if err != nil {
		panic("bug: a table with a balance that was not checked: " + err.Error())
	}
	w.balancer = b
}

// balancesLike reports whether two tables choose among copies in the same way: the same
// servers in the same order, and the same policy.
func (t *Table) balancesLike(o *Table) bool {
	sameServer := func(a, b Server) bool { return a.identity() == b.identity() }
	a, b := &t.Balance, &o.Balance
	return slices.EqualFunc(t.Servers, o.Servers, sameServer) && (t.Bound == nil) == (o.Bound == nil) &&
		a.Policy == b.Policy && slices.Equal(a.Weights, b.Weights) && a.Bias == b.Bias && a.Decay == b.Decay &&
		a.ErrorTime == b.ErrorTime && a.ErrorPenalty == b.ErrorPenalty &&
		a.Blackout == b.Blackout && a.Expiry == b.Expiry && a.Update == b.Update
}
