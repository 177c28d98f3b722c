package router

import (
	"bytes"

	"cacherouter/memproto"
)

// Keys of a multiget whose value may be elsewhere are asked for once more, each by
// itself.

// unfinished reports whether a key's value may be elsewhere.
func (a *askedKey) unfinished() bool {
	return a.head || a.from == a.to && (a.more || a.part != nil && a.part.failed != 0)
}

// incomplete reports whether any key of the window is unfinished.
func (g *gather) incomplete() bool {
	for i := range g.asked {
		if g.asked[i].unfinished() {
			return true
		}
	}
	return false
}

// askEach asks for the unfinished keys.
func (g *gather) askEach() {
	g.second = true
	g.left = 1 // held while some are not yet asked, as one may fail at once
	for i := range g.asked {
		if g.asked[i].unfinished() {
			g.left++
			g.askOne(i)
		}
	}
	g.arrived()
}

// askOne asks for one key as its own request would.
func (g *gather) askOne(i int) {
	a := &g.asked[i]
	w := a.w
	q := w.newRequest()
	q.parent, q.place = g, int32(i)
	kind := g.kindOfKeys()
	key := a.key
	if a.under.renames() {
		w.front.key = a.under.appendKey(w.front.key[:0], key)
		key = w.front.key
	}
	q.of(key, false, g.verb, kind)
	if a.under != nil {
		q.stray().under = a.under
	}
	q.call.Repeatable, q.repeatable = true, true
	w.line = append(append(w.line[:0], bytes.TrimRight(g.prefix, " ")...), ' ')
	w.line = append(append(w.line, key...), "\r\n"...)
	if a.under != nil && a.under.maxTTL > 0 && kind == memproto.Changes {
		w.line = append(w.line[:0], q.capped(w.line)...)
	}
	switch {
	case a.part == nil:
	case a.head: // what was read counts: a write of the same client may be on its way
		g.join(q, a)
		return
	case a.part.failed != 0 && kind != memproto.Changes:
		if q.stray().avoid = a.part.node; !q.routeAround() {
			q.finish(w.failureReply(g.verb, w.line, a.part.failed))
			return
		}
		q.send(w.line)
		return
	case a.token != 0 && !a.part.node.Retired():
		q.missedAt(a.part.node, a.token, w.line)
		return
	}
	q.pass(w.line)
}

// kindOfKeys is what a request for one of the keys would be.
func (g *gather) kindOfKeys() memproto.Kind {
	switch {
	case g.touches():
		return memproto.Changes
	case g.verb == memproto.Gets:
		return memproto.Reads
	}
	return memproto.Copyable
}

// join puts the value together whose head a key's block is.
func (g *gather) join(q *request, a *askedKey) {
	j := a.w.newJoin(q.call.Key, false, append(bytes.Clone(g.block(a)), endLine...))
	if g.touches() {
		_, rest := memproto.NextWord(g.prefix)
		exptime, _ := memproto.NextWord(rest)
		j.exptime = bytes.Clone(exptime)
	}
	j.q = q
	j.begin()
}

// missedAt asks for an item that one of the servers with copies has missed: the home, or a
// copy if it was the home, and where it lived before.
func (q *request) missedAt(first *node, token uint64, raw []byte) {
	w := q.w
	picks := w.pick(q.hash)
	rank := w.readRank(picks)
	if rank < 0 {
		q.finish(endLine)
		return
	}
	picks = picks[rank:]
	q.stray().token = token
	q.from.add(first)
	if home := w.nodes[picks[0]]; first != home {
		q.from.copies = 1
		q.from.add(home)
	} else {
		q.addSpare(picks)
	}
	if old := w.before(q.hash, q.call.Key); old != nil && !q.from.has(old) {
		q.from.add(old)
	}
	if !q.from.more() {
		q.finish(endLine)
		return
	}
	q.askNext(raw)
}

// tooMuch is said to a multiget of more large values than are put together at a time.
var tooMuch = []byte("SERVER_ERROR too many large values at once\r\n")

// answered takes the reply to one key.
func (g *gather) answered(i int, b []byte) {
	a := &g.asked[i]
	head := a.head
	a.part, a.more, a.head, a.from, a.to = nil, false, false, 0, 0
	switch {
	case memproto.IsValue(b) && head && len(g.values)+len(b) > g.front.joins.most && len(g.values) > 0:
		g.front.stats.Refused[memproto.TooLarge]++
		g.fault = append(g.fault[:0], tooMuch...)
	case memproto.IsValue(b):
		a.from = len(g.values)
		g.values = append(g.front.room(g.values, len(b)), bytes.TrimSuffix(b, endLine)...)
		a.to = len(g.values)
	case !memproto.Missed(b):
		g.fault = append(g.fault[:0], b...)
	}
	g.arrived()
}

// block returns a key's VALUE block, empty if there is none.
func (g *gather) block(a *askedKey) []byte {
	if a.part == nil {
		return g.values[a.from:a.to]
	}
	return a.part.values[a.from:a.to]
}
