package router

import (
	"cacherouter/hotkey"
	"cacherouter/memproto"
)

// What hot keys are spared: a round trip to their server, and more requests than they may
// have. The near cache keeps replies in the form of the protocol that they came in: a
// classic one does not say whether the item was marked as stale, so no meta get takes it.

// limited is said when a key gets more requests than it may.
var limited = []byte("SERVER_ERROR key has too many requests\r\n")

// denies reports whether the key may have no more requests now.
func (w *worker) denies(hash uint64) bool {
	return w.p.limiter != nil && !w.p.limiter.Allow(hash, w.now())
}

// isNear reports whether a get may be answered from the near cache.
func (q *request) isNear() bool {
	return q.w.near != nil && q.parts.Copyable() && q.w.hot(q.hash)
}

// mayKeep reports whether the reply to a flight may be kept in the near cache.
func (q *request) mayKeep() bool {
	p := memproto.Parts(q.flight.Want())
	return q.w.near != nil && p&(memproto.ClassicItem|memproto.MetaFlags) != 0 && q.w.hot(q.hash)
}

// findNear answers a get from the near cache. It is not asked while gets of the key are on
// their way: one of the same client must not be answered by something newer.
func (q *request) findNear() bool {
	w := q.w
	value, ok := w.near.Find(q.hash, q.call.Key, w.now())
	switch {
	case !ok:
		return false
	case !memproto.IsValue(value): // is of the meta protocol
	case q.verb == memproto.MetaGet:
		return false
	default:
		q.way = Near
		q.served(value)
		return true
	}
	q.way = Near
	found, _ := memproto.ParseFound(value)
	w.formed = found.AppendReply(w.formed[:0], q.verb, line(q.own), q.call.Key)
	q.served(w.formed)
	return true
}

// keepNear keeps the reply to a get, unless it was read for somebody who is to renew it.
func (q *request) keepNear(b []byte) {
	w, t := q.w, q.near
	q.near, q.nears = hotkey.Token{}, false
	if q.sent == memproto.Get {
		if memproto.IsValue(b) {
			w.near.Fill(t, q.call.Key, b)
		}
		return
	}
	found, ok := memproto.ParseFound(b)
	if !ok || len(found.Flags) == 0 || found.Won || found.Stale || found.Lost {
		return
	}
	verb := memproto.Get
	if q.sent == memproto.MetaGet {
		verb = memproto.MetaGet
	}
	w.formed = found.AppendReply(w.formed[:0], verb, keptAs, q.call.Key)
	w.near.Fill(t, q.call.Key, w.formed)
}

// keptAs is the meta get whose reply is kept.
var keptAs = []byte("mg k v f")
