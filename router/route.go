package router

import (
	"time"

	"cacherouter/memproto"
)

// Where a request goes is worked out in two steps: the placement orders the servers for
// the key, and what is known of the servers picks among them. While all servers are well
// the second step is skipped.

// maxReach bounds how many candidates of a key are looked at.
const maxReach = 8

// minReach is how many may hold copies in any case: the home, and those that may be read
// from while it is ill.
const minReach = 4

// ill counts the servers that are not simply used.
func (t *Table) ill() (n int) {
	for i := range t.Servers {
		if !t.Servers[i].well() {
			n++
		}
	}
	return n
}

// reachOf returns how many candidates of a key must be looked at with a table, 1 if the
// home alone decides.
func (t *Table) reachOf() int {
	ill := t.ill()
	reach := 1 + min(ill, maxReach-2)
	if ill > 0 {
		reach++ // beside the one that takes the writes, one to read from
	}
	if t.Bound != nil && t.Spill != SpillNone {
		reach += t.Bound.Depth()
	}
	reach += max(0, t.Copies-1)
	return max(1, min(reach, len(t.Servers)))
}

// pick orders the servers for a key. The result is valid until the next call.
func (w *worker) pick(hash uint64) []int {
	n := w.reach
	if w.plain {
		n = 1
	}
	w.picks = w.table.Picker.Pick(w.picks[:0], hash, n)
	return w.picks
}

// writeRank returns the rank of the server that takes writes of a key, -1 if none may: a
// write must not go to a server while others may still read from one before it.
func (w *worker) writeRank(picks []int) int {
	for rank, i := range picks {
		switch w.nodes[i].use.Writes {
		case WriteHere:
			return rank
		case WriteNowhere:
			return -1
		}
	}
	return -1
}

// readRank returns the rank of the server that is a key's home for reads: the first that
// takes writes, as what was written last is there. Where none does it is the first in
// whose place none was written; -1 if there is none, as the others may hold old items.
func (w *worker) readRank(picks []int) int {
	last := -1
	for rank, i := range picks {
		switch w.nodes[i].use.Writes {
		case WriteHere:
			return rank
		case WriteNowhere:
			if last < 0 {
				last = rank
			}
		}
	}
	return last
}

const maxSources = 3

// sources are the servers that a read is asked of, one after the other until one has the
// item. What a later one has is copied to those before it.
type sources struct {
	nodes [maxSources]*node
	n, at uint8
	// copies is how many of the first hold copies, which must not live long.
	copies uint8
	// spare is the place of a copy behind the home, which may have lost its memory; 0 if
	// there is none.
	spare uint8
}

// isCopy reports whether the server at a place is one for copies.
func (s *sources) isCopy(i uint8) bool { return i < s.copies || s.spare > 0 && i == s.spare }

func (s *sources) add(n *node) {
	s.nodes[s.n] = n
	s.n++
}

// has reports whether a server is one of them.
func (s *sources) has(n *node) bool {
	for _, x := range s.nodes[:s.n] {
		if x == n {
			return true
		}
	}
	return false
}

// more reports whether a miss can be asked of another server.
func (s *sources) more() bool { return s.at+1 < s.n }

// route works out where a read goes, and charges the first server for it. Without a
// source nobody may be asked.
func (q *request) route() {
	w := q.w
	d := q.stray()
	d.from, d.old = sources{}, nil
	if w.plain && !w.spills(q.hash) {
		n := w.nodes[w.pick(q.hash)[0]]
		q.from.add(n)
		w.load(&q.charge, n, 1)
		return
	}
	w.picks = w.table.Picker.Pick(w.picks[:0], q.hash, max(w.reach, 2))
	rank := w.readRank(w.picks)
	if rank < 0 {
		return
	}
	picks := w.picks[rank:]
	home := w.nodes[picks[0]]
	q.token = w.epochs.Now(q.hash)
	// While a write of the key is on its way only its home is sure to have it.
	if q.kind == memproto.Copyable && q.token != 0 && !q.homely {
		q.routeCopy(picks)
	} else {
		w.load(&q.charge, home, 1)
		q.from.add(home)
	}
	switch old := w.before(q.hash, q.call.Key); {
	case old == nil || q.from.has(old):
	case q.kind == memproto.Copyable && q.token == 0: // the write may be a deletion
	case q.kind == memproto.Copyable && q.from.n < maxSources:
		q.from.add(old)
	default:
		q.old = old
	}
}

