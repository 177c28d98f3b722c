package router

import (
	"cacherouter/backend"
	"cacherouter/hotkey"
	"cacherouter/internal/prefetch"
	"cacherouter/memproto"
	"cacherouter/quota"
)

// request is one request of a client, from its dispatch to its reply. There are many at a
// time, so what a plain get needs stands together and the rest is not looked at: memory
// that is touched is what a request costs most. For the same reason it is not more than
// 512 bytes, which Go's allocator puts at the beginning of a cache line.
type request struct {
	call backend.Call
	state
	reply  []byte              // what waits to be sent
	lent   flight              // to the table of flights, if it is the first of its key
	own    []byte              // the client's words, of a meta get
	binary memproto.BinaryCall // of a client of the binary protocol
	writing
	*detour // of the loop and zero, or its own; never nil
}

// state is what every request needs.
type state struct {
	w       *worker
	session *session // nil when the client is gone
	next    *request // of the client
	node    *node    // where the call is
	flight  *flight  // that a get makes for all
	hash    uint64

	verb   memproto.Verb // the client's
	sent   memproto.Verb // what servers are asked
	kind   memproto.Kind
	parts  memproto.Parts // what a get wants that may share a flight
	coded  bool           // the key is sent in base64
	quiet  bool           // noreply or q was asked for
	hidden bool           // no reply is ever shown: the router's own request
	done   bool           // reply is whole
	steps  bool           // may ask more than one server: counted by the session
	// carrier says that it makes a flight and is nobody's own.
	carrier    bool
	repeatable bool
	ownWords   bool // flight is asked in the get's words; else in words for all
	renews     bool // flight: one may be chosen to renew the item
	adds       bool // stores only if the item is not there
	strayed    bool // detour is its own
	outrun     bool // its client has written the key since; only where there are leases
	several    bool // keys are asked for
	counted    bool // by quotas

	// came is when it was read, as stamp has it; 0 of what is not a request.
	came stamp

	// Of one that may be recorded; see recorder.
	way        Way
	outcome    memproto.Outcome
	bytes      uint32 // of the reply
	answeredAt stamp

	charge charge  // what it counts for at node
	gather *gather // of a multiget
	parent *gather // of one of its keys
	place  int32   // of that
}

// writing is what a request needs that changes an item. It is the zero value for others.
type writing struct {
	began   bool      // the epochs know of it
	filled  bool      // a copy was on its way when it was sent
	lapses  bool      // what it leaves is over at once; only if filled
	mark    uint64    // from when they were told
	version uint64    // of the table that it was placed with
	clean   *cleaning // what follows it; nil if nothing does
}

// detour is what a request needs that does more than to ask its key's home. Until it needs
// one it has the loop's, which stays zero: who writes to it says so with stray.
type detour struct {
	from  sources // of a read
	token uint64  // the key's epoch from before it was sent
	avoid *node   // has failed it
	under *route  // says more of it than its pool; else nil
	// shadow says that no client waits for it.
	shadow  bool
	compare *comparison // of its answer with another pool's; nil if there is none
	// hidesFlags says that the client did not ask for the flags that were asked for.
	hidesFlags bool
	piece      piece
	unanswered bool       // what a piece is told is no server's reply
	inParts    *splitting // the write of a large value
	// homely says that only the home is asked.
	homely bool
	near   hotkey.Token // to keep the reply by, if nears
	nears  bool
	ticket uint64 // from before it was asked, for leases
	// won and filling say why a miss is shown in place of an item: the client is to renew
	// it, or somebody else fills it.
	won, filling bool
	waited       bool // has been parked: counted by the session
	// detached says that it is not in its client's list: its reply may come at any time.
	detached bool
	fill     *refill      // waits for the reply
	held     *quota.Quota // of its route, that it is counted by
	owed     *quota.Quota // of its client, which is gone
	course   course       // where there are records

	// Of one that may have to pull its item first.
	old     *node  // where the item lived before; nil if it need not
	raw     []byte // what is sent again
	kept    []byte // the home's reply
	first   bool   // pulls before the home is asked
	pulling bool
	pulled  bool
}

