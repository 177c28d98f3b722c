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
	own *request // whose own words were sent; nil if they were made for all
}

// expireEvery is how often it is looked for gets that have waited too long for a flight
// that is not theirs.
const expireEvery = 20 * time.Millisecond

// read sends a request that changes nothing, or lets it wait with others.
func (q *request) read(raw []byte) {
	w := q.w
	q.own = append(q.own[:0], raw...)
	if q.parts == 0 || w.flights == nil {
		q.fly(raw)
		return
	}
	now := w.now()
	ask := coalesce.Ask[*request]{
		Hash: q.hash, Key: q.key, Want: coalesce.Want(q.parts), Epoch: w.epochs.Now(q.hash),
		Who: q, Deadline: now + w.r.cfg.Timeout, Now: now,
	}
	switch f, role := w.flights.Join(&ask); role {
	case coalesce.Leader:
		q.flight, f.Call.own = f, q
		q.fly(raw)
	case coalesce.Follower:
		w.expireLater()
	default:
		q.fly(raw)
	}
}

// lead sends a flight that gets have waited for.
func (w *worker) lead(f *flight) {
	q := f.First()
	q.flight = f
	if f.Len() == 1 {
		f.Call.own = q
		q.sent = q.verb
		q.fly(q.own)
		return
	}
	f.Call.own = nil
	parts := memproto.Parts(f.Want())
	w.asked, q.sent = parts.AppendAsk(w.asked[:0], q.key)
	q.call.Verb = q.sent
	q.kind = memproto.Reads
	if parts.Copyable() {
		q.kind = memproto.Copyable
	}
	q.fly(w.asked)
}

// land gives a server's reply to all that wait for it.
func (q *request) land(b []byte) {
	w, f, sent := q.w, q.flight, q.sent
	q.flight = nil
	own := f.Call.own
	f.Call.own = nil
	if next := w.flights.Landed(f, w.now()); next != nil {
		w.lead(next)
	}
	found, ok := memproto.Found{}, false
	if f.Len() > 1 || own == nil {
		found, ok = memproto.ParseFound(b)
	}
	for who, more := w.flights.Pop(f); more; who, more = w.flights.Pop(f) {
		switch {
		case who == own || who.verb == sent && sent != memproto.MetaGet:
			who.served(b)
		case ok:
			w.formed = found.AppendReply(w.formed[:0], who.verb, line(who.own), who.key)
			who.served(w.formed)
		case memproto.Missed(b):
			who.served(w.missReply(who.verb, who.own))
		default:
			who.served(b)
		}
		if ok && found.Won { // the next ones did not
			found.Won, found.Lost = false, true
		}
	}
	if cap(w.formed) > keepScratch {
		w.formed = nil
	}
}

// line returns a request without the end of its line.
func line(raw []byte) []byte { return bytes.TrimRight(raw, "\r\n") }

// crash ends a flight that got no reply. Those that have time left fly once more.
func (q *request) crash(failure backend.Failure) {
	w, f := q.w, q.flight
	q.flight = nil
	f.Call.own = nil
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
