package router

import (
	"slices"
	"time"

	"cacherouter/backend"
	"cacherouter/balance"
	"cacherouter/coalesce"
	"cacherouter/epoch"
	"cacherouter/hotkey"
	"cacherouter/latency"
	"cacherouter/memproto"
	"cacherouter/reactor"
)

// worker is a router's share of one loop: its clients, its views of the servers, and
// the scratch space of the request at hand. Everything runs on the loop's goroutine.
type worker struct {
	r          *Router
	loop       *reactor.Loop
	table      *Table
	version    uint64       // of the table
	nodes      []*node      // as in table
	plain      bool         // placement alone says where keys go, but for those that spill
	reach      int          // candidates to look at
	epochs     *epoch.Table // the router's
	sessions   map[*session]struct{}
	parser     memproto.Parser
	req        memproto.Request       // the one being dispatched
	frame      memproto.BinaryRequest // the same of a client of the binary protocol
	told       memproto.BinaryCall    // what it is answered by the router itself
	head       []byte                 // the answer at hand in binary
	picks      []int                  // of the key at hand
	one        []int                  // its home in another placement
	many       []int                  // all that may hold copies of it
	ranks      []int                  // of those that may be read
	copies     []int                  // those themselves
	balancer   *balance.Balancer      // nil unless there are copies to choose among
	counter    *hotkey.Counter        // nil if keys are not counted
	heat       *hotkey.Heat           // as of the last turn
	movedTimes uint                   // values that came or went
	keyBuf     [memproto.MaxKey + 8]byte
	scratch    []byte // the request at hand in the form a server gets
	line       []byte // a line of our own
	asked      []byte // what a flight asks
	formed     []byte // a reply made of another
	said       []byte // what the router says for a server
	expired    []*request
	expirer    reactor.Timer
	flights    *coalesce.Table[*request] // nil if every get goes by itself
	near       *hotkey.Near              // nil if there is none
	leaser     reactor.Timer
	capped     []byte // a request whose life was bounded
	requests   stock[request]
	detours    stock[detour]
	straight   detour // of requests that have none
	gathers    stock[gather]
	parts      stock[part]
	refills    stock[refill]
	cleanings  stock[cleaning]
	holds      holds
	routes     []*part // a multiget's parts, by server and lane
	drained    func()  // set when draining
	sweeper    reactor.Timer
	laggard    reactor.Timer
	waiting    int // requests of all clients that are not answered yet
	stats      Stats
	latency    latency.Histogram // of requests
}

func newWorker(r *Router, l *reactor.Loop) (*worker, error) {
	w := &worker{
		r:        r,
		loop:     l,
		epochs:   r.epochs,
		sessions: make(map[*session]struct{}),
		parser:   memproto.Parser{MaxValue: r.cfg.MaxValue, MaxLine: r.cfg.MaxLine},
		picks:    make([]int, 0, 8),
		stats:    Stats{Requests: make([]uint64, memproto.NumVerbs)},
	}
	w.expirer.Func = w.expire
	if c := r.cfg.Coalesce; c != nil {
		var err error
		if w.flights, err = coalesce.New[*request](*c); err != nil {
			return nil, err
		}
	}
	if m := r.cfg.Membership; m != nil {
		w.laggard.Func = w.tellLag
		l.Post(w.tellLag)
	}
	l.OnTurn(w.turned)
	return w, nil
}

// turned is called at the end of each turn of the loop, before anything leaves.
func (w *worker) turned() {
	w.loop.Expect(w.waiting)
	if w.flights != nil {
		w.flights.Sent()
	}
	if w.r.heat != nil {
		w.heat = w.r.heat.collector.Heat()
	}
}

// stock keeps values of one type for reuse on a loop.
type stock[T any] struct{ free []*T }

func (s *stock[T]) take() *T {
	if n := len(s.free); n > 0 {
		v := s.free[n-1]
		s.free = s.free[:n-1]
		return v
	}
	return new(T)
}

// top returns what take will return, nil if that is not yet known.
func (s *stock[T]) top() *T {
	if n := len(s.free); n > 0 {
		return s.free[n-1]
	}
	return nil
}

const stockMax = 4096

func (s *stock[T]) give(v *T) {
	if len(s.free) < stockMax {
		s.free = append(s.free, v)
	}
}

// adopt takes over a new table. Views of servers that stay are kept.
func (w *worker) adopt(t *Table, version uint64, standings map[identity]*standing) {
	old := make(map[identity]*node)
	for _, n := range w.nodes {
		old[n.use.identity()] = n
	}
	before := w.table
	w.table, w.version = t, version
	w.rebalance(before)
	w.nodes = make([]*node, len(t.Servers))
	for i, s := range t.Servers {
		id := s.identity()
		n := old[id]
		if n == nil {
			n = &node{standing: standings[id]}
			n.Server = backend.New(w.loop, w.backendConfig(s, &n.standing.health))
		}
		recovers := n.use.Writes != WriteHere && s.Writes == WriteHere || n.use.Reads == ReadNext && s.Reads != ReadNext
		n.use, n.index = s, i
		if recovers {
			n.Reconnect()
		}
		w.nodes[i] = n
		delete(old, id)
	}
	for _, n := range old {
		n.Retire()
	}
	w.simplify()
	w.routes = make([]*part, len(t.Servers)*int(backend.NumLanes))
}

func (w *worker) backendConfig(s Server, h *backend.Health) backend.Config {
	c := &w.r.cfg
	var observe func(backend.Observation)
	if m := c.Membership; m != nil {
		observe = func(o backend.Observation) { m.Observe(s.Name, o) }
	}
	return backend.Config{
		Observe:        observe,
		Name:           s.Name,
		Address:        s.Address,
		Timeout:        c.Timeout,
		ConnectTimeout: min(c.ConnectTimeout, c.Timeout),
		MaxQueue:       maxQueue,
		BulkSize:       c.BulkSize,
		Dial:           c.Dial,
		User:           c.User,
		Password:       c.Password,
		Log:            c.Log,
		Health:         h,
	}
}

// simplify finds out whether the placement alone says where keys go.
func (w *worker) simplify() {
	t := w.table
	w.reach = t.reachOf()
	lingering := slices.ContainsFunc(w.nodes, w.lingers)
	if lingering {
		w.reach = min(max(w.reach, 3), len(t.Servers))
	}
	w.plain = t.ill() == 0 && !lingering && t.After == nil && !w.handsOver() && t.Copies < 2 && t.Spill != SpillAny
}

// tellLag tells how busy the loop is, now and then.
func (w *worker) tellLag() {
	if w.table != nil && !w.plain { // the first one comes when the loop already turns
		w.simplify()
	}
	w.r.cfg.Membership.Lag(w.loop.Longest())
	w.loop.Set(&w.laggard, w.loop.Now().Add(lagEvery))
}

const lagEvery = 250 * time.Millisecond

// drain closes every client as soon as it is owed nothing, and calls done after the
// last one.
func (w *worker) drain(done func()) {
	w.drained = done
	for s := range w.sessions {
		s.settle()
	}
	w.gone(nil)
}

// gone forgets a client.
func (w *worker) gone(s *session) {
	delete(w.sessions, s)
	if w.drained != nil && len(w.sessions) == 0 {
		w.drained()
		w.drained = nil
	}
}
