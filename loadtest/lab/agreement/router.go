package agreement

import (
	"fmt"
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// router is one, with its own opinion of the servers.
type router struct {
	w        *World
	i        int
	pool     *health.Pool
	node     *view.Node
	names    []string
	digest   uint64
	nextTurn time.Time
	nextFull time.Time   // when it tells all that it knows, as gossip does now and then
	probeAt  []time.Time // by server
	results  []result    // of probes on their way
}

// result is a probe's.
type result struct {
	server       int
	ok           bool
	started, due time.Time
}

func (w *World) newRouter(i int) *router {
	list := w.list()
	r := &router{w: w, i: i, pool: w.newPool(list)}
	c := w.config.View
	c.Router, c.Boot, c.Alone = fmt.Sprintf("r%03d", i), uint64(w.now.UnixMilli()), w.config.Routers == 1
	r.node = view.New(c, r.pool, list, w.now)
	r.digest = r.node.View().Digest
	for _, s := range list {
		r.names = append(r.names, s.Name)
		r.probeAt = append(r.probeAt, w.now.Add(w.jitter(time.Second)))
	}
	r.nextTurn, r.nextFull = w.now.Add(w.jitter(turn)), w.now.Add(w.jitter(fullEvery))
	return r
}

// fullEvery is the time between two exchanges of everything.
const fullEvery = 15 * time.Second

// step is what a router does in a moment: it probes, and each tenth of a second it takes a turn.
func (r *router) step() {
	w := r.w
	for s, at := range r.probeAt {
		if !w.now.Before(at) {
			r.probe(s)
		}
	}
	r.collect()
	if w.now.Before(r.nextTurn) {
		return
	}
	r.nextTurn = w.now.Add(turn)
	r.traffic()
	r.pool.Tick(w.now)
	r.node.Tick(w.now)
	for _, ret := range r.node.Returning(w.now) {
		r.node.Cleaned(ret.Server, ret.Flush)
	}
	if m, ok := r.node.Beat(w.now); ok {
		w.send(r.i, m)
	}
	if !w.now.Before(r.nextFull) {
		r.nextFull = w.now.Add(fullEvery)
		w.send(r.i, r.node.Full())
	}
	if d := r.node.View().Digest; d != r.digest {
		r.digest = d
		w.Changes = append(w.Changes, Change{r.i, w.Since()})
	}
}

func (r *router) probe(server int) {
	w, after := r.w, time.Duration(0)
	if w.servers[server] == Silent {
		after = timeout
	}
	every := r.pool.ProbeEvery(r.names[server])
	r.probeAt[server] = w.now.Add(after + every*4/5 + w.jitter(every*2/5))
	r.results = append(r.results, result{server, w.servers[server] == Answers, w.now, w.now.Add(after)})
}

func (r *router) collect() {
	waiting := r.results[:0]
	for _, x := range r.results {
		if r.w.now.Before(x.due) {
			waiting = append(waiting, x)
			continue
		}
		r.pool.Probe(r.names[x.server], x.ok, x.started, r.w.now)
	}
	r.results = waiting
}

// traffic is a request to each server that does not answer as it should, or did not lately: what others
// answer changes nothing.
func (r *router) traffic() {
	for s, state := range r.w.servers {
		if state == Answers && r.pool.State(r.names[s]) == health.Up || !r.pool.Usable(r.names[s]) {
			continue
		}
		switch state {
		case Answers:
			r.pool.Observe(r.names[s], health.Observation{OK: 1, Latency: time.Millisecond}, r.w.now)
		case Refuses:
			r.pool.Observe(r.names[s], health.Observation{Refused: 1, Streak: 1}, r.w.now)
		}
	}
}
