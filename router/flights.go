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
type flight = coalesce.Flight[*request]

// crew is the gets of one that is over.
type crew = coalesce.Crew[*request]

// expireEvery is how often it is looked for gets that have waited too long for a flight
// that is not theirs.
const expireEvery = 20 * time.Millisecond

// read sends a request that changes nothing, or lets it wait with others.
func (q *request) read(raw []byte) {
	w := q.w
	if q.parts == 0 || w.flights == nil {
		w.seal(q.hash, q.call.Key) // a get of before must not be answered by what is read later
		q.fly(raw)
		return
	}
	if q.verb == memproto.MetaGet { // others can be said anew
		q.own = append(q.own[:0], raw...)
	}
	if w.p.leases != nil {
		q.stray().ticket = w.p.leases.Ticket()
	}
	if q.isNear() && !w.flights.Has(q.hash, q.call.Key) && q.findNear() {
		return
	}
	now := w.now()
	q.lent.Ask(q.hash, q.call.Key, coalesce.Want(q.parts), q, now+w.p.cfg.Timeout)
	switch f, role := w.flights.Join(&q.lent, w.epochFor(q.hash), now); role {
	case coalesce.Leader:
		q.takeOff(f, raw)
	case coalesce.Follower:
		q.way = max(q.way, Joined)
		if w.roams(q.hash, q.call.Key) {
			q.step()
		}
		w.expireLater()
	default:
		q.fly(raw)
	}
}

// epochFor returns a key's epoch where flights look at it.
func (w *worker) epochFor(hash uint64) uint64 {
	if w.p.cfg.Coalesce.Mode == coalesce.Strict {
		return 0
	}
	return w.epochs.Now(hash)
}

// words returns what a get asks by itself. It is valid until the next flight.
func (q *request) words() []byte {
	if q.verb == memproto.MetaGet {
		return q.own
	}
	w := q.w
	w.asked, _ = q.parts.AppendAsk(w.asked[:0], q.call.Key)
	return w.asked
}

// itself makes the request as it was before it was first asked.
func (q *request) itself() {
	q.sent, q.kind = q.verb, q.parts.Kind()
	q.call.Verb, q.call.Repeatable = q.verb, q.repeatable
	if q.strayed {
		q.avoid, q.homely = nil, false
	}
}

// lead sends a flight that gets have waited for. The request is the loop's own: those who
// wait for it may reach their deadlines, and be answered, while it is on its way.
func (w *worker) lead(f *flight) {
	q := w.newRequest()
	q.carrier = true
	q.hash, q.call.Key = f.Hash(), append(q.call.Key[:0], f.Key()...)
	q.call.Owner = q
	q.call.Repeatable, q.repeatable = true, true
	w.expireLater()
	q.takeOff(f, nil)
	if w.leaving() { // who asks in the next turn is too late for it
		w.flights.Sent()
	}
}

// takeOff makes the request of a flight: in the words of the get that leads it, if it has
// any, else in words that serve all who may wait for it.
func (q *request) takeOff(f *flight, words []byte) {
	w, parts := q.w, memproto.Parts(f.Want())
	q.flight, q.kind = f, parts.Kind()
	q.renews = w.p.cfg.Refresh.Before > 0 && !parts.Meta()
	q.ownWords = false
	switch {
	case q.renews:
		w.asked, q.sent = q.askToRenew(w.asked[:0], parts), memproto.MetaGet
		words, q.stray().homely = w.asked, true // only one server may choose
	case words != nil:
		q.ownWords, q.sent = true, q.verb
	default:
		w.asked, q.sent = parts.AppendAsk(w.asked[:0], q.call.Key)
		words = w.asked
	}
	q.call.Verb = q.sent
	q.fly(words)
}

// askToRenew appends a get that lets one who waits for it renew the item. It is not put in
// the place of a missing one that may still be where it lived before.
func (q *request) askToRenew(dst []byte, parts memproto.Parts) []byte {
	c := q.w.p.cfg.Refresh
	if q.w.before(q.hash, q.call.Key) != nil {
		c.Vivify = 0
	}
	dst = append(append(dst, "mg "...), q.call.Key...)
	return append(c.AppendFlags(dst, parts&memproto.ClassicCAS != 0), "\r\n"...)
}

// land gives a server's reply to all that wait for it.
func (q *request) land(b []byte) {
	w, f, carrier := q.w, q.flight, q.carrier
	if w.large && memproto.TellsHead(b) {
		q.landHead(b)
		return
	}
	if q.strayed && q.nears {
		q.keepNear(b)
	}
	if carrier && b[0] == 'V' { // VALUE, VA
		q.node.Saw(q.hash, len(b))
	}
	if q.ownWords && w.flights.LandedAlone(f) { // as most do: nobody else is to be told
		q.flight = nil
		q.served(b)
		return
	}
	l := landing{w: w, reply: b, sent: q.sent, renews: q.renews}
	if q.ownWords {
		l.asker = q
	}
	node, sent, first := q.node, q.call.Sent(), q.call.First()
	q.flight = nil
	var crew crew
	if next := w.flights.Landed(f, &crew, w.now()); next != nil {
		w.lead(next)
	}
	l.serveAll(&crew, node, sent, first)
	if carrier {
		w.recycle(q)
	}
}

