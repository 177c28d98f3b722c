package view

import (
	"slices"
	"time"

	"cacherouter/membership/health"
)

// Judge is what this router itself makes of the servers; [health.Pool] is one.
type Judge interface {
	// Verdict returns the opinion on a server.
	Verdict(server string, now time.Time) health.Verdict
	// Abstains reports whether the opinions are to be trusted.
	Abstains(now time.Time) bool
}

// Node is one router's part in deciding.
type Node struct {
	cfg   Config
	judge Judge

	list    []Server // in force, sorted; never empty once set
	listed  uint64   // its digest
	next    []Server // to come, or nil
	nextSum uint64
	nextAt  time.Time // since when it waits

	self      Observer
	others    map[string]*peer
	forgotten map[string]Observer // routers that were, and what was last heard of them
	decisions map[string]*Decision
	adopted   map[string]time.Time // when each decision came to be known here
	returning map[string]*returning

	view    *View
	moved   uint64 // digests seen so far that differ from the one before
	started time.Time
	ticked  time.Time
	settle  time.Time // until when nothing is decided
	sent    time.Time // the last beat
	met     time.Time // when a router was last heard that had not been for a while
	dirty   bool      // something is to be sent at once
	skew    time.Duration
	alarms  alarms
}

// New returns a node that begins with a list, which must not be empty.
func New(c Config, j Judge, list []Server, now time.Time) *Node {
	n := &Node{
		cfg: c.WithDefaults(), judge: j, others: map[string]*peer{}, forgotten: map[string]Observer{},
		decisions: map[string]*Decision{}, adopted: map[string]time.Time{},
		returning: map[string]*returning{}, started: now, ticked: now,
	}
	n.self = Observer{Router: c.Router, Boot: c.Boot}
	n.use(list)
	if !c.Alone {
		n.settle = now.Add(n.cfg.Settle)
	}
	n.view = n.build(now)
	n.observe(now)
	return n
}

// View returns the present view. It is never changed; a new one replaces it.
func (n *Node) View() *View { return n.view }

// Tick lets time pass; call it several times a second.
func (n *Node) Tick(now time.Time) {
	gap := now.Sub(n.ticked)
	if gap < 0 && gap > -n.cfg.Pause/2 {
		now, gap = n.ticked, 0 // who calls read the clock before it waited for others
	}
	if gap > n.cfg.Pause || gap < 0 {
		n.settle = now.Add(n.cfg.Settle)
	}
	n.ticked = now
	n.age(now)
	n.measureSkew()
	n.activate(now)
	n.track(now)
	n.observe(now)
	if n.trusted() || n.alone() { // a list rests on no observation, but wants agreement
		n.decideList(now)
	}
	if !n.frozen() {
		doubted, trusted := n.doubted(), n.trusted()
		for _, s := range n.list {
			if (doubted[s.Name] || n.decisions[s.Name] != nil) && (trusted || n.mayGiveBack(s.Name, now)) {
				n.decide(s.Name, now)
			}
		}
	}
	n.activate(now)
	n.loseNext(now)
	n.loseBefore()
	n.compare(now)
}

// doubted returns the servers that any router mentions. All others are in and fine, which
// with many servers and routers is not worth a poll of each.
func (n *Node) doubted() map[string]bool {
	all := map[string]bool{}
	for _, v := range n.self.Verdicts {
		all[v.Server] = true
	}
	for _, p := range n.others {
		for _, v := range p.Verdicts {
			all[v.Server] = true
		}
	}
	return all
}

// alone reports whether there are no other routers to agree with.
func (n *Node) alone() bool { return n.known() == 1 && !n.self.Left }

// mayGiveBack reports whether a router that does not trust itself may decide on a server
// all the same: it may if it is alone and the server is to return. That it answers is
// certain, and if most servers are down those that answer must not stay away as well.
func (n *Node) mayGiveBack(server string, now time.Time) bool {
	return n.alone() && n.status(server, now) != In && n.mayReturn(n.poll(server, now))
}

// wall is the routers' common clock: our own, unless the others agree that it is wrong.
func (n *Node) wall(now time.Time) time.Time {
	if n.skewed() {
		now = now.Add(n.skew)
	}
	return now.Round(0)
}

// status returns a server's present status.
func (n *Node) status(server string, now time.Time) Status {
	if d := n.decisions[server]; d != nil {
		return d.status(n.wall(now))
	}
	return In
}

// activate brings the view up to date.
func (n *Node) activate(now time.Time) {
	n.takeList(now)
	if n.current(now) {
		return
	}
	v := n.build(now)
	if v.Digest == n.view.Digest {
		v.Since, v.Before = n.view.Since, n.view.Before
	} else {
		n.moved++
		v.Before = n.view.placed()
	}
	n.view = v
}

// current reports whether the view is what a new one would be.
func (n *Node) current(now time.Time) bool {
	if n.version(now) != n.view.Version || len(n.list) != len(n.view.Servers) {
		return false
	}
	for i, s := range n.list {
		if p := &n.view.Servers[i]; p.Server != s || p.Status != n.status(s.Name, now) {
			return false
		}
	}
	return true
}