// routeAround works out where a read goes whose home has failed it: to the first candidate
// that holds nothing old. It reports whether there is one, and the request may be retried.
func (q *request) routeAround() bool {
	w := q.w
	d := q.stray()
	d.from, d.old = sources{}, nil
	if q.wantsToken() { // which the home would take for another's
		return false
	}
	if w.epochs.Now(q.hash) == 0 { // some may have read what the write has left
		return false
	}
	w.picks = w.table.Picker.Pick(w.picks[:0], q.hash, max(w.reach, 2))
	for _, i := range w.picks {
		if n := w.nodes[i]; n != q.avoid && w.trusted(n) {
			if !w.retry() {
				return false
			}
			q.node = n
			q.from.add(n)
			w.load(&q.charge, n, 1)
			w.stats.Redirected++
			q.way = Redirected
			return true
		}
	}
	return false
}

// wantsToken reports whether a read may ask for a cas token.
func (q *request) wantsToken() bool {
	p := q.parts
	if q.flight != nil {
		p = memproto.Parts(q.flight.Want())
	}
	return q.kind != memproto.Copyable && (p == 0 || p&(memproto.ClassicCAS|memproto.MetaCAS) != 0)
}

// routeCopy works out where a read goes that a copy can answer.
func (q *request) routeCopy(picks []int) {
	w := q.w
	home := w.nodes[picks[0]]
	rank := 0
	switch {
	case !w.readable(home):
		if c := w.copyOf(picks[1:]); c != nil {
			q.from.add(c)
			q.from.copies = 1
			w.load(&q.charge, c, 1)
			q.from.add(home)
			q.way = Copied
			return
		}
		w.load(&q.charge, home, 1)
	case w.copied():
		rank = w.choose(picks)
		w.load(&q.charge, w.nodes[picks[rank]], 1)
		q.way = Copied
	case w.spills(q.hash):
		if rank = w.roomFor(&q.charge, picks); rank > 0 {
			w.stats.Spilled++
			q.way = Spilled
		}
	default:
		w.load(&q.charge, home, 1)
	}
	if rank > 0 {
		q.from.add(w.nodes[picks[rank]])
		q.from.copies = 1
		q.from.add(home)
		return
	}
	q.from.add(home)
	q.addSpare(picks)
}

// addSpare adds a copy behind the home, for when that has lost its memory.
func (q *request) addSpare(picks []int) {
	w := q.w
	if !w.copied() {
		return
	}
	if c := w.copyOf(picks[1:min(len(picks), w.table.Copies)]); c != nil {
		q.from.spare = q.from.n
		q.from.add(c)
	}
}

// copyOf returns the first of some candidates from which copies may be read.
func (w *worker) copyOf(picks []int) *node {
	for _, i := range picks {
		if n := w.nodes[i]; w.trusted(n) {
			return n
		}
	}
	return nil
}

// before returns the server where a key lived before the last change of the placement,
// if that was not long ago and the server can be asked.
func (w *worker) before(hash uint64, key []byte) *node {
	if !w.handsOver() {
		return nil
	}
	w.one = w.table.Before.Order(w.one[:0], key, hash, 1)
	if n := w.nodes[w.one[0]]; w.trusted(n) {
		return n
	}
	return nil
}

// now returns the time on the router's clock.
func (f *front) now() time.Duration { return f.loop.Elapsed() + f.ahead }
