package router

import (
	"bytes"

	"cacherouter/backend"
	"cacherouter/memproto"
)

// fly sends a request that changes nothing to the first of the servers that may answer it.
func (q *request) fly(raw []byte) {
	if w := q.w; w.plain && !q.strayed && !w.spills(q.hash) {
		q.node = w.nodes[w.pick(q.hash)[0]]
		w.load(&q.charge, q.node, 1)
	} else {
		if q.route(); q.from.n == 0 {
			q.unread(raw, backend.Refused)
			return
		}
		q.node = q.from.nodes[0]
		q.keepForPull(raw)
	}
	if q.flight != nil && q.mayKeep() {
		d := q.stray()
		d.near, d.nears = q.w.near.Begin(q.hash, q.w.now()), true
	}
	q.send(raw)
}

// hasRead takes the reply to a read with a detour. A miss that another server may know better is not
// shown.
func (q *request) hasRead(b []byte) {
	missed := memproto.Missed(b)
	switch {
	case missed && q.from.more() && !q.from.nodes[q.from.at+1].Retired():
		q.askNext(q.call.Raw())
		return
	case missed && q.old != nil:
		q.pull(b)
		return
	}
	q.settleRefill(b)
	q.conclude(b)
}

// settleRefill gives the reply to the copying that waits for it.
func (q *request) settleRefill(b []byte) {
	f := q.fill
	switch q.fill = nil; {
	case f == nil:
	case memproto.Missed(b):
		f.abandon()
	default:
		f.take(b)
	}
}

// dropRefill ends the copying that waits for a reply which will not come.
func (q *request) dropRefill() {
	if q.fill != nil {
		q.fill.abandon()
		q.fill = nil
	}
}

// askNext asks the next server, and gets ready to copy its item to those that have missed.
func (q *request) askNext(raw []byte) {
	q.dropRefill()
	q.from.at++
	q.node = q.from.nodes[q.from.at]
	if q.from.at > q.from.copies && !q.from.isCopy(q.from.at) {
		q.way = HandedOver
	}
	q.w.load(&q.charge, q.node, 1)
	q.fill = q.startRefill(q.node)
	q.send(raw)
}

// readFailed deals with a read that got no answer. One that failed fast is asked of the
// key's next candidate: what is there is not old, or not older than it may be.
func (q *request) readFailed(f backend.Failure) {
	q.dropRefill()
	raw := q.call.Raw()
	copied := q.from.at < q.from.copies && !q.from.nodes[q.from.at+1].Retired()
	switch {
	case copied && q.w.retry(): // the home is still to be asked
		q.askNext(raw)
	case copied:
		q.unread(raw, f)
	case q.from.at > q.from.copies: // the home has missed it
		q.conclude(bytes.Clone(q.w.missReply(q.sent, raw)))
	case q.w.redirects(f) && q.avoid == nil && q.elsewhere():
		q.send(raw)
	default:
		q.unread(raw, f)
	}
}

// unread ends a read, and those that wait with it, that no server has answered.
func (q *request) unread(raw []byte, f backend.Failure) {
	if q.flight != nil {
		q.crash(f)
		return
	}
	if q.strayed && (q.piece.of != nil || q.shadow) {
		q.unanswered = true
	}
	q.finish(q.w.failureReply(q.verb, raw, f))
}

// redirects reports whether a read that failed in some way is asked of another server:
// where servers are watched, and if it failed fast.
func (w *worker) redirects(f backend.Failure) bool {
	return w.p.cfg.Membership != nil && (f == backend.Refused || f == backend.Lost)
}

// elsewhere routes a read around the server that failed it, and reports whether there
// is another.
func (q *request) elsewhere() bool {
	q.stray().avoid = q.node
	return q.routeAround()
}

// A key's item may still be where it lived before the last change of the placement. A
// request that does not find it at home, and that only the home can answer, brings it
// there first: it pulls.

// keepForPull keeps what is sent if it may have to be sent again after a pull.
func (q *request) keepForPull(raw []byte) {
	if q.kind == memproto.Changes {
		if q.old = nil; !q.pulled && q.verb != memproto.Set && q.verb != memproto.Add && !deletes(q.verb) {
			if old := q.w.before(q.hash, q.call.Key); old != nil && old != q.node {
				q.stray().old = old
			}
		}
	}
	if q.pulled {
		q.old = nil
	}
	if q.old != nil {
		q.raw = append(q.raw[:0], raw...)
	}
	if q.old != nil || q.from.more() {
		q.step()
	}
}

// step notes that the request may ask one server after another.
func (q *request) step() {
	if s := q.session; s != nil && !q.steps {
		q.steps = true
		s.stepping++
	}
}

// pullFirst looks for the item where it lived before, as a request that stores only what is
// not there must be told that it is. It reports whether the request has to wait for that.
func (q *request) pullFirst(raw []byte) bool {
	w := q.w
	if q.pulled || w.plain {
		return false
	}
	old := w.before(q.hash, q.call.Key)
	if old == nil || old == q.node || old.Retired() || w.epochs.Now(q.hash) == 0 {
		return false
	}
	d := q.stray()
	d.old, d.first = old, true
	q.raw = append(q.raw[:0], raw...)
	q.step()
	q.pull(nil)
	return true
}

// pull brings the item from where it lived before. The home's reply is kept, should it not
// be there either.
func (q *request) pull(b []byte) {
	w := q.w
	q.token = w.epochs.Now(q.hash)
	q.kept = append(q.kept[:0], b...)
	if q.token == 0 || q.old.Retired() {
		q.stay()
		return
	}
	w.stats.Pulled++
	q.way = HandedOver
	q.pulling = true
	q.from = sources{}
	q.from.add(q.node)
	q.from.add(q.old)
	q.from.at = 1
	q.node = q.old
	w.load(&q.charge, q.node, 1)
	w.line, q.call.Verb = memproto.AppendGet(w.line[:0], q.call.Key, q.coded)
	q.call.Repeatable = true
	if q.fill = q.startRefill(q.old); q.fill != nil {
		q.fill.then = q
	}
	q.send(w.line)
}

// pulledItem takes the reply to a pull.
func (q *request) pulledItem(b []byte) {
	f := q.fill
	if f == nil || memproto.Missed(b) {
		q.pullFailed()
		return
	}
	q.pulling, q.fill = false, nil
	f.take(b)
}

// pullFailed ends a pull without an item.
func (q *request) pullFailed() {
	q.pulling = false
	if q.fill != nil {
		q.fill.then = nil
	}
	q.dropRefill()
	q.stay()
}

// stay ends the request with what the home has said.
func (q *request) stay() {
	if q.first {
		q.again()
		return
	}
	kept := q.kept
	q.kept = nil // others may wait for it too, and the request be used again meanwhile
	q.conclude(kept)
}

// again sends the request once more, as the item may be at home now.
func (q *request) again() {
	q.pulled = true
	if q.clean != nil { // of a write that did nothing
		q.clean.release()
		q.clean = nil
	}
	q.call.Verb = q.sent
	q.call.Repeatable = q.repeatable
	if q.kind == memproto.Changes {
		q.write(q.raw)
	} else {
		q.fly(q.raw)
	}
}
