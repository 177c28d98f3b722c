package router

import (
	"bytes"

	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/quota"
)

// A multiget is served in windows of keys, so that a client's memory stays bounded
// however many keys it names: while values are small the window doubles, when they are
// large it halves.
const (
	minWindow   = 16
	firstWindow = 256
	maxWindow   = 4096
	// windowBytes is the size of a window's values that halves the next window.
	windowBytes = 1 << 20
	// maxGetLine is the longest line sent to a server. That of a gat must be shorter, as
	// memcached gives up on a line of 2048 bytes unless it begins with get or gets.
	maxGetLine = 8 << 10
	maxGatLine = 2000
)

// endLine ends the reply to a classic retrieval.
var endLine = []byte("END\r\n")

// gather is a multiget: its keys are asked of their homes, and the values are put back
// into the order in which they were asked for.
type gather struct {
	front   *front
	request *request
	verb    memproto.Verb
	prefix  []byte // "get", or "gat" and the exptime
	keys    []byte // the client's keys; asked and rest point into it
	rest    []byte // keys not yet asked for
	window  int
	asked   []askedKey // the window, in the client's order
	parts   []*part
	values  []byte          // of keys asked for one by one
	left    int             // parts and keys to wait for
	second  bool            // keys are asked for one by one
	failed  backend.Failure // of any part that is not to be taken for misses
	failer  *worker         // of that part
	fault   []byte          // an error line of any server
	torn    bool            // some of the reply has been sent
	parked  bool            // a window waits to be asked for
	// compares are the keys of the window that another pool was asked for, too.
	compares []comparedKey
	quotas   []*quota.Quota // that it is counted by
}

// askedKey is one key of a window, and where its value is.
type askedKey struct {
	w        *worker // of its pool
	key      []byte  // the client's
	under    *route  // says more of it than its pool; else nil
	part     *part   // nil if it is asked for by itself
	more     bool    // a miss is not the last word
	head     bool    // the block is that of a head, whose value has to be put together
	token    uint64  // the key's epoch, if any server with a copy could be asked
	from, to int     // the VALUE block in the part's values, or the gather's; empty on a miss
}

// multiget serves a retrieval of several keys.
func (s *session) multiget(r *memproto.Request) {
	q := s.push(r)
	if s.quota != nil {
		if v := s.quota.Ask(s.front.now(), r.NumKeys); v != quota.Passed {
			s.front.stats.OverQuota++
			q.came = 0
			q.finish(networkRefuses[v])
			return
		}
	}
	g := s.front.gathers.take()
	g.front, g.request, g.verb = s.front, q, r.Verb
	if s.quota != nil {
		g.quotas = append(g.quotas, s.quota)
	}
	g.request.gather, g.request.several, g.request.way = g, true, Several
	g.request.noteKeys(r)
	g.prefix = append(g.prefix[:0], r.Line[:len(r.Line)-len(r.Keys)]...)
	g.keys = append(g.keys[:0], r.Keys...)
	g.rest = g.keys
	g.window = firstWindow
	g.ask()
}

// ask sends the next window of keys to their homes.
func (g *gather) ask() {
	g.left = 1 // held while some are not yet asked, as one may fail at once
	key, rest := memproto.NextWord(g.rest)
	for ; len(key) > 0 && len(g.asked) < g.window && len(g.fault) == 0; key, rest = memproto.NextWord(rest) {
		g.add(key)
		g.rest = rest
	}
	if len(key) == 0 {
		g.rest = nil
	}
	for _, p := range g.parts {
		p.w.open[p.route] = nil
	}
	parts := g.parts
	g.left += len(parts)
	for _, p := range parts {
		p.send()
	}
	g.arrived()
}

