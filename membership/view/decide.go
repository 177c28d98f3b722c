package view

import (
	"time"

	"cacherouter/membership/damping"
)

// decide looks at one server and takes the decision that is due, if any. All routers that
// know the same take the same one.
func (n *Node) decide(server string, now time.Time) {
	d := n.decisions[server]
	if d != nil && d.pending(n.wall(now)) {
		n.reconsider(d, now)
		return
	}
	switch n.status(server, now) {
	case In:
		n.decideIn(server, now)
	case Away:
		n.decideAway(server, now)
	case Out:
		n.decideOut(server, now)
	}
}

// decideIn fails a server over when enough routers cannot reach it.
func (n *Node) decideIn(server string, now time.Time) {
	failing := n.poll(server, now).failing
	if failing == 0 || failing < n.quorum() || !n.mayFailOver() {
		return
	}
	m := n.markOf(server).Charge(n.cfg.Damping, n.cfg.AwayPenalty, n.wall(now))
	n.propose(Decision{Server: server, Was: In, Now: Away, Mark: m}, n.failoverDelay(), now)
}

// decideAway brings a server home that answers again, or moves its keys when it has been
// dead for long enough, or has come and gone too often.
func (n *Node) decideAway(server string, now time.Time) {
	p, m, wall := n.poll(server, now), n.markOf(server), n.wall(now)
	flapping := m.Holds(n.cfg.Damping, wall)
	since := n.decisions[server].At
	switch {
	case n.mayReturn(p) && !flapping:
		n.propose(Decision{Server: server, Was: Away, Now: In, Mark: m}, n.failoverDelay(), now)
	case !n.mayMove():
	case p.dead >= n.quorum(), flapping && wall.Sub(since) >= n.cfg.Steady:
		n.propose(Decision{Server: server, Was: Away, Now: Out, Mark: m}, n.cfg.Activation, now)
	}
}

// decideOut gives a server its keys back, or has them failed over again if too many are out.
func (n *Node) decideOut(server string, now time.Time) {
	p, m := n.poll(server, now), n.markOf(server)
	if n.tooMany(n.decisions[server]) {
		n.propose(Decision{Server: server, Was: Out, Now: Away, Mark: m}, n.cfg.Activation, now)
		return
	}
	if n.mayReturn(p) && p.steady && !n.wall(now).Before(m.Until(n.cfg.Damping)) {
		n.propose(Decision{Server: server, Was: Out, Now: In, Mark: m}, n.cfg.Activation, now)
	}
}

// reconsider calls a change of placement off when its reason has gone. Close to its time
// that is too late: not all routers would hear of it, and then they would switch apart.
func (n *Node) reconsider(d *Decision, now time.Time) {
	wall := n.wall(now)
	if d.Server == "" || d.At.Sub(wall) < n.cfg.Commit {
		return
	}
	p, q := n.poll(d.Server, now), n.quorum()
	flapping := d.Mark.Holds(n.cfg.Damping, wall)
	switch {
	case d.Was == Away && d.Now == Out && (p.dead < q && !flapping || n.tooMany(d)),
		d.Was == Out && d.Now == In && p.failing >= q:
		n.propose(Decision{Server: d.Server, Was: d.Was, Now: d.Was, Mark: d.Mark}, 0, now)
	}
}

// propose takes a decision that is to hold in a while.
func (n *Node) propose(d Decision, delay time.Duration, now time.Time) {
	d.N = 1
	if cur := n.decisions[d.Server]; cur != nil {
		d.N = cur.N + 1
	}
	d.At = n.wall(now).Add(delay).Truncate(time.Millisecond)
	d.Mark.At = d.Mark.At.Truncate(time.Millisecond)
	n.adopt(d, now)
}

// failoverDelay lets the news reach the other routers; a router alone agrees with itself
// at once.
func (n *Node) failoverDelay() time.Duration {
	if n.known() == 1 {
		return 0
	}
	return n.cfg.Failover
}

// markOf returns a server's record of flaps.
func (n *Node) markOf(server string) damping.Mark {
	if d := n.decisions[server]; d != nil {
		return d.mark(&n.cfg)
	}
	return damping.Mark{}
}

// mayReturn reports whether the routers agree that a server is well: all of them, or
// enough if what it missed from the others has been wiped out.
func (n *Node) mayReturn(p poll) bool {
	return p.fine >= n.quorum() && (p.unanimous() || p.flushed)
}

// tally counts servers by what holds or is about to.
func (n *Node) tally() (away, out int) {
	for _, s := range n.list {
		d := n.decisions[s.Name]
		switch {
		case d == nil:
		case d.Now == Away:
			away++
		case d.Now == Out || d.Now == Draining:
			out++
		}
	}
	return away, out
}

// mayFailOver guards against failing over more servers than the others can carry.
func (n *Node) mayFailOver() bool {
	away, out := n.tally()
	return (away+out+1)*1000 <= len(n.list)*n.cfg.MaxAway
}

// mayMove guards against a collapsed placement.
func (n *Node) mayMove() bool {
	_, out := n.tally()
	return out < n.maxOut()
}

func (n *Node) maxOut() int {
	return min(max(1, len(n.list)*n.cfg.MaxOut/1000), len(n.list)-1)
}

// tooMany reports whether a decision takes one server too many out: routers may have
// decided on different servers before they heard of each other. The latest yields.
func (n *Node) tooMany(d *Decision) bool {
	before := 0
	for _, s := range n.list {
		o := n.decisions[s.Name]
		if o == nil || o == d || o.Now != Out && o.Now != Draining {
			continue
		}
		if o.At.Before(d.At) || o.At.Equal(d.At) && o.Server < d.Server {
			before++
		}
	}
	return before >= n.maxOut()
}

// Drain moves a server's keys away while it still serves, at all routers. It reports
// false for a server that is not listed, and for the last one that is placed.
func (n *Node) Drain(server string, now time.Time) bool {
	st := n.status(server, now)
	if !n.lists(server) || st.Placed() && len(n.view.Members()) < 2 {
		return false
	}
	if st != Draining {
		d := Decision{Server: server, Was: st, Now: Draining, Mark: n.markOf(server)}
		n.propose(d, n.cfg.Activation, now)
	}
	return true
}

// Undrain lets a drained server return. It missed what was written meanwhile, so it comes
// back as one that was out. It reports false for a server that is not draining.
func (n *Node) Undrain(server string, now time.Time) bool {
	d := n.decisions[server]
	if d == nil || d.Now != Draining {
		return false
	}
	n.propose(Decision{Server: server, Was: n.status(server, now), Now: Out, Mark: d.Mark}, 0, now)
	return true
}
