package router

import "cacherouter/memproto"

// A route may let a pool see what another one is asked: a share of its keys' requests is
// sent there too. Nobody waits for the answers, which are only counted, as those of any
// pool are. So a pool can be tried with the load that it is to get.

// maxShadows is how many of such requests a pool may have outstanding on a loop. More are
// left out, so that a pool that is slow costs nothing but memory.
const maxShadows = 1024

// leaveShadow sends the request to the pool that is to see it, if there is one.
func (q *request) leaveShadow(raw []byte) {
	if q.strayed && q.under != nil {
		if w := q.session.shadowed(q.under, q.call.Key); w != nil {
			w.shadow(q, q.call.Key, raw)
		}
	}
}

// shadowed returns the worker of the pool that is to see a request on a key, as servers know
// it, nil if none is.
func (s *session) shadowed(r *route, key []byte) *worker {
	if r == nil || r.shadeBelow == 0 || splitHash(key) >= r.shadeBelow {
		return nil
	}
	w := s.front.workerOf(r.shade)
	if w.shadows >= maxShadows {
		w.stats.ShadowsLost++
		return nil
	}
	return w
}

// shadow sends what a server is to get for a client's request on a key to the pool that is to
// see it.
func (w *worker) shadow(of *request, key, raw []byte) {
	q := w.newShadow(key, of.coded, of.verb, of.kind)
	if of.under.compares && of.kind != memproto.Changes && of.verb.Retrieves() {
		c := w.newComparison(of.w, key)
		of.compare, q.compare = c, c
	}
	q.adds = of.adds
	q.call.Repeatable, q.repeatable = of.repeatable, of.repeatable
	q.pass(raw)
}

// shadowGet sends a get of one key, to be compared with another one's unless c is nil.
func (w *worker) shadowGet(key []byte, c *comparison) {
	q := w.newShadow(key, false, memproto.Get, memproto.Reads)
	q.compare = c
	q.call.Repeatable, q.repeatable = true, true
	w.line = append(append(append(w.line[:0], "get "...), key...), "\r\n"...)
	q.pass(w.line)
}

// newShadow returns a request that no client waits for.
func (w *worker) newShadow(key []byte, coded bool, v memproto.Verb, k memproto.Kind) *request {
	w.stats.Shadowed++
	w.budget.Asked(1)
	w.shadows++
	q := w.newRequest()
	q.hidden = true
	q.of(key, coded, v, k)
	q.stray().shadow = true
	return q
}

// faded ends a request that no client waits for.
func (q *request) faded(b []byte) {
	switch {
	case !q.strayed:
	case q.shadow:
		q.w.shadows--
		q.compared(b, q.unanswered)
	case q.piece.of != nil:
		q.piece.of.took(q.piece.place, b, q.unanswered)
	}
}