// add puts a key on the line to its home.
func (g *gather) add(key []byte) {
	w, r, refusal := g.request.session.lead(key, g.kind())
	if refusal != nil {
		g.front.refused(refusal)
		g.fault = append(g.fault[:0], refusal...)
		return
	}
	if r != nil && r.quota != nil {
		if refusal = g.enter(r.quota); refusal != nil {
			g.fault = append(g.fault[:0], refusal...)
			return
		}
	}
	own := key
	if r.renames() {
		g.front.key = r.appendKey(g.front.key[:0], key)
		if key = g.front.key; len(key) == 0 || len(key) > memproto.MaxKey {
			g.front.stats.Refused[memproto.BadLine]++
			g.fault = append(g.fault[:0], badKey...)
			return
		}
	}
	w.stats.Keys++
	hash := w.table.KeyHash(key)
	w.touch(hash, key, false)
	if w.denies(hash) {
		w.stats.Limited++
		g.fault = append(g.fault[:0], limited...)
		return
	}
	if w.p.sheds && !g.torn && w.crowded(hash, g.kindOfKeys(), r.ranks()) {
		g.shed(w, r, own)
		return
	}
	w.budget.Asked(1)
	if r != nil && r.shadeBelow > 0 {
		g.leaveShadow(w, r, key)
	}
	w.seal(hash, key)
	n, a := g.home(w, hash, key)
	if r != nil && r.maxTTL > 0 && g.touches() { // in words of its own
		n, a.more = nil, true
	}
	a.w, a.key, a.under = w, own, r
	if a.more {
		g.request.step()
	}
	if n == nil { // see alone
		g.asked = append(g.asked, a)
		return
	}
	a.part = g.putOn(w, n, hash, key)
	g.asked = append(g.asked, a)
}

// putOn puts the next key of the window on the open line to a server, or on a new one.
func (g *gather) putOn(w *worker, n *node, hash uint64, key []byte) *part {
	lane := n.LaneOf(hash, 0)
	route := n.index*int(backend.NumLanes) + int(lane)
	p := w.open[route]
	if p == nil || len(p.line)+len(key) > g.maxLine() {
		p = w.parts.take()
		p.gather, p.w, p.node, p.lane, p.route = g, w, n, lane, route
		p.line = append(p.line[:0], bytes.TrimRight(g.prefix, " ")...)
		w.open[route] = p
		g.parts = append(g.parts, p)
	}
	p.line = append(append(p.line, ' '), key...)
	n.Claim(&p.call, lane, hash)
	p.asked = append(p.asked, len(g.asked))
	return p
}

// home returns the server that is asked for a key in company, and what is to be known of
// it later; no server for a key that has to be asked for by itself.
func (g *gather) home(w *worker, hash uint64, key []byte) (n *node, a askedKey) {
	picks := w.pick(hash)
	if w.plain && !w.spills(hash) {
		return w.nodes[picks[0]], a
	}
	rank := w.readRank(picks)
	if rank < 0 {
		return nil, askedKey{more: true}
	}
	picks = picks[rank:]
	n = w.nodes[picks[0]]
	old := w.before(hash, key)
	a.more = old != nil && old != n
	alone := false
	switch {
	case g.touches():
		alone = a.more || rank > 0 || !n.use.well()
	case n.use.Reads != ReadHere && n.use.Writes == WriteHere:
		alone = true
	case g.verb != memproto.Get:
	case w.copied():
		n = w.copyFor(hash, picks, &a)
	default:
		alone = w.spills(hash) && w.isFull(n)
	}
	if alone {
		return nil, askedKey{more: true}
	}
	return n, a
}

// copyFor returns the server that is asked for a key in a pool with copies.
func (w *worker) copyFor(hash uint64, picks []int, a *askedKey) *node {
	if a.token = w.epochs.Now(hash); a.token == 0 {
		return w.nodes[picks[0]]
	}
	a.more = true // a home that lost its memory finds it at the copies
	return w.nodes[picks[w.choose(picks)]]
}

// is reports whether a VALUE block is of the key, which its server may know by another name.
func (a *askedKey) is(block []byte) bool {
	r := a.under
	if !r.renames() {
		return memproto.IsValueOf(block, a.key)
	}
	rest, ok := bytes.CutPrefix(memproto.ValueKey(block), r.add)
	return ok && bytes.Equal(a.key[r.strip:], rest)
}

