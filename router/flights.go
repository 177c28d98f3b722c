package router

import (
	"bytes"
	"time"

	"cacherouter/backend"
	"cacherouter/coalesce"
	"cacherouter/memproto"
)

// Gets of one key that wait at the same time share a request to the server. One of them
// makes the request for all, and goes wherever a get by itself would.

// flight is a request that several gets wait for.
type flight = coalesce.Flight[*request, flightCall]

// flightCall is what is kept with a flight.
type flightCall struct {
	own    *request // whose own words were sent; nil if they were made for all
	renews bool     // one may be chosen to renew the item
}

// expireEvery is how often it is looked for gets that have waited too long for a flight
// that is not theirs.
const expireEvery = 20 * time.Millisecond

// read sends a request that changes nothing, or lets it wait with others.
func (q *request) read(raw []byte) {
	w := q.w
	if q.parts == 0 || w.flights == nil {
		q.fly(raw)
		return
	}
	q.own = append(q.own[:0], raw...)
	if w.r.leases != nil {
		q.ticket = w.r.leases.Ticket()
	}
	if q.isNear() && q.findNear() {
		return
	}
	now := w.now()
	ask := coalesce.Ask[*request]{
		Hash: q.hash, Key: q.key, Want: coalesce.Want(q.parts), Epoch: w.epochs.Now(q.hash),
		Who: q, Deadline: now + w.r.cfg.Timeout, Now: now,
	}
	switch f, role := w.flights.Join(&ask); role {
	case coalesce.Leader:
		q.takeOff(f)
	case coalesce.Follower:
		w.expireLater()
	default:
		q.fly(raw)
	}
}

// itself makes the request ask for itself again, after it has asked for others.
func (q *request) itself() {
	q.sent, q.kind = q.verb, memproto.Reads
	if q.parts.Copyable() {
		q.kind = memproto.Copyable
	}
	q.call.Verb, q.call.Repeatable = q.verb, q.repeatable
}

// lead sends a flight that gets have waited for.
func (w *worker) lead(f *flight) {
	q := f.First()
	q.itself()
	q.takeOff(f)
}

// takeOff makes the request of a flight: in the words of the one that makes it, if there
// is no other, else in words that serve all.
func (q *request) takeOff(f *flight) {
	w := q.w
	q.flight = f
	parts := memproto.Parts(f.Want())
	f.Call.renews = w.r.cfg.Refresh.Before > 0 && !parts.Meta()
	if f.Len() == 1 && !f.Call.renews {
		f.Call.own = q
		q.fly(q.own)
		return
	}
	if f.Call.renews {
		w.asked = append(append(w.asked[:0], "mg "...), q.key...)
		w.asked = w.r.cfg.Refresh.AppendFlags(w.asked, parts&memproto.ClassicCAS != 0)
		w.asked, q.sent = append(w.asked, "\r\n"...), memproto.MetaGet
		q.homely = true // only one server may choose
	} else {
		w.asked, q.sent = parts.AppendAsk(w.asked[:0], q.key)
	}
	q.call.Verb = q.sent
	q.kind = memproto.Reads
	if parts.Copyable() {
		q.kind = memproto.Copyable
	}
	q.fly(w.asked)
}

// land gives a server's reply to all that wait for it.
func (q *request) land(b []byte) {
	w, f := q.w, q.flight
	if q.nears {
		q.keepNear(b)
	}
	l := landing{w: w, reply: b, sent: q.sent, own: f.Call.own, renews: f.Call.renews}
	q.flight, f.Call = nil, flightCall{}
	if next := w.flights.Landed(f, w.now()); next != nil {
		w.lead(next)
	}
	if f.Len() > 1 || l.own == nil {
		l.found, l.ok = memproto.ParseFound(b)
	}
	for who, more := w.flights.Pop(f); more; who, more = w.flights.Pop(f) {
		l.serve(who)
	}
	if cap(w.formed) > keepScratch {
		w.formed = nil
	}
}

// landing is a reply that several wait for.
type landing struct {
	w      *worker
	reply  []byte
	sent   memproto.Verb
	own    *request
	renews bool
	found  memproto.Found
	ok     bool // found is
}

// serve gives the reply to one of them, in the form that it wants.
func (l *landing) serve(q *request) {
	w := l.w
	switch {
	case q == l.own || q.verb == l.sent && l.sent != memproto.MetaGet:
		q.served(l.reply)
	case l.ok && l.renews && l.hidden():
		q.served(w.missReply(q.verb, q.own))
	case l.ok:
		w.formed = l.found.AppendReply(w.formed[:0], q.verb, line(q.own), q.key)
		q.served(w.formed)
	case memproto.Missed(l.reply):
		q.served(w.missReply(q.verb, q.own))
	default:
		q.served(l.reply)
	}
	if l.ok && l.found.Won { // the next ones did not
		l.found.Won, l.found.Lost = false, true
	}
}

// hidden reports whether what was found is shown as a miss: to the one that is to renew
// it, and to all while nobody has stored a value yet.
func (l *landing) hidden() bool {
	empty := len(l.found.Value) == 0 && (l.found.Won || l.found.Lost)
	return l.found.Won || empty && l.w.r.cfg.Refresh.Vivify > 0
}

// line returns a request without the end of its line.
func line(raw []byte) []byte { return bytes.TrimRight(raw, "\r\n") }

// crash ends a flight that got no reply. Those that have time left fly once more.
func (q *request) crash(failure backend.Failure) {
	w, f := q.w, q.flight
	q.flight, f.Call = nil, flightCall{}
	if next := w.flights.Failed(f, w.now()); next != nil {
		w.lead(next)
	}
	for who, more := w.flights.Pop(f); more; who, more = w.flights.Pop(f) {
		who.finish(w.failureReply(who.verb, who.own, failure))
	}
}

// seal sends the flight that gets of a key wait for, before the key is written.
func (w *worker) seal(hash uint64, key []byte) {
	if w.flights == nil {
		return
	}
	if f := w.flights.Seal(hash, key, w.now()); f != nil {
		w.lead(f)
	}
}

// sealAll is seal for all keys.
func (w *worker) sealAll() {
	if w.flights == nil {
		return
	}
	for _, f := range w.flights.SealAll(nil, w.now()) {
		w.lead(f)
	}
}

// expireLater looks in a while for gets that have waited too long.
func (w *worker) expireLater() {
	if !w.expirer.Armed() {
		w.expirer.Func = w.expire
		w.loop.Set(&w.expirer, w.loop.Now().Add(expireEvery))
	}
}

func (w *worker) expire() {
	w.expired = w.flights.Expire(w.expired[:0], w.now())
	for _, q := range w.expired {
		q.finish(w.failureReply(q.verb, q.own, backend.TimedOut))
	}
	if w.flights.Len() > 0 {
		w.expireLater()
	}
}
