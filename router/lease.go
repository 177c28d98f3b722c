package router

import (
	"slices"
	"time"

	"cacherouter/coalesce"
	"cacherouter/memproto"
)

// With leases the first get that misses a key shows its miss, and those that follow wait
// until its client has stored the value; see coalesce.Leases. A get that waits is parked:
// its request stays where it is in its client's list, but for one whose client tells
// replies apart by an opaque.

// leaseEvery is how often it is looked for leases that have ended, while there are any.
const leaseEvery = 5 * time.Millisecond

// leases are those of the router, and how long a client may have gets parked.
type leases struct {
	*coalesce.Leases[*request]
	patience time.Duration
}

// mayLease reports whether the miss of a get may be held back.
func (q *request) mayLease() bool {
	return q.w.p.leases != nil && q.parts != 0 && q.parent == nil && q.session != nil
}

// lease decides what is done about a miss, and reports whether it is not to be shown.
func (q *request) lease() bool {
	w, s, l := q.w, q.session, q.w.p.leases
	if q.outrun {
		return false
	}
	now := w.now()
	if s.parked == 0 { // from the first one on, all that are parked together
		s.parkedBy = now + l.patience
	}
	v, id := l.Missed(&coalesce.Miss[*request]{
		Hash: q.hash, Key: q.call.Key, Ticket: q.ticket, Client: s.id, Won: q.won, Filling: q.filling,
		Who: q, Deadline: s.parkedBy, Now: now,
	})
	switch v {
	case coalesce.Hold:
		s.holds(w, id)
	case coalesce.Park:
		q.wait()
		s.detach(q)
		return true
	case coalesce.Reread:
		q.restart()
		return true
	}
	return false
}

// wait counts the request among those of its client that wait, up to its reply: what it
// waits for one write after the other adds up.
func (q *request) wait() {
	q.way = Leased
	if !q.waited {
		q.stray().waited = true
		q.session.parked++
	}
}

// grants are the leases that a client was given on keys of one pool.
type grants struct {
	w   *worker
	ids []uint64
}

// holds notes a lease. Those that are over are forgotten when the list would have to grow.
func (s *session) holds(w *worker, id uint64) {
	i := slices.IndexFunc(s.leases, func(g grants) bool { return g.w == w })
	if i < 0 {
		i = len(s.leases)
		s.leases = append(s.leases, grants{w: w})
	}
	g := &s.leases[i]
	if len(g.ids) == cap(g.ids) {
		g.ids = w.p.leases.Held(g.ids)
	}
	g.ids = append(g.ids, id)
}

// restart asks once more.
func (q *request) restart() {
	q.won, q.filling = false, false
	q.itself()
	q.read(q.words())
}

// written ends the lease on a key that was written.
func (w *worker) written(hash uint64, key []byte) {
	if w.p.leases != nil {
		w.wake(w.p.leases.Written(nil, hash, key, w.now()))
	}
}

// endLeases ends the leases of a client that is gone.
func (s *session) endLeases() {
	for _, g := range s.leases {
		for _, id := range g.ids {
			g.w.wake(g.w.p.leases.End(nil, id, g.w.now()))
		}
	}
	s.leases = nil
}

// expireLeases ends leases whose time has come. One loop does it for all.
func (w *worker) expireLeases() {
	woken, more := w.p.leases.Expire(nil, w.now())
	w.wake(woken)
	if more {
		w.loop.Set(&w.leaser, w.loop.Now().Add(leaseEvery))
	}
}

// wake wakes gets, each on its own loop.
func (w *worker) wake(woken []coalesce.Woken[*request]) {
	for _, x := range woken {
		q, reread := x.Who, x.Reread
		q.w.loop.Post(func() { q.unpark(reread) })
	}
}

// unpark goes on with a get that was parked: it asks again, or shows its miss.
func (q *request) unpark(reread bool) {
	switch {
	case q.session == nil:
		q.w.recycle(q)
	case reread && !q.outrun:
		q.restart()
	default:
		q.show(q.w.missReply(q.verb, q.own))
	}
}

// outrun notes that the client writes a key that it has asked for before. Asked once more
// those gets would find what they come before, so those that miss are shown it.
func (s *session) outrun(write *request) {
	for q := s.head; q != nil && q != write; q = q.next {
		q.outrun = q.outrun || q.w == write.w && q.hash == write.hash
	}
	for _, q := range s.loose {
		q.outrun = q.outrun || q.w == write.w && q.hash == write.hash
	}
}

// detach takes a parked request out of its client's list, if the client will know its
// reply wherever it comes, so that it holds up no other.
func (s *session) detach(q *request) {
	if q.detached || !q.opaque() {
		return
	}
	var before *request
	for p := s.head; p != q; p = p.next {
		before = p
	}
	if before == nil {
		s.head = q.next
	} else {
		before.next = q.next
	}
	if s.tail == q {
		s.tail = before
	}
	q.next, q.stray().detached = nil, true
	s.stepped(q)
	s.loose = append(s.loose, q)
	s.settle()
}

// opaque reports whether the client tells the reply to the request from others by what is
// in it.
func (q *request) opaque() bool {
	return q.session.binary || q.verb == memproto.MetaGet && memproto.HasOpaque(line(q.own))
}

// unloose takes a detached request out of the client's.
func (s *session) unloose(q *request) {
	for i, p := range s.loose {
		if p == q {
			s.loose = append(s.loose[:i], s.loose[i+1:]...)
			break
		}
	}
	s.left(q)
}
