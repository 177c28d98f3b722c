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

// reachOf returns how many candidates of a key must be looked at with a table, 1 if the
// home alone decides.
func (t *Table) reachOf() int {
	ill := 0
	for i := range t.Servers {
		if !t.Servers[i].well() {
			ill++
		}
	}
	reach := 1 + min(ill, maxReach-2)
	if ill > 0 {
		reach++ // beside the one that takes the writes, one to read from
	}
	return max(1, min(reach, len(t.Servers)))
}

// pick orders the servers for a key. The result is valid until the next call.
func (w *worker) pick(hash uint64) []int {
	w.picks = w.table.Picker.Pick(w.picks[:0], hash, w.reach)
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
// takes writes, as what was written last is there.
func (w *worker) readRank(picks []int, avoid *node) int {
	for rank, i := range picks {
		if n := w.nodes[i]; n.use.Writes == WriteHere && n != avoid {
			return rank
		}
	}
	return 0
}

// sources are the servers that a read is asked of, one after the other until one has the
// item. What a later one has is copied to those before it.
type sources struct {
	nodes [3]*node
	n, at uint8
	// copies is how many of the first hold copies, which must not live long.
	copies uint8
}

func (s *sources) add(n *node) {
	s.nodes[s.n] = n
	s.n++
}

// more reports whether a miss can be asked of another server.
func (s *sources) more() bool { return s.at+1 < s.n }

// route works out where a read goes.
func (q *request) route() {
	w := q.w
	q.from, q.old = sources{}, nil
	if w.plain && q.avoid == nil {
		q.from.add(w.nodes[w.pick(q.hash)[0]])
		return
	}
	w.picks = w.table.Picker.Pick(w.picks[:0], q.hash, max(w.reach, 2))
	picks := w.picks
	rank := w.readRank(picks, q.avoid)
	home := w.nodes[picks[rank]]
	q.token = w.epochs.Now(q.hash)
	copyable := q.kind == memproto.Copyable
	// While a write of the key is on its way only its home is sure to have it.
	if !w.readable(home) && copyable && q.token != 0 {
		if c := w.copyOf(picks[rank+1:]); c != nil {
			q.from.add(c)
			q.from.copies = 1
		}
	}
	q.from.add(home)
	switch old := w.before(q.hash); {
	case old == nil || old == home:
	case copyable:
		q.from.add(old)
	default:
		q.old = old
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
func (w *worker) before(hash uint64) *node {
	if w.table.Before == nil || !w.loop.Now().Before(w.table.Until) {
		return nil
	}
	w.one = w.table.Before.Pick(w.one[:0], hash, 1)
	if n := w.nodes[w.one[0]]; w.trusted(n) {
		return n
	}
	return nil
}

// now returns the time on the router's clock.
func (w *worker) now() time.Duration { return w.loop.Now().Sub(w.r.started) }