func (n *Node) build(now time.Time) *View {
	v := &View{
		Version: n.version(now), List: n.listed, Since: n.wall(now),
		Servers: make([]Placed, len(n.list)),
	}
	for i, s := range n.list {
		v.Servers[i] = Placed{s, n.status(s.Name, now), n.hasMoved(s.Name)}
	}
	v.Digest = digest(n.cfg.Parameters, v.Members())
	return v
}

// outAndBack is how many decisions it takes to go out and come back.
const outAndBack = 3

// hasMoved reports whether others may hold old items of a server's keys, as those were theirs once. It
// may be wrong, of one that was only away, twice.
func (n *Node) hasMoved(server string) bool {
	d := n.decisions[server]
	return d != nil && d.N >= outAndBack
}

// version counts the decisions that hold.
func (n *Node) version(now time.Time) uint64 {
	wall, version := n.wall(now), uint64(0)
	for _, d := range n.decisions {
		version += d.N
		if wall.Before(d.At) {
			version--
		}
	}
	return version
}

// observe makes this router's own record.
func (n *Node) observe(now time.Time) {
	o := &n.self
	o.Seq++
	o.Sent, o.List, o.Pending, o.Placement = now.Round(time.Millisecond), n.listed, n.listed, n.view.Digest
	if n.next != nil {
		o.Pending = n.nextSum
	}
	abstained, before := o.Abstains, o.Verdicts
	o.Abstains = n.judge.Abstains(now) || now.Before(n.settle) || n.skewed()
	o.Verdicts = nil // the old slice may be in a message
	for _, s := range n.list {
		v := n.verdict(s.Name, now)
		if v.Opinion != health.Fine || n.status(s.Name, now) != In {
			o.Verdicts = append(o.Verdicts, v)
		}
	}
	n.dirty = n.dirty || abstained != o.Abstains || !slices.EqualFunc(before, o.Verdicts, sameOpinion)
}

func sameOpinion(a, b Verdict) bool {
	a.For, b.For = 0, 0
	return a == b
}

// verdict is what this router says of a server: one that is to come back is not fine
// before what it missed has been made good.
func (n *Node) verdict(server string, now time.Time) Verdict {
	v := n.judge.Verdict(server, now)
	out := Verdict{Server: server, Opinion: v.Opinion, For: max(0, now.Sub(v.Since))}
	if r := n.returning[server]; r != nil {
		out.Flushed = r.flushed
		if v.Opinion == health.Fine && !r.clean {
			out.Opinion = health.Unsure
		}
	}
	return out
}

// Due returns how long it is until the next decision takes effect, so that the caller can
// tick just then; false if none is to.
func (n *Node) Due(now time.Time) (time.Duration, bool) {
	var first time.Duration
	found := false
	for _, d := range n.decisions {
		if in := d.At.Sub(n.wall(now)); in > 0 && (!found || in < first) {
			first, found = in, true
		}
	}
	return first, found
}

// Step takes in a message. Its first record is the sender's own.
func (n *Node) Step(m Message, now time.Time) {
	for i := range m.Observers {
		n.hear(&m.Observers[i], i > 0, now)
	}
	for i := range m.Decisions {
		n.adopt(m.Decisions[i], now)
	}
}

// maxAhead is how far in the future a decision may lie. One that lies further was made by
// a clock that is wrong; it is taken when its time is nearer, if it still stands.
const maxAhead = 10 * time.Second

// adopt takes a decision in if it beats what is known.
func (n *Node) adopt(d Decision, now time.Time) {
	if d.Server != "" && !n.lists(d.Server) || d.At.After(n.wall(now).Add(maxAhead)) {
		return
	}
	if cur := n.decisions[d.Server]; cur != nil && !d.beats(cur) {
		return
	}
	n.decisions[d.Server] = &d
	n.adopted[d.Server] = now
	n.dirty = true
}

// Beat returns the message to send to the other routers now, if one is due: this router's
// record and the decisions that are new, or all of them when somebody may have missed some.
func (n *Node) Beat(now time.Time) (Message, bool) {
	if !n.dirty && now.Sub(n.sent) < n.cfg.Beat {
		return Message{}, false
	}
	n.dirty, n.sent = false, now
	m := Message{Observers: []Observer{n.self}}
	all := now.Sub(n.met) < maxAhead
	for name, d := range n.decisions {
		if all || now.Sub(n.adopted[name]) < maxAhead {
			m.Decisions = append(m.Decisions, *d)
		}
	}
	return m, true
}

// Full returns all that this node knows, for a router that may have missed anything.
func (n *Node) Full() Message {
	m := Message{Observers: []Observer{n.self}}
	for _, p := range n.others {
		m.Observers = append(m.Observers, p.Observer)
	}
	for _, d := range n.decisions {
		m.Decisions = append(m.Decisions, *d)
	}
	return m
}

// Leave makes the next message say that this router is going.
func (n *Node) Leave() {
	n.self.Left, n.dirty = true, true
	n.self.Seq++
}