// newRequest returns a request that is nobody's yet.
func (w *worker) newRequest() *request {
	q := w.requests.take()
	prefetch.Lines(w.requests.top()) // the next one will need it
	q.w = w
	if q.detour == nil {
		q.detour = &w.straight
	}
	return q
}

// stray returns the request's own detour.
func (q *request) stray() *detour {
	if !q.strayed {
		q.strayed = true
		q.detour = q.w.detours.take()
	}
	return q.detour
}

// recycle takes back a request that is over.
func (f *front) recycle(q *request) {
	if q.counted {
		q.depart()
	}
	if q.kind == memproto.Changes {
		if q.clean != nil {
			q.clean.release()
		}
		q.writing = writing{}
	}
	if q.strayed {
		*q.detour = detour{raw: spare(q.raw), kept: spare(q.kept)}
		f.detours.give(q.detour)
		q.detour = &f.straight
	}
	q.state = state{}
	q.call.Reset()
	if len(q.reply) > 0 {
		q.reply = f.spare(q.reply)
	}
	f.requests.give(q)
}

// send sends a request on one key to the servers.
func (s *session) send(r *memproto.Request) {
	q := s.push(r)
	q.dispatch(r)
}

// dispatch sends the request to the servers.
func (q *request) dispatch(r *memproto.Request) {
	w := q.w.front
	key := r.RouteKey(w.keyBuf[:])
	if only := q.session.only; only != nil {
		q.w = only
	} else if r, key = q.follow(r, key); r == nil {
		return
	}
	q.about(key, r.Base64, r.Verb, r.Kind())
	q.parts = r.Parts()
	q.adds = r.Verb == memproto.Add || r.Verb == memproto.MetaSet && r.Conditional()
	q.call.Repeatable = r.Repeatable()
	q.repeatable = q.call.Repeatable
	raw := r.Forward(w.scratch)
	if q.w.large && r.Verb == memproto.MetaGet {
		raw = q.askOfHead(r, raw)
	}
	if q.strayed {
		q.submit(q.obey(raw))
	} else {
		q.submit(raw)
	}
	if r.NoReply && cap(raw) <= keepReply {
		w.scratch = raw[:0]
	}
}

// about says what the request is about. The key is as servers know it; coded says that it is
// sent in base64.
func (q *request) about(key []byte, coded bool, v memproto.Verb, k memproto.Kind) {
	q.of(key, coded, v, k)
	q.w.touch(q.hash, key, k == memproto.Changes)
}

// of is about for a key that was counted.
func (q *request) of(key []byte, coded bool, v memproto.Verb, k memproto.Kind) {
	q.hash = q.w.table.KeyHash(key)
	q.coded, q.verb, q.sent, q.kind = coded, v, v, k
	q.call.Key = append(q.call.Key[:0], key...)
	q.call.Owner = q
	q.call.Verb = v
}

// submit sends the request where it belongs.
func (q *request) submit(raw []byte) {
	switch w := q.w; {
	case q.hidden:
	case w.denies(q.hash):
		w.stats.Limited++
		q.finish(limited)
		return
	case w.p.sheds && w.crowded(q.hash, q.kind, q.under.ranks()):
		q.shed(raw)
		return
	default:
		w.budget.Asked(1)
	}
	q.pass(raw)
}

// pass is submit for a request that was let through before.
func (q *request) pass(raw []byte) {
	if q.kind == memproto.Changes {
		if !q.w.large || !q.splits(raw) {
			q.write(raw)
		}
	} else {
		q.read(raw)
	}
}

// send sends what a server is to get, on the lane of its key.
func (q *request) send(raw []byte) {
	lane := q.node.LaneOf(q.hash, len(raw))
	q.node.Claim(&q.call, lane, q.hash)
	q.node.Send(&q.call, lane, raw)
}

