package router

import (
	"bytes"
	"crypto/rand"

	"cacherouter/memproto"

	"github.com/cespare/xxhash/v2"
)

// A pool may split large values: their parts are items of their own, spread over the servers,
// and what is stored by the client's key is a head that says which parts there are. Parts are
// stored first, by keys that no other value ever has, and never changed. So a reader who has
// the head has one value or, if a part is gone, none; and the order of writes of a key, its
// copies, failovers and tokens are those of its head, an item like any other.

// keyReserved is said to a client that writes a key of parts, and flagsReserved to one whose
// append or prepend could make an item that looks like a head.
var (
	keyReserved   = []byte("CLIENT_ERROR key is one of parts of values\r\n")
	flagsReserved = []byte("CLIENT_ERROR flags are those of values in parts\r\n")
	partsGone     = []byte("SERVER_ERROR large value cannot be stored\r\n")
)

// piece says that a request is on one part of a value, or on its head, and who wants its reply.
type piece struct {
	of    taker // nil of other requests
	place int
}

// taker takes the replies to pieces, which are valid during the call. Failed says that a
// reply, which may look like a miss then, is no server's.
type taker interface {
	took(place int, reply []byte, failed bool)
}

// newPiece returns a request of the router's own.
func (w *worker) newPiece(of taker, place int, key []byte, coded bool, v memproto.Verb, k memproto.Kind) *request {
	q := w.newRequest()
	q.hidden = true
	q.of(key, coded, v, k)
	q.stray().piece = piece{of, place}
	q.repeatable = v.Retrieves()
	q.call.Repeatable = q.repeatable
	return q
}

// splits deals with a write that is not simply passed on as values are split: it stores one,
// or is refused. It reports false for others.
func (q *request) splits(raw []byte) bool {
	if !stores(q.verb) || q.strayed && q.piece.of != nil {
		return q.reserved()
	}
	store, ok := memproto.ParseStore(q.verb, raw)
	switch {
	case q.reserved():
	case !ok && q.verb == memproto.MetaSet && memproto.UsesHeadFlags(raw):
		q.refuse(flagsReserved)
	case ok && (len(store.Value) > q.w.p.cfg.SplitOver || store.Flags == memproto.HeadFlags):
		q.split(&store, raw)
	default:
		return false
	}
	return true
}

// reserved refuses a client's write of a key of parts, and reports whether it did.
func (q *request) reserved() bool {
	if q.session == nil || !bytes.HasPrefix(q.call.Key, []byte(memproto.PartPrefix)) {
		return false
	}
	q.refuse(keyReserved)
	return true
}

func (q *request) refuse(line []byte) {
	q.w.front.stats.Refused[memproto.BadLine]++
	q.finish(line)
}

// splitting is a write whose parts are being stored.
type splitting struct {
	q    *request
	head memproto.Head
	raw  []byte // what stores the head
	left int    // replies to wait for
	fail []byte // what the first part that was not stored was answered with
}

// split stores the parts, and then the head as the client wants it to be.
func (q *request) split(store *memproto.Store, raw []byte) {
	w := q.w
	s := &splitting{q: q}
	s.head = memproto.Head{
		Size: uint32(w.p.cfg.SplitOver), Length: uint32(len(store.Value)), Flags: store.Flags, Sum: xxhash.Sum64(store.Value),
	}
	rand.Read(s.head.ID[:]) // which never fails
	s.raw = memproto.AppendStoreOf(nil, q.verb, raw, memproto.HeadFlags, s.head.Append(nil))
	q.stray().inParts = s
	q.step()
	w.stats.Split++
	s.left = 1 // held while some are not sent yet, as one may fail at once
	var key []byte
	for i := range s.head.Parts() {
		s.left++
		from, to := s.head.Part(i)
		key = s.head.AppendKey(key[:0], i)
		part := w.newPiece(s, i, key, false, memproto.Set, memproto.Changes)
		w.line = memproto.AppendSet(w.line[:0], key, store.Exptime, store.Value[from:to])
		part.write(w.line)
	}
	if cap(w.line) > keepScratch {
		w.line = nil
	}
	s.arrived()
}

