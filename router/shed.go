package router

import "cacherouter/memproto"

// Priority says which requests a pool that has too much to do refuses first.
type Priority uint8

// The priorities, in the order in which requests are kept.
const (
	Normal Priority = iota // the zero value, though it is the middle one
	Low
	High
	NumPriorities
)

var priorityText = [NumPriorities]string{"normal", "low", "high"}

// String names the priority in one word.
func (p Priority) String() string { return priorityText[p] }

// overloaded is said to a request that is shed.
var overloaded = []byte("SERVER_ERROR pool is overloaded\r\n")

// ranks returns the priority of requests of a route; nil is one that says nothing.
func (r *route) ranks() Priority {
	if r == nil {
		return Normal
	}
	return r.priority
}

// crowded reports whether every server that may take a request on a key has as much in flight
// as requests of a priority let it have. Servers are looked at before the request is placed, so
// loops that look at the same time may let one more pass than there should be each.
func (w *worker) crowded(hash uint64, k memproto.Kind, p Priority) bool {
	most, b := w.p.cfg.Shed[p], w.table.Bound
	if most == 0 || b == nil {
		return false
	}
	picks := w.pick(hash)
	switch {
	case k == memproto.Copyable && w.copied():
		picks = picks[:min(len(picks), w.table.Copies)]
	case k == memproto.Copyable && w.spills(hash):
		w.picks = w.table.Picker.Pick(w.picks[:0], hash, w.reach)
		picks = w.picks[:min(len(w.picks), b.Depth()+1)]
	default:
		picks = picks[:1]
	}
	for _, i := range picks {
		if w.tally.InFlight(i) < most {
			return false
		}
	}
	return true
}

// shed refuses a request as its servers have too much to do.
func (q *request) shed(raw []byte) {
	w := q.w
	w.stats.Shed[q.under.ranks()]++
	if w.p.cfg.MissOnFailure {
		if b := w.missReply(q.verb, raw); b != nil {
			q.finish(b)
			return
		}
	}
	q.finish(overloaded)
}

// shed refuses a key of a multiget, or has it miss.
func (g *gather) shed(w *worker, r *route, key []byte) {
	w.stats.Shed[r.ranks()]++
	if w.p.cfg.MissOnFailure {
		g.asked = append(g.asked, askedKey{w: w, key: key, under: r})
		return
	}
	g.fault = append(g.fault[:0], overloaded...)
}

// retry reports whether one more read may be asked again as a server failed.
func (w *worker) retry() bool {
	if !w.budget.Again() {
		w.stats.Unretried++
		return false
	}
	w.stats.Retried++
	return true
}
