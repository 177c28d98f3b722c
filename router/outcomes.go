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

// stamp returns the time of the turn in microseconds, never 0. It starts over after 71
// minutes, longer than any request takes.
func (f *front) stamp() uint32 { return stampOf(f.loop.Elapsed()) }

func stampOf(at time.Duration) uint32 { return max(1, uint32(at/time.Microsecond)) }

// age returns for how long a request has been there.
func (q *request) age() time.Duration {
	return time.Duration(q.w.stamp()-q.came) * time.Microsecond
}

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
