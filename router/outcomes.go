package router

import (
	"time"

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
func (f *front) stamp() uint32 { return max(1, uint32(f.loop.Elapsed()/time.Microsecond)) }

// replied counts a request whose reply was given to the connection.
func (w *worker) replied(q *request) {
	if q.came != 0 && !q.hidden {
		w.latency.Observe(time.Duration(w.stamp()-q.came) * time.Microsecond)
	}
}

// answered counts a request that has its reply.
func (w *worker) answered(q *request, b []byte) {
	if q.came == 0 || q.hidden {
		return
	}
	v, o := q.verb, memproto.OutcomeOf(q.verb, b)
	if q.session.binary {
		v = q.binary.Verb()
	}
	if q.several && o == memproto.Miss { // which ends the values, be there any or none
		o = memproto.Done
	}
	w.stats.Replies[v][o]++
}
