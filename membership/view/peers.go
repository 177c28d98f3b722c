package view

import (
	"slices"
	"time"

	"cacherouter/membership/health"
)

// peer is another router.
type peer struct {
	Observer
	heard time.Time // when it last said something new
	spoke bool      // to this router; else others have told of it
	skew  time.Duration
	fresh bool
}

// maxPeers bounds how many routers are remembered.
const maxPeers = 256

// hear takes in what a router says, or what another one relays of it. A router that only
// others have told of is known, and not taken to be present: it may have died long ago.
func (n *Node) hear(o *Observer, relayed bool, now time.Time) {
	if o.Router == n.cfg.Router {
		if o.Boot > n.self.Boot { // our clock was set back: outbid our former self
			n.self.Boot = o.Boot + 1
			n.dirty = true
		}
		return
	}
	p := n.others[o.Router]
	switch {
	case p == nil && (len(n.others) >= maxPeers || n.forgot(o)):
		return
	case p == nil:
		p = &peer{fresh: !relayed}
		n.others[o.Router] = p
		n.dirty = true
	case !o.newerThan(&p.Observer):
		return
	case o.Boot != p.Boot:
		n.taint() // its journals are gone
	}
	if p.heard.IsZero() || now.Sub(p.heard) >= n.cfg.Fresh || o.Boot != p.Boot {
		n.met, n.dirty = now, true
	}
	p.Observer, p.heard, p.skew = *o, now, o.Sent.Sub(now.Round(0))
	p.spoke = p.spoke || !relayed
}

// age notices which routers have fallen silent.
func (n *Node) age(now time.Time) {
	for name, p := range n.others {
		age := now.Sub(p.heard)
		fresh := age < n.cfg.Fresh && p.spoke && !p.Left
		if p.fresh && !fresh {
			n.taint()
		}
		p.fresh = fresh
		if p.Left && age >= n.cfg.Fresh || age >= n.cfg.Forget {
			n.forget(name, p)
		}
	}
}

// Forget says that a router is gone for good, so that this one no longer waits for it. It
// reports false for one that is not waited for: it is unknown, can be heard, or has said
// good-bye. One that speaks again is known again.
func (n *Node) Forget(router string) bool {
	p := n.others[router]
	if p == nil || p.fresh || p.Left {
		return false
	}
	n.forget(router, p)
	return true
}

func (n *Node) forget(router string, p *peer) {
	delete(n.others, router)
	if len(n.forgotten) >= maxPeers {
		clear(n.forgotten)
	}
	n.forgotten[router] = Observer{Boot: p.Boot, Seq: p.Seq}
}

// forgot reports whether a record is of a router that was forgotten, and tells nothing that
// was not known then. Routers forget at different times, and would remind each other for
// ever.
func (n *Node) forgot(o *Observer) bool {
	last, ok := n.forgotten[o.Router]
	if !ok || o.newerThan(&last) {
		delete(n.forgotten, o.Router)
		return false
	}
	return true
}

// known is how many routers there are, this one included.
func (n *Node) known() int {
	k := 1
	for _, p := range n.others {
		if !p.Left {
			k++
		}
	}
	return max(k, n.cfg.Expected)
}

// present is how many of them can be heard.
func (n *Node) present() int {
	k := 1
	for _, p := range n.others {
		if p.fresh {
			k++
		}
	}
	return k
}

// frozen reports whether this router hears too few others that use the same list to
// decide anything.
func (n *Node) frozen() bool {
	k := 1
	for _, p := range n.others {
		if p.fresh && p.List == n.listed {
			k++
		}
	}
	return k*2 <= n.known()
}

// trusted reports whether this router takes part in deciding.
func (n *Node) trusted() bool { return !n.self.Abstains && !n.self.Left }

// voters counts the routers whose verdicts count here: those that can be heard, trust
// themselves, and use the same list.
func (n *Node) voters() int {
	k := 1
	for _, p := range n.others {
		if n.votes(p) {
			k++
		}
	}
	return k
}

func (n *Node) votes(p *peer) bool { return p.fresh && !p.Abstains && p.List == n.listed }

// quorum is how many voters it takes. A router that knows others never decides alone.
func (n *Node) quorum() int {
	q := n.voters()/2 + 1
	if n.known() > 1 {
		q = max(q, 2)
	}
	return q
}

// poll is what the voters say of a server.
type poll struct {
	failing, dead, fine int
	steady              bool // every fine voter has seen it answer for long enough
	flushed             bool // a fine voter has emptied it
	others              int  // neither of these, or without a vote and not fine
	first               string
}

func (n *Node) poll(server string, now time.Time) poll {
	p := poll{steady: true}
	n.count(&p, n.cfg.Router, n.verdict(server, now), 0)
	for name, o := range n.others {
		v := o.of(server)
		switch {
		case n.votes(o):
			n.count(&p, name, v, now.Sub(o.heard))
		case o.fresh && v.Opinion != health.Fine:
			// It has no vote, but it may have failed writes over that the server still misses.
			p.others++
		}
	}
	return p
}

func (n *Node) count(p *poll, router string, v Verdict, age time.Duration) {
	switch v.Opinion {
	case health.Dead:
		p.dead++
		p.failing++
	case health.Failing:
		p.failing++
	case health.Fine:
		p.fine++
		p.steady = p.steady && v.For+age >= n.cfg.Steady
		p.flushed = p.flushed || v.Flushed
		if p.first == "" || router < p.first {
			p.first = router
		}
	default:
		p.others++
	}
}

// unanimous reports whether all that can be heard find the server fine.
func (p poll) unanimous() bool { return p.failing+p.others == 0 }

// of returns what a router says of a server. Not being mentioned means fine, and by the
// time the server has been away for a moment it is mentioned.
func (o *Observer) of(server string) Verdict {
	for _, v := range o.Verdicts {
		if v.Server == server {
			return v
		}
	}
	return Verdict{Server: server, Opinion: health.Fine}
}

// measureSkew takes the median of how far the others' clocks are from ours.
func (n *Node) measureSkew() {
	skews := []time.Duration{0}
	for _, p := range n.others {
		if p.fresh {
			skews = append(skews, p.skew)
		}
	}
	slices.Sort(skews)
	n.skew = skews[len(skews)/2]
}

// skewed reports whether our clock is wrong, as far as the others can tell.
func (n *Node) skewed() bool { return n.skew.Abs() > n.cfg.MaxSkew }