// Replied takes a server's reply.
func (q *request) Replied(_ *backend.Call, u memproto.Unit, b []byte) bool {
	q.w.unload(&q.charge, false)
	if u.Fault {
		q.w.stats.Faulty++
	}
	switch {
	case q.strayed && q.pulling:
		q.pulledItem(b)
	case q.kind == memproto.Changes:
		q.wrote(b)
	case q.strayed:
		q.hasRead(b)
	default:
		q.conclude(b)
	}
	return true
}

// Failed takes word that a server did not reply.
func (q *request) Failed(_ *backend.Call, f backend.Failure) {
	q.w.unload(&q.charge, true)
	switch {
	case q.strayed && q.pulling:
		q.pullFailed()
	case q.kind == memproto.Changes:
		q.writeFailed(f)
	default:
		q.readFailed(f)
	}
}

// Restarted has nothing to take back, as replies come whole.
func (q *request) Restarted(*backend.Call) {}

// conclude ends the request, and those that wait with it, with a server's reply.
func (q *request) conclude(b []byte) {
	switch {
	case q.flight != nil:
		q.land(b)
	case q.w.large:
		q.concludeLarge(b)
	default:
		q.served(b)
	}
}

// served ends the request with its reply, unless that is a miss that is not to be shown.
func (q *request) served(b []byte) {
	if memproto.Missed(b) && q.mayLease() && q.lease() {
		return
	}
	q.show(b)
}

// show ends the request with its reply.
func (q *request) show(b []byte) {
	o := memproto.OutcomeOf(q.verb, b)
	if q.parent == nil && q.w.stats.count(q.verb, o) {
		if q.node != nil { // it made the request
			q.node.Saw(q.hash, len(b))
		}
		q.w.moved(q.hash, q.call.Key, len(b))
	}
	q.end(b, o)
}

// finish ends the request with a reply, which is shown unless the client wants silence.
func (q *request) finish(b []byte) { q.end(b, memproto.OutcomeOf(q.verb, b)) }

// end is finish with what the reply says.
func (q *request) end(b []byte, o memproto.Outcome) {
	s := q.session
	if q.strayed && q.compare != nil && !q.shadow {
		q.compared(b, false)
	}
	if q.counted {
		q.depart()
	}
	switch {
	case q.parent != nil:
		q.parent.answered(int(q.place), b)
		q.w.recycle(q)
		return
	case s == nil:
		q.faded(b)
		q.w.recycle(q)
		return
	}
	s.sized(len(b))
	q.w.answered(q, o, len(b))
	var head []byte // of a binary answer
	if q.strayed || q.hidden || q.quiet || s.binary {
		head, b = q.shown(b)
	}
	detached := q.strayed && q.detached
	if s.head != q && !detached {
		q.keep(head)
		q.keep(b)
		q.done = true
		return
	}
	s.conn.Write(head)
	s.conn.Write(b)
	if detached {
		s.unloose(q)
	} else {
		s.pop()
	}
	q.w.replied(q)
	q.w.recycle(q)
	s.settle()
}

// shown returns what the client is shown of the reply, in two parts if it is binary.
func (q *request) shown(b []byte) (head, value []byte) {
	s := q.session
	if q.strayed && q.hidesFlags {
		b = q.hideFlags(b)
	}
	if q.strayed && !s.binary && q.under.renames() {
		b = q.ownReply(b)
	}
	switch {
	case q.hidden:
		return nil, nil
	case s.binary:
		return q.answer(b)
	case q.quiet && memproto.Quiet(q.verb, b):
		return nil, nil
	}
	return nil, b
}

// keep holds bytes of the reply back until those of earlier requests have been sent.
func (q *request) keep(b []byte) {
	if len(b) == 0 {
		return
	}
	q.reply = append(q.w.room(q.reply, len(b)), b...)
	q.session.held += len(b)
}