// kind is what the multiget does to its items.
func (g *gather) kind() memproto.Kind {
	if g.touches() {
		return memproto.Changes
	}
	return memproto.Reads
}

// touches reports whether the values are not only asked for.
func (g *gather) touches() bool { return g.verb == memproto.Gat || g.verb == memproto.Gats }

func (g *gather) maxLine() int {
	if g.touches() {
		return maxGatLine - memproto.MaxKey
	}
	return maxGetLine
}

// arrived counts one part or key less to wait for; with the last the window is complete,
// unless some of its keys may be elsewhere.
func (g *gather) arrived() {
	g.left--
	if g.left > 0 {
		return
	}
	switch {
	case g.request.session == nil:
		g.end(nil)
	case len(g.fault) > 0:
		g.fail(g.fault)
	case g.failed != 0:
		g.fail(g.failer.failureReply(g.verb, nil, g.failed))
	case !g.second && g.incomplete():
		g.askEach()
	default:
		g.deliver()
	}
}

// fail answers the whole multiget with an error line. If values have been sent already
// an error line would be taken for one, so the connection is closed instead.
func (g *gather) fail(line []byte) {
	s := g.request.session
	if g.torn {
		g.front.stats.Torn++
		s.conn.Close()
		g.end(nil)
		return
	}
	s.held -= len(g.request.reply)
	g.request.reply = g.request.reply[:0]
	g.end(line)
}

// deliver passes on the values of the window, in the client's order.
func (g *gather) deliver() {
	s, size := g.request.session, 0
	head := s.head == g.request
	if head && len(g.request.reply) > 0 {
		s.conn.Write(g.request.reply)
		s.held -= len(g.request.reply)
		g.request.reply = g.request.reply[:0]
	}
	if len(g.compares) > 0 {
		g.compared(false)
	}
	for i := range g.asked {
		a := &g.asked[i]
		block := g.block(a)
		if len(block) == 0 {
			a.w.stats.Misses++
			continue
		}
		a.w.stats.Hits++
		if a.under.renames() {
			g.front.renamed = memproto.AppendReplyAbout(g.front.renamed[:0], block, a.key)
			block = g.front.renamed
		}
		size += len(block)
		if head {
			s.conn.Write(block)
		} else {
			g.request.keep(block)
		}
	}
	g.torn = g.torn || head && size > 0
	g.request.noteSent(size)
	g.resize(size)
	g.clear()
	if len(g.rest) == 0 {
		g.end(endLine)
		return
	}
	g.parked = true
	g.proceed()
}

func (g *gather) resize(size int) {
	if size > windowBytes {
		g.window = max(minWindow, g.window/2)
	} else {
		g.window = min(maxWindow, g.window*2)
	}
}

// proceed asks for the next window when it is this multiget's turn to be answered and
// the client has taken what it was sent.
func (g *gather) proceed() {
	s := g.request.session
	if !g.parked || s.head != g.request {
		return
	}
	if s.conn.Buffered() >= maxUnread {
		s.conn.Pause() // so that Flushed comes back here
		return
	}
	g.parked = false
	g.ask()
}

// clear gives back the parts of a window.
func (g *gather) clear() {
	if len(g.compares) > 0 {
		g.compared(true)
	}
	for _, p := range g.parts {
		p.call.Reset()
		*p = part{call: p.call, line: p.line[:0], asked: p.asked[:0], values: g.front.spare(p.values)}
		g.front.parts.give(p)
	}
	g.parts, g.asked, g.values = g.parts[:0], g.asked[:0], g.front.spare(g.values)
	g.second = false
}

// end finishes the request with the last line of its reply.
func (g *gather) end(line []byte) {
	q := g.request
	g.clear()
	g.depart()
	*g = gather{front: g.front, prefix: g.prefix, keys: g.keys[:0], parts: g.parts, asked: g.asked, values: g.values, fault: g.fault[:0], quotas: g.quotas}
	if cap(g.keys) > keepReply {
		g.keys, g.asked = nil, nil
	}
	q.gather = nil
	g.front.gathers.give(g)
	q.finish(line)
}
