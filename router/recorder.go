package router

import (
	"fmt"
	"time"

	"cacherouter/memproto"
	"cacherouter/quota"
)

// Records are made when a request is over, of what it still has by then. What it has not is
// noted before, and only where there are records at all.

// recorder makes the records of one loop.
type recorder struct {
	Recording
	left int // requests up to the next one that is sampled
	slow *quota.Quota
	made Record // at hand
}

// course is what a record needs to know of how a request was answered that did not ask a
// server by itself.
type course struct {
	server      *node
	sent, first time.Duration // on the loop's clock
	pool        *Pool
	keys        int
	bytes       int // sent before the end of the reply
}

// record makes the loops keep records.
func (r *Router) record() error {
	c := r.cfg.Record
	if c.To == nil || c.Every <= 0 && c.Over <= 0 {
		return nil
	}
	rate := min(max(c.SlowRate, 1), quota.MaxRate)
	slow, err := quota.New(quota.Config{Rate: float64(rate), Burst: rate})
	if err != nil {
		return fmt.Errorf("slow requests: %w", err)
	}
	for i, f := range r.fronts {
		// Loops do not begin with the same request, so that few are soon seen.
		f.recorder = &recorder{Recording: c, left: 1 + i*c.Every/len(r.fronts), slow: slow}
	}
	return nil
}

// over looks whether a request that is over is to be recorded. It took so long.
func (r *recorder) over(q *request, took time.Duration, gone bool) {
	sampled, slow := false, false
	if r.Every > 0 {
		if r.left--; r.left == 0 {
			r.left, sampled = r.Every, true
		}
	}
	if r.Over > 0 && took >= r.Over {
		q.w.stats.Slow++
		if slow = r.slow.Ask(q.w.now(), 1) == quota.Passed; !slow {
			q.w.stats.SlowUnrecorded++
		}
	}
	if sampled || slow {
		r.make(q, took, gone)
		r.made.Sampled, r.made.Slow = sampled, slow
		r.To(&r.made)
	}
}

// make fills in the record at hand.
func (r *recorder) make(q *request, took time.Duration, gone bool) {
	s := q.session
	r.made = Record{
		At: time.Now().Add(-took), Client: s.peer, Listener: s.by.addr,
		Verb: q.clientVerb(), Key: string(q.call.Key), Keys: 1, Way: q.way, Outcome: q.outcome, Gone: gone, Bytes: int(q.bytes), Took: took,
	}
	m, c := &r.made, &q.course
	server, sent, first := c.server, c.sent, c.first
	if server == nil && q.node != nil {
		server, sent, first = q.node, q.call.Sent(), q.call.First()
	}
	m.Bytes += c.bytes
	switch {
	case c.keys > 0:
		m.Keys = c.keys
	case !m.Verb.May(memproto.Faulty): // is about none
		m.Key, m.Keys = "", 0
	}
	m.Pool = q.poolName()
	if !gone {
		m.Answered = q.answeredAt.since(q.came)
	}
	if server == nil {
		if m.Way == Home {
			m.Way = Unasked
		}
		return
	}
	m.Server = server.use.Name
	m.Sent = q.since(sent)
	if m.First = m.Answered; first != 0 {
		m.First = q.since(first)
	}
}

// poolName names the pool of a request, for a record.
func (q *request) poolName() string {
	p := q.w.p
	if q.way == Several {
		p = q.course.pool
	}
	if p == nil || len(q.w.front.workers) == 1 {
		return ""
	}
	return p.cfg.Name
}

// since returns how long after the request was read something was, on the loop's clock. What
// it joined may have been before.
func (q *request) since(at time.Duration) time.Duration {
	return time.Duration(max(0, int32(stampOf(at)-q.came))) << tickBits
}

// abandoned records the requests of a client that did not wait for their replies.
func (s *session) abandoned(q *request) {
	r := s.front.recorder
	if r == nil || q.came == 0 || q.hidden {
		return
	}
	q.outcome = memproto.Done
	r.over(q, q.age(), true)
}

// noteKeys notes of which keys a request of several is.
func (q *request) noteKeys(r *memproto.Request) {
	if q.w.recorder != nil {
		key, _ := memproto.NextWord(r.Keys)
		q.call.Key = append(q.call.Key[:0], key...)
		q.stray().course.keys = r.NumKeys
	}
}

// noteSent notes that so many bytes of a reply were passed on before its end.
func (q *request) noteSent(bytes int) {
	if q.w.recorder != nil {
		q.stray().course.bytes += bytes
	}
}

// noteAnswer notes which server of several was the last to be waited for.
func (p *part) noteAnswer() {
	if p.w.recorder != nil {
		p.gather.request.by(p.node, p.call.Sent(), p.call.First())
		p.gather.request.course.pool = p.w.p
	}
}

// by notes who has answered a request that did not ask by itself.
func (q *request) by(n *node, sent, first time.Duration) {
	c := &q.stray().course
	c.server, c.sent, c.first = n, sent, first
}
