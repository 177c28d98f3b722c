package view

import (
	"slices"
	"time"
)

// together is within what time changes are taken for one: routers act on decisions a
// moment apart.
const together = time.Second

// Next returns the servers, sorted by name, of the placement that is decided but does not
// hold yet; nil if none is. Of several to come it is the first.
func (n *Node) Next(now time.Time) []Server {
	at, ok := n.nextChange(now)
	if !ok {
		return nil
	}
	at = at.Add(together)
	list := n.list
	if d := n.decisions[""]; n.waiting(d) && !d.At.After(at) {
		list = n.next
	}
	next := slices.DeleteFunc(slices.Clone(list), func(s Server) bool {
		d := n.decisions[s.Name]
		return d != nil && !d.status(at).Placed()
	})
	if slices.EqualFunc(next, n.view.placed(), alike) {
		return nil
	}
	return next
}

// alike reports whether two servers hold the same keys.
func alike(a, b Server) bool { return a.Name == b.Name && a.Weight == b.Weight }

// waiting reports whether a decision puts the waiting list in force.
func (n *Node) waiting(d *Decision) bool {
	return d != nil && n.next != nil && d.List == n.nextSum
}

// nextChange returns when the placement changes next.
func (n *Node) nextChange(now time.Time) (at time.Time, ok bool) {
	wall := n.wall(now)
	for name, d := range n.decisions {
		changes := name == "" && n.waiting(d) && wall.Before(d.At) ||
			name != "" && d.pending(wall) && d.Was.Placed() != d.Now.Placed()
		if changes && (!ok || d.At.Before(at)) {
			at, ok = d.At, true
		}
	}
	return at, ok
}

// loseBefore forgets the placement before when a router started since: it does not know
// it, and its writes leave alone what the others would read there.
func (n *Node) loseBefore() {
	if n.view.Before == nil {
		return
	}
	since := n.view.Since.Add(-n.cfg.MaxSkew).UnixMilli()
	for _, p := range n.others {
		if p.Boot > uint64(max(0, since)) {
			v := *n.view
			v.Before = nil
			n.view = &v
			return
		}
	}
}
