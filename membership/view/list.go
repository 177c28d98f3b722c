package view

import (
	"slices"
	"strings"
	"time"
)

// SetList says which servers there are now. Changes of addresses hold at once. Other
// names or weights hold when the routers agree on them, or after Patience without
// agreement: an operator who changes one router only wants just that, and gets an alarm.
// An empty list is refused, and false returned.
func (n *Node) SetList(list []Server, now time.Time) bool {
	if len(list) == 0 {
		return false
	}
	sorted := sortedList(list)
	sum := Digest(n.cfg.Parameters, sorted)
	switch {
	case sum == n.listed:
		n.next, n.list = nil, sorted
	case n.next != nil && sum == n.nextSum:
		n.next = sorted
	default:
		n.next, n.nextSum, n.nextAt = sorted, sum, now
		n.dirty = true
	}
	n.activate(now)
	return true
}

// SetParameters changes what else the placement depends on, at once and at this router
// alone: until the others have changed it too, their lists count as different ones.
func (n *Node) SetParameters(parameters string, now time.Time) {
	if parameters == n.cfg.Parameters {
		return
	}
	n.cfg.Parameters = parameters
	n.use(n.list)
	if n.next != nil {
		n.nextSum = Digest(parameters, n.next)
	}
	n.view = n.build(now) // without one before, which was made in another way
	n.moved++
	n.dirty = true
}

// use puts a list in force and drops what was decided on servers it no longer has.
func (n *Node) use(list []Server) {
	n.list = sortedList(list)
	n.listed = Digest(n.cfg.Parameters, n.list)
	for name := range n.decisions {
		if name != "" && !n.lists(name) {
			delete(n.decisions, name)
			delete(n.adopted, name)
			delete(n.returning, name)
		}
	}
}

func (n *Node) lists(server string) bool {
	_, ok := slices.BinarySearchFunc(n.list, server, func(s Server, name string) int {
		return strings.Compare(s.Name, name)
	})
	return ok
}

// decideList proposes the waiting list when all routers that can be heard have it, or
// most of them have had it for long enough.
func (n *Node) decideList(now time.Time) {
	if n.next == nil {
		return
	}
	if d := n.decisions[""]; d != nil && d.List == n.nextSum && n.wall(now).Before(d.At) {
		return
	}
	have := 1
	for _, p := range n.others {
		if p.fresh && (p.Pending == n.nextSum || p.List == n.nextSum) {
			have++
		}
	}
	waited := now.Sub(n.nextAt) >= n.cfg.Patience
	if have*2 > n.known() && (waited || have == n.present()) {
		delay := n.cfg.Activation
		if n.known() == 1 {
			delay = 0
		}
		n.propose(Decision{List: n.nextSum}, delay, now)
	}
}

// takeList puts the waiting list in force when its time has come.
func (n *Node) takeList(now time.Time) {
	d := n.decisions[""]
	if n.waiting(d) && !n.wall(now).Before(d.At) {
		n.change(n.next, d.At)
		n.next = nil
	}
}

// change puts another list in force. To those that gain by it keys have moved from servers that keep
// what they held, as to one that was out and is back. It is noted in the same way, as routers that start
// later must know of it too.
func (n *Node) change(list []Server, at time.Time) {
	before := n.list
	n.use(list)
	for _, name := range gainers(n.list, before) {
		switch d := n.decisions[name]; {
		case d == nil:
			n.decisions[name] = &Decision{Server: name, N: outAndBack, At: at}
		case d.N < outAndBack:
			later := *d
			later.N = outAndBack
			n.decisions[name] = &later
		}
	}
}

// gainers returns the servers that keys move to when a list takes the place of another: those that
// are new, or any when weights have changed.
func gainers(list, before []Server) (names []string) {
	weights := make(map[string]int, len(before))
	for _, s := range before {
		weights[s.Name] = s.Weight
	}
	reweighted := slices.ContainsFunc(list, func(s Server) bool { return weights[s.Name] > 0 && weights[s.Name] != s.Weight })
	for _, s := range list {
		if reweighted || weights[s.Name] == 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// loseNext puts the waiting list in force without agreement when there was none.
func (n *Node) loseNext(now time.Time) {
	if n.next != nil && now.Sub(n.nextAt) >= n.cfg.Patience+n.cfg.Activation {
		n.change(n.next, n.wall(now))
		n.next = nil
		n.activate(now)
	}
}
