package router

import (
	"time"

	"cacherouter/backend"
	"cacherouter/memproto"
)

// Replies counts replies by the client's verb and what they say.
type Replies [memproto.NumVerbs][memproto.NumOutcomes]uint64

func (r *Replies) add(o *Replies) {
	for v := range o {
		for i, n := range o[v] {
			r[v][i] += n
		}
	}
}

// A stamp is a time on a loop's clock in ticks, never 0. It starts over after 73 minutes, longer than
// any request takes.
type stamp uint32

const tickBits = 10 // of the nanoseconds of a tick

// stamp returns the time of the turn.
func (f *front) stamp() stamp { return stampOf(f.loop.Elapsed()) }

func stampOf(at time.Duration) stamp { return max(1, stamp(at>>tickBits)) }

// since returns the time between two stamps.
func (s stamp) since(before stamp) time.Duration { return time.Duration(s-before) << tickBits }

// age returns for how long a request has been there.
func (q *request) age() time.Duration { return q.w.stamp().since(q.came) }

// replied counts a request whose reply was given to the connection.
func (w *worker) replied(q *request) {
	if q.came == 0 || q.hidden {
		return
	}
	took := q.age()
	w.latency.Observe(took)
	if w.recorder != nil {
		w.recorder.over(q, took, false)
	}
}

// answered counts a request that has its reply, of so many bytes.
func (w *worker) answered(q *request, o memproto.Outcome, bytes int) {
	if q.came == 0 || q.hidden {
		return
	}
	if q.several && o == memproto.Miss { // which ends the values, be there any or none
		o = memproto.Done
	}
	w.stats.Replies[q.clientVerb()][o]++
	if w.recorder != nil {
		q.outcome, q.bytes, q.answeredAt = o, uint32(bytes), w.stamp()
	}
}

// clientVerb returns the verb that the client has used, or would have in the text protocol.
func (q *request) clientVerb() memproto.Verb {
	if q.session.binary {
		return q.binary.Verb()
	}
	return q.verb
}

// failureReply returns what a client is told when no server answered. It is valid until
// the next call.
func (w *worker) failureReply(v memproto.Verb, raw []byte, f backend.Failure) []byte {
	w.stats.Failed++
	w.stats.Failures[f]++
	if w.p.cfg.MissOnFailure {
		if b := w.missReply(v, raw); b != nil {
			return b
		}
	}
	w.said = append(append(w.said[:0], "SERVER_ERROR backend "...), f.Error()...)
	w.said = append(w.said, "\r\n"...)
	return w.said
}

// missReply returns what a read is told that finds nothing; nil if it is no read. It is
// valid until the next call.
func (w *worker) missReply(v memproto.Verb, raw []byte) []byte {
	switch v {
	case memproto.Get, memproto.Gets, memproto.Gat, memproto.Gats:
		return endLine
	case memproto.MetaGet:
		if len(raw) == 0 { // then it may not be one that only reads
			return nil
		}
		w.said = memproto.AppendMetaMiss(w.said[:0], raw)
		return w.said
	}
	return nil
}
