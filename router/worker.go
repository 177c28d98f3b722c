package router

import (
	"time"

	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/reactor"
)

// worker is a router's share of one loop: its clients, its views of the servers, and
// the scratch space of the request at hand. Everything runs on the loop's goroutine.
type worker struct {
	r        *Router
	loop     *reactor.Loop
	table    *Table
	servers  []*backend.Server // as in table
	sessions map[*session]struct{}
	parser   memproto.Parser
	req      memproto.Request       // the one being dispatched
	frame    memproto.BinaryRequest // the same of a client of the binary protocol
	told     memproto.BinaryCall    // what it is answered by the router itself
	head     []byte                 // the answer at hand in binary
	picks    []int
	keyBuf   [memproto.MaxKey + 8]byte
	scratch  []byte // the request at hand in the form a server gets
	requests stock[request]
	gathers  stock[gather]
	parts    stock[part]
	routes   []*part // a multiget's parts, by server and lane
	drained  func()  // set when draining
	sweeper  reactor.Timer
	waiting  int // requests of all clients that are not answered yet
	stats    Stats
}

func newWorker(r *Router, l *reactor.Loop) *worker {
	w := &worker{
		r:        r,
		loop:     l,
		sessions: make(map[*session]struct{}),
		parser:   memproto.Parser{MaxValue: r.cfg.MaxValue, MaxLine: r.cfg.MaxLine},
		picks:    make([]int, 0, 8),
		stats:    Stats{Requests: make([]uint64, memproto.NumVerbs)},
	}
	l.OnTurn(func() { l.Expect(w.waiting) })
	return w
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

const stockMax = 4096

func (s *stock[T]) give(v *T) {
	if len(s.free) < stockMax {
		s.free = append(s.free, v)
	}
}

// identity is what makes a server another one.
type identity struct{ name, address string }

func (s *Server) identity() identity { return identity{s.Name, s.Address} }

// adopt takes over a new table. Views of servers that stay are kept.
func (w *worker) adopt(t *Table, health map[string]*backend.Health) {
	old := make(map[identity]*backend.Server)
	for i, s := range w.servers {
		old[w.table.Servers[i].identity()] = s
	}
	w.table = t
	w.servers = make([]*backend.Server, len(t.Servers))
	for i, s := range t.Servers {
		if w.servers[i] = old[s.identity()]; w.servers[i] == nil {
			w.servers[i] = backend.New(w.loop, w.backendConfig(s, health[s.Address]))
		}
		delete(old, s.identity())
	}
	for _, s := range old {
		s.Retire()
	}
	w.routes = make([]*part, len(t.Servers)*int(backend.NumLanes))
}

func (w *worker) backendConfig(s Server, h *backend.Health) backend.Config {
	c := &w.r.cfg
	return backend.Config{
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

// home returns the server where a key lives.
func (w *worker) home(hash uint64) *backend.Server {
	w.picks = w.table.Picker.Pick(w.picks[:0], hash, 1)
	return w.servers[w.picks[0]]
}

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

func (w *worker) uptime() time.Duration { return w.loop.Now().Sub(w.r.started) }