// landHead is land for the head of a value, which has to be put together first.
func (q *request) landHead(b []byte) {
	w, f, carrier := q.w, q.flight, q.carrier
	j := w.newJoin(q.call.Key, q.coded, b)
	j.flight = landing{w: w, sent: q.sent, renews: q.renews}
	if q.ownWords {
		j.flight.asker = q
	}
	j.node, j.sent, j.first = q.node, q.call.Sent(), q.call.First()
	q.flight = nil
	if q.strayed {
		q.nears = false
	}
	if next := w.flights.Landed(f, &j.crew, w.now()); next != nil {
		w.lead(next)
	}
	if carrier {
		w.recycle(q)
	}
	j.begin()
}

// landing is a reply that several wait for.
type landing struct {
	w      *worker
	reply  []byte
	sent   memproto.Verb
	asker  *request // in whose own words it was asked; nil if they were made for all
	renews bool
	read   bool // found and ok are made
	found  memproto.Found
	ok     bool // found is
}

// serveAll gives the reply to all of them; of is who was asked, and when.
func (l *landing) serveAll(crew *crew, of *node, sent, first time.Duration) {
	w := l.w
	for who, more := w.flights.Pop(crew); more; who, more = w.flights.Pop(crew) {
		if w.recorder != nil && who.node == nil { // else it asked itself
			who.by(of, sent, first)
		}
		l.serve(who)
	}
	if cap(w.formed) > keepScratch {
		w.formed = nil
	}
}

// serve gives the reply to one of them, in the form that it wants.
func (l *landing) serve(q *request) {
	if q.verb == l.sent && l.sent != memproto.MetaGet { // as most, who need not know what is found
		q.served(l.reply)
		return
	}
	w := l.w
	if !l.read {
		l.read = true
		l.found, l.ok = memproto.ParseFound(l.reply)
	}
	won := l.ok && l.wins(q)
	switch {
	case q == l.asker:
		q.served(l.reply)
	case l.ok && l.renews && (won || l.filling()):
		d := q.stray()
		d.won, d.filling = won, !won
		q.served(w.missReply(q.verb, q.own))
	case l.ok:
		w.formed = l.found.AppendReply(w.formed[:0], q.verb, line(q.own), q.call.Key)
		q.served(w.formed)
	case memproto.Missed(l.reply):
		q.served(w.missReply(q.verb, q.own))
	default:
		q.served(l.reply)
	}
	if won { // the next ones did not
		l.found.Won, l.found.Lost = false, true
	}
}

// wins reports whether a get is the one that is to renew what was found: the first whose
// client is still there, and can be told.
func (l *landing) wins(q *request) bool {
	return l.found.Won && q.session != nil && (l.renews || q.verb == memproto.MetaGet)
}

// filling reports whether what was found only keeps the place of a missing item that
// somebody fills.
func (l *landing) filling() bool {
	f := &l.found
	empty := len(f.Value) == 0 && string(f.Flags) == "0"
	return empty && (f.Won || f.Lost) && l.w.p.cfg.Refresh.Vivify > 0
}

// line returns a request without the end of its line.
func line(raw []byte) []byte { return bytes.TrimRight(raw, "\r\n") }

// roams reports whether a read of a key may be asked of one server after another, so that
// a later request could overtake it.
func (w *worker) roams(hash uint64, key []byte) bool {
	return w.spills(hash) || !w.plain && (w.before(hash, key) != nil || w.table.Copies > 1 ||
		w.nodes[w.pick(hash)[0]].use.Reads != ReadHere)
}

// crash ends a flight that got no reply. Those that have time left fly once more.
func (q *request) crash(failure backend.Failure) {
	w, f, carrier := q.w, q.flight, q.carrier
	node, sent, first := q.node, q.call.Sent(), q.call.First()
	q.flight = nil
	if q.strayed {
		q.nears = false
	}
	var crew crew
	if next := w.flights.Failed(f, &crew, w.now()); next != nil {
		w.lead(next)
	}
	for who, more := w.flights.Pop(&crew); more; who, more = w.flights.Pop(&crew) {
		if w.recorder != nil && who.node == nil { // else it asked itself
			who.by(node, sent, first)
		}
		who.finish(w.failureReply(who.verb, who.own, failure))
	}
	if carrier {
		w.recycle(q)
	}
}

// seal sends the flight that gets of a key wait for, before the key is written
// or read in another way.
func (w *worker) seal(hash uint64, key []byte) {
	if w.flights == nil || w.flights.Len() == 0 {
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
		w.loop.Set(&w.expirer, w.loop.Now().Add(expireEvery))
	}
}

func (w *worker) expire() {
	w.expired = w.flights.Expire(w.expired[:0], w.now())
	for _, q := range w.expired {
		q.finish(w.failureReply(q.verb, q.own, backend.TimedOut))
	}
	if w.flights.Waits() {
		w.expireLater()
	}
}