func (s *splitting) took(_ int, reply []byte, _ bool) {
	if len(s.fail) == 0 && !bytes.HasPrefix(reply, []byte("STORED")) {
		s.fail = append(s.fail, reply...)
		if !memproto.IsFault(reply) {
			s.q.w.stats.Failed++
			s.fail = partsGone
		}
	}
	s.arrived()
}

// arrived counts one reply less to wait for; with the last the head is stored.
func (s *splitting) arrived() {
	if s.left--; s.left > 0 {
		return
	}
	if len(s.fail) > 0 {
		s.drop()
		s.q.finish(s.fail)
		return
	}
	s.q.write(s.raw)
}

// drop deletes the parts of a value that was not stored.
func (s *splitting) drop() {
	w := s.q.w
	for i := range s.head.Parts() {
		w.key = s.head.AppendKey(w.key[:0], i)
		w.forgetItem(w.key, false)
	}
}

// forgetItem deletes an item as a client would, if one did not look at the answer.
func (w *worker) forgetItem(key []byte, coded bool) {
	line, verb := memproto.AppendDelete(nil, key, coded)
	w.newPiece(nobody{}, 0, key, coded, verb, memproto.Changes).write(line)
}

// nobody takes replies that do not matter.
type nobody struct{}

func (nobody) took(int, []byte, bool) {}

// concludeLarge is conclude in a pool that splits values.
func (q *request) concludeLarge(b []byte) {
	switch {
	case !q.strayed:
	case q.piece.of != nil:
		q.end(b, memproto.Done)
		return
	case q.inParts != nil:
		if !memproto.Changed(q.verb, b) {
			q.inParts.drop()
		}
		q.served(q.tellLength(b))
		return
	}
	exptime := q.touches(b)
	switch {
	case memproto.TellsHead(b):
		j := q.w.newJoin(q.call.Key, q.coded, b)
		j.q, j.words, j.exptime = q, bytes.Clone(q.call.Raw()), exptime
		q.step()
		j.begin()
		return
	case len(exptime) > 0 && !memproto.TellsFlags(b): // nobody knows what it is that was touched
		q.w.touchParts(q.call.Key, q.coded, exptime)
	}
	q.served(b)
}

// touches returns the life that the request has given to an item that it found, empty if it
// gave none.
func (q *request) touches(reply []byte) []byte {
	if q.kind != memproto.Changes || !memproto.Changed(q.verb, reply) || memproto.IsFault(reply) {
		return nil
	}
	return bytes.Clone(memproto.Touches(q.verb, q.call.Raw()))
}

// tellLength puts the length of the whole value into the reply to an ms, if that tells one.
func (q *request) tellLength(b []byte) []byte {
	if q.verb == memproto.MetaSet && bytes.HasPrefix(b, []byte("HD")) {
		w := q.w
		w.formed = memproto.AppendReplyOf(w.formed[:0], b, 0, int64(q.inParts.head.Length), nil)
		return w.formed
	}
	return b
}

// askOfHead returns a meta get that tells a head from other items. The head of one that does
// not ask for the value has to be asked for: that must not be overtaken by a write.
func (q *request) askOfHead(r *memproto.Request, raw []byte) []byte {
	w := q.w
	if r.WantsOnlyAbout() {
		q.step()
	}
	if !r.HidesFlags() {
		return raw
	}
	q.stray().hidesFlags = true
	if q.parts != 0 {
		q.parts |= memproto.MetaFlags
	}
	w.asks = memproto.AppendAskFlags(w.asks[:0], raw)
	return w.asks
}

// hideFlags takes what askFlags has added out of the reply.
func (q *request) hideFlags(b []byte) []byte {
	w := q.w
	w.hides = memproto.AppendWithoutFlags(w.hides[:0], b)
	b = w.hides
	if cap(b) > keepScratch {
		w.hides = nil
	}
	return b
}
