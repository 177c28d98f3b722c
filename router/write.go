package router

import (
	"time"

	"cacherouter/backend"
	"cacherouter/bounded"
	"cacherouter/memproto"
)

// write sends a request that may change its item to the server that takes writes of the
// key. When that has answered, every other server that may hold the item is cleaned, and
// then the client is answered.
func (q *request) write(raw []byte) {
	w := q.w
	w.seal(q.hash, q.call.Key)
	if w.p.leases != nil && q.session != nil {
		q.session.outrun(q)
	}
	picks := w.pick(q.hash)
	rank := 0
	if !w.plain {
		rank = w.writeRank(picks)
	}
	if rank < 0 {
		w.stats.Unwritable++
		q.finish(unwritable)
		return
	}
	q.node = w.nodes[picks[rank]]
	if q.adds && q.pullFirst(raw) {
		return
	}
	w.began(q, raw)
	if !w.plain {
		q.cleanOthers(picks, rank)
		q.keepForPull(raw)
	}
	if rank > 0 {
		raw = w.failOver(q, picks[:rank], raw)
	}
	q.cleanCopies()
	if w.table.Copies > 1 {
		q.spreadOver(picks[rank:], raw)
	}
	w.load(&q.charge, q.node, bounded.Cost(len(raw), 1))
	if stores(q.verb) {
		q.node.Saw(q.hash, len(raw))
		w.moved(q.hash, q.call.Key, len(raw))
	}
	q.send(raw)
}

// stores reports whether a request carries a value.
func stores(v memproto.Verb) bool {
	return v >= memproto.Set && v <= memproto.Cas || v == memproto.MetaSet
}

// unwritable is said when a key's home cannot be reached from here and others may still
// reach it.
var unwritable = []byte("SERVER_ERROR backend unreachable, and not yet given up\r\n")

// began says that a write of the key is on its way, and looks for copies that are: no
// other can begin before the write has ended.
func (w *worker) began(q *request, raw []byte) {
	q.mark = w.epochs.Began(q.hash)
	q.began = true
	q.version = w.version
	if q.filled = w.epochs.Fills(q.hash); q.filled {
		q.lapses = memproto.Lapses(q.verb, raw, time.Now().Unix())
	}
}

// ended says that the write is over.
func (q *request) ended() {
	if q.began {
		q.began = false
		q.w.epochs.Ended(q.hash)
	}
}

// failOver notes that the servers before the one that takes a write will miss it, and
// returns the request with a bounded life. It is noted before it is sent: until they have
// forgotten the key none of them serves again. One that answers already is made to forget
// it at once, before the client is answered.
func (w *worker) failOver(q *request, passed []int, raw []byte) []byte {
	w.stats.FailedOver++
	q.way = FailedOver
	c := q.cleaning()
	for _, i := range passed {
		n := w.nodes[i]
		n.standing.failedOver.Store(int64(w.now()))
		c.passed = append(c.passed, n)
		if n.use.Clean { // noted only if that fails, else there would be no end of it
			c.add(n, true)
		} else {
			w.missed(n, q.hash, q.call.Key)
		}
	}
	w.capped = memproto.CapExpiry(w.capped[:0], q.verb, raw, int64(w.p.cfg.FailoverTTL/time.Second), time.Now().Unix())
	raw = w.capped
	if cap(raw) > keepScratch {
		w.capped = nil
	}
	return raw
}

func (w *worker) missed(n *node, hash uint64, key []byte) {
	if m := w.p.cfg.Membership; m != nil {
		m.Missed(n.use.Name, hash, key)
	}
}

// cleanOthers notes the servers that may hold the key's item beside the one that takes
// the write.
func (q *request) cleanOthers(picks []int, rank int) {
	w := q.w
	copies := max(1, w.table.Copies)
	if home := w.nodes[picks[rank]]; home.use.Moved || home.use.Reads != ReadHere || w.lingers(home) || w.lingering && w.table.Astray {
		for _, i := range picks[rank+1 : min(rank+2+copies, len(picks))] {
			q.cleaning().addOther(w.nodes[i], false)
		}
	}
	if w.handsOver() {
		q.cleanFirst(&w.table.Before, copies)
	}
	for i := range w.table.After {
		q.cleanFirst(&w.table.After[i], copies)
	}
}

// handsOver reports whether items may still be where they lived before.
func (w *worker) handsOver() bool {
	return w.table.Before.Picker != nil && w.loop.Now().Before(w.table.Until)
}

// cleanFirst notes the first n candidates of the key in another placement.
func (q *request) cleanFirst(p *Placement, n int) {
	w := q.w
	w.many = p.Order(w.many[:0], q.call.Key, q.hash, n)
	for _, i := range w.many {
		q.cleaning().addOther(w.nodes[i], false)
	}
}

// cleanCopies notes the servers on which this router may have put copies lately: some of
// the candidates that come next, or came before the placement changed.
func (q *request) cleanCopies() {
	w := q.w
	if !w.p.copies.any(q.hash, w.now(), w.p.copyLife()) {
		return
	}
	n := max(w.reach, minReach)
	q.cleanFirst(&Placement{Picker: w.table.Picker}, n)
	if w.handsOver() {
		q.cleanFirst(&w.table.Before, n)
	}
}

// spreadOver notes the servers that hold copies of the key in a pool with copies, and what
// stores the new item there if the request tells it whole.
func (q *request) spreadOver(picks []int, raw []byte) {
	w, c := q.w, q.cleaning()
	for _, i := range picks[1:min(len(picks), w.table.Copies)] {
		c.add(w.nodes[i], false).copy = true
	}
	c.spread, _ = memproto.AppendStore(c.spread[:0], q.verb, raw, copyTTL, time.Now().Unix())
}

// wrote takes the reply to a write.
func (q *request) wrote(b []byte) {
	if memproto.Changed(q.verb, b) {
		q.w.written(q.hash, q.call.Key)
		q.w.rumour(q.hash)
	}
	switch {
	case q.strayed && q.old != nil && memproto.Absent(q.verb, b):
		q.ended()
		q.pull(b)
	case !memproto.Changed(q.verb, b),
		q.clean == nil && q.unmoved() && !q.mayBeRefilled(b):
		q.ended()
		q.conclude(b)
	default:
		q.cleaning().start(b)
	}
}

// mayBeRefilled reports whether a copy that was on its way to the home may have come after
// the write. That it has been answered by now does not help: the home may have done it
// later and told of it earlier. It finds no room if the write has left an item.
func (q *request) mayBeRefilled(reply []byte) bool {
	return q.filled && (q.lapses || deletes(q.verb) || memproto.IsFault(reply))
}

func deletes(v memproto.Verb) bool { return v == memproto.Delete || v == memproto.MetaDelete }

// unmoved reports whether the table is still the one that the write was placed with. If
// it is not, servers that were passed over may serve again.
func (q *request) unmoved() bool {
	return q.version == q.w.p.version.Load()
}

// writeFailed cleans up after a write that got no answer. Unless it was never sent
// nobody knows whether it was done or yet will be: the home is to forget the key, and no
// copy of it may be made or read for as long as copies live.
func (q *request) writeFailed(f backend.Failure) {
	w := q.w
	reply := w.failureReply(q.verb, q.call.Raw(), f)
	if f == backend.Refused || f == backend.Busy || f == backend.Denied {
		q.ended()
		q.finish(reply)
		return
	}
	w.missed(q.node, q.hash, q.call.Key)
	q.began = false
	w.holds.doubt(w, q.hash)
	q.cleaning().start(reply)
}
