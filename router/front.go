package router

import (
	"time"

	"cacherouter/memproto"
	"cacherouter/reactor"
)

// front is a router's share of one loop: its clients, a worker of each pool, and the scratch
// space of the request at hand. Everything runs on the loop's goroutine.
type front struct {
	r         *Router
	n         int // of the loop
	loop      *reactor.Loop
	ahead     time.Duration // of the loop's clock, the router's is
	workers   []*worker     // of the pools that there are, in order; replaced, not changed
	leavers   []leaver      // of those that are no more
	astray    int           // sessions whose routes are not yet those in force
	past      past          // of pools that are no more
	sessions  map[*session]struct{}
	parser    memproto.Parser
	req       memproto.Request       // the one being dispatched
	frame     memproto.BinaryRequest // the same of a client of the binary protocol
	told      memproto.BinaryCall    // what it is answered by the router itself
	head      []byte                 // the answer at hand in binary
	keyBuf    [memproto.MaxKey + 8]byte
	scratch   []byte           // the request at hand in the form a server gets
	line      []byte           // a line of our own
	asked     []byte           // what a flight asks
	formed    []byte           // a reply made of another
	said      []byte           // what the router says for a server
	capped    []byte           // a request whose life was bounded
	key       []byte           // of a request that was renamed
	words     []byte           // that request
	other     memproto.Request // the same, parsed
	renamed   []byte           // a reply that was
	shortened []byte           // a request whose life its route bounds
	asks      []byte           // a get that asks for flags, too
	hides     []byte           // a reply that does not tell them
	joins     joins
	requests  stock[request]
	detours   stock[detour]
	straight  detour // of requests that have none
	gathers   stock[gather]
	parts     stock[part]
	refills   stock[refill]
	compares  stock[comparison]
	cleanings stock[cleaning]
	drained   func()       // set when draining
	take      func(Client) // set when clients move elsewhere
	sweeper   reactor.Timer
	laggard   reactor.Timer
	waiting   int // requests of all clients that are not answered yet
	stats     Stats
	recorder  *recorder // nil if there are no records
}

func newFront(r *Router, l *reactor.Loop) *front {
	f := &front{
		r:        r,
		n:        len(r.fronts),
		loop:     l,
		ahead:    l.Now().Sub(r.started) - l.Elapsed(),
		sessions: make(map[*session]struct{}),
		parser:   memproto.Parser{MaxLine: r.cfg.MaxLine},
		stats:    Stats{Requests: make([]uint64, memproto.NumVerbs)},
		joins:    joins{most: maxJoining},
	}
	for _, p := range r.pools {
		f.parser.MaxValue = max(f.parser.MaxValue, p.cfg.MaxValue)
	}
	return f
}

// begin lets the loop call the front, when it has all its workers.
func (f *front) begin() {
	for _, w := range f.workers {
		if w.p.cfg.Membership != nil {
			f.laggard.Func = f.tellLag
			f.loop.Post(f.tellLag)
			break
		}
	}
	f.loop.OnTurn(f.turned)
}

// turned is called at the end of each turn of the loop, before anything leaves.
func (f *front) turned() {
	f.loop.Expect(f.waiting)
	for _, w := range f.workers {
		w.turned()
	}
	for _, l := range f.leavers {
		l.w.turned()
	}
}

// workerOf returns the loop's worker of a pool.
func (f *front) workerOf(p *Pool) *worker { return p.workers[f.n] }

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

// tellLag tells how busy the loop is, now and then.
func (f *front) tellLag() {
	longest := f.loop.Longest()
	for _, w := range f.workers {
		w.tellLag(longest)
	}
	f.loop.Set(&f.laggard, f.loop.Now().Add(lagEvery))
}

const lagEvery = 250 * time.Millisecond

// gone forgets a client.
func (f *front) gone(s *session) {
	delete(f.sessions, s)
	if s != nil {
		s.guest.leave()
	}
	if s != nil && s.astray {
		s.astray = false
		f.astray--
	}
	if f.drained != nil && len(f.sessions) == 0 {
		f.drained()
		f.drained = nil
	}
}
