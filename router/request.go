package router

import (
	"cacherouter/backend"
	"cacherouter/memproto"
)

// request is one request of a client, from its dispatch to its reply.
type request struct {
	w       *worker
	session *session // nil when the client is gone
	call    backend.Call
	server  *backend.Server
	hash    uint64
	verb    memproto.Verb
	quiet   bool                // noreply or q was asked for
	hidden  bool                // no reply is ever shown: the router's own request
	done    bool                // reply is whole
	gather  *gather             // of a multiget
	reply   []byte              // what waits to be sent
	binary  memproto.BinaryCall // of a client of the binary protocol
	next    *request
}

// keepReply is the capacity above which a request does not keep its buffer, in bytes.
const keepReply = 16 << 10

// recycle takes back a request that is over.
func (w *worker) recycle(q *request) {
	q.call.Reset()
	reply := q.reply[:0]
	if cap(reply) > keepReply {
		reply = nil
	}
	*q = request{call: q.call, reply: reply, binary: q.binary}
	w.requests.give(q)
}

// send sends a request on one key to the key's home.
func (s *session) send(r *memproto.Request) {
	q := s.push(r)
	q.dispatch(r)
}

// dispatch sends the request to its key's home.
func (q *request) dispatch(r *memproto.Request) {
	w := q.w
	q.hash = w.table.hash(r.RouteKey(w.keyBuf[:]))
	q.server = w.home(q.hash)
	q.call.Owner = q
	q.call.Verb = r.Verb
	q.call.Whole = true
	q.call.Repeatable = r.Repeatable()
	raw := r.Forward(w.scratch)
	if len(r.Data) > 0 {
		q.server.Saw(q.hash, len(raw))
	}
	q.send(raw)
	if r.NoReply && cap(raw) <= keepReply {
		w.scratch = raw[:0]
	}
}

// send sends what the server is to get, on the lane of its key.
func (q *request) send(raw []byte) {
	lane := q.server.LaneOf(q.hash, len(raw))
	q.server.Claim(&q.call, lane, q.hash)
	q.server.Send(&q.call, lane, raw)
}

// forget deletes the key of a refused store at its home. The client sees nothing of it.
func (s *session) forget(r *memproto.Request) {
	line := make([]byte, 0, memproto.MaxKey+16)
	if r.Base64 {
		line = append(append(append(line, "md "...), r.Key...), " b\r\n"...)
	} else {
		line = append(append(append(line, "delete "...), r.Key...), "\r\n"...)
	}
	var del memproto.Request
	if _, status := s.w.parser.Parse(line, &del); status != memproto.Complete {
		return
	}
	q := s.push(&del)
	q.hidden = true
	q.dispatch(&del)
}

// Replied takes a server's reply to the client, or keeps it until its turn.
func (q *request) Replied(_ *backend.Call, _ memproto.Unit, b []byte) bool {
	if q.w.stats.count(q.verb, b) {
		q.server.Saw(q.hash, len(b))
	}
	q.finish(b)
	return true
}

// Failed answers in the name of a server that did not.
func (q *request) Failed(_ *backend.Call, f backend.Failure) {
	q.finish(q.w.failureReply(q.verb, q.call.Raw(), f))
}

// Restarted has nothing to take back, as replies come whole.
func (q *request) Restarted(*backend.Call) {}

// finish ends the request with a reply, which is shown unless the client wants silence.
func (q *request) finish(b []byte) {
	s := q.session
	if s == nil {
		q.w.recycle(q)
		return
	}
	s.sized(len(b))
	var head []byte // of a binary answer
	switch {
	case q.hidden:
		b = nil
	case s.binary:
		head, b = q.answer(b)
	case q.quiet && memproto.Quiet(q.verb, b):
		b = nil
	}
	if s.head != q {
		q.keep(head)
		q.keep(b)
		q.done = true
		return
	}
	if len(head) > 0 {
		s.conn.Write(head)
	}
	s.conn.Write(b)
	s.pop()
	q.w.recycle(q)
	s.settle()
}

// keep holds bytes of the reply back until those of earlier requests have been sent.
func (q *request) keep(b []byte) {
	q.reply = append(q.reply, b...)
	q.session.held += len(b)
}

// failureReply returns what a client is told when no server answered. It is valid until
// the next call.
func (w *worker) failureReply(v memproto.Verb, raw []byte, f backend.Failure) []byte {
	w.stats.Failed++
	b := w.scratch[:0]
	switch {
	case !w.r.cfg.MissOnFailure || len(raw) == 0:
		b = append(b, "SERVER_ERROR backend "...)
		b = append(b, f.Error()...)
		b = append(b, "\r\n"...)
	case v == memproto.MetaGet:
		b = memproto.AppendMetaMiss(b, raw)
	case v == memproto.Get || v == memproto.Gets || v == memproto.Gat || v == memproto.Gats:
		b = append(b, "END\r\n"...)
	default:
		return w.failureReply(v, nil, f)
	}
	w.scratch = b[:0]
	return b
}
