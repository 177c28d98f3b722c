package router

import (
	"slices"
	"time"

	"cacherouter/backend"
	"cacherouter/balance"
	"cacherouter/bounded"
	"cacherouter/coalesce"
	"cacherouter/epoch"
	"cacherouter/hotkey"
	"cacherouter/latency"
	"cacherouter/quota"
	"cacherouter/reactor"
)

// worker is a pool's share of one loop: its views of the servers, and what is known of
// their keys. Everything runs on the loop's goroutine.
type worker struct {
	*front
	p          *Pool
	table      *Table
	version    uint64            // of the table
	nodes      []*node           // as in table
	plain      bool              // placement alone says where keys go, but for those that spill
	reach      int               // candidates to look at
	lingering  bool              // what was written in place of some server may still be there
	epochs     *epoch.Table      // the pool's
	picks      []int             // of the key at hand
	one        []int             // its home in another placement
	many       []int             // all that may hold copies of it
	ranks      []int             // of those that may be read
	copies     []int             // those themselves
	left       time.Duration     // when the turn began whose writes left last, on the loop's clock
	tally      *bounded.Tally    // of what is not told to the table's bound yet; nil if there is none
	balancer   *balance.Balancer // nil unless there are copies to choose among
	counter    *hotkey.Counter   // nil if keys are not counted
	heat       *hotkey.Heat      // as of the last turn
	movedTimes uint              // values that came or went
	expired    []*request
	expirer    reactor.Timer
	flights    *coalesce.Table[*request] // nil if every get goes by itself
	near       *hotkey.Near              // nil if there is none
	leaser     reactor.Timer
	holds      holds
	budget     *quota.Budget     // of retries; nil means no bound
	open       []*part           // a multiget's parts, by server and lane
	large      bool              // values may be in parts
	shadows    int               // requests outstanding that no client waits for
	stats      Stats             // of its keys; what is about clients is the front's
	latency    latency.Histogram // of requests
	past       past              // of the workers before it
}

func newWorker(f *front, p *Pool) (*worker, error) {
	w := &worker{front: f, p: p, epochs: p.epochs, picks: make([]int, 0, 8), large: p.cfg.SplitOver > 0}
	w.expirer.Func = w.expire
	if c := p.cfg.Retries; c != nil {
		w.budget = &quota.Budget{Retries: quota.Retries{Share: c.Share, Floor: c.Floor / float64(f.r.cfg.Loops)}}
	}
	if c := p.cfg.Coalesce; c != nil {
		shared := *c
		shared.Retry = w.retry
		var err error
		if w.flights, err = coalesce.New[*request](shared); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// turned is called at the end of each turn of the loop.
func (w *worker) turned() {
	w.left = w.loop.Elapsed()
	w.settle()
	if w.flights != nil {
		w.flights.Sent()
	}
	if w.budget != nil {
		w.budget.At(w.now())
	}
	if w.p.heat != nil {
		w.heat = w.p.heat.collector.Heat()
	}
}

// adopt takes over a new table. Views of servers that stay are kept.
func (w *worker) adopt(t *Table, version uint64, standings map[identity]*standing) {
	old := make(map[identity]*node)
	for _, n := range w.nodes {
		old[n.use.identity()] = n
	}
	before := w.table
	w.settle()
	w.table, w.version, w.tally = t, version, nil
	if t.Bound != nil {
		w.tally = bounded.NewTally(t.Bound)
	}
	w.rebalance(before)
	w.nodes = make([]*node, len(t.Servers))
	for i, s := range t.Servers {
		id := s.identity()
		n := old[id]
		if n == nil {
			n = &node{standing: standings[id]}
			n.Server = backend.New(w.loop, w.backendConfig(s, &n.standing.health))
		}
		recovers := s.recoversFrom(&n.use)
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
	w.open = make([]*part, len(t.Servers)*int(backend.NumLanes))
}

func (w *worker) backendConfig(s Server, h *backend.Health) backend.Config {
	c := &w.p.cfg
	var observe func(backend.Observation)
	if m := c.Membership; m != nil {
		observe = func(o backend.Observation) { m.Observe(s.Name, o) }
	}
	return backend.Config{
		Observe:        observe,
		Reached:        w.r.cfg.Reached,
		Retry:          w.retry,
		Name:           s.Name,
		Address:        s.Address,
		Timeout:        c.Timeout,
		ConnectTimeout: min(c.ConnectTimeout, c.Timeout),
		MaxQueue:       maxQueue,
		BulkSize:       c.BulkSize,
		Join:           c.JoinGets,
		Dial:           c.Dial,
		User:           c.User,
		Password:       c.Password,
		Log:            w.r.cfg.Log,
		Health:         h,
	}
}

// simplify finds out whether the placement alone says where keys go.
func (w *worker) simplify() {
	t := w.table
	w.reach = t.reachOf()
	w.lingering = slices.ContainsFunc(w.nodes, w.lingers)
	if w.lingering {
		w.reach = min(max(w.reach, 2+max(1, t.Copies)), len(t.Servers))
	}
	w.plain = t.ill() == 0 && !w.lingering && len(t.After) == 0 && !w.handsOver() && t.Copies < 2 && t.Spill != SpillAny
}

// tellLag tells how busy the loop was.
func (w *worker) tellLag(longest time.Duration) {
	m := w.p.cfg.Membership
	if m == nil {
		return
	}
	if w.table != nil && !w.plain { // the first one comes when the loop already turns
		w.simplify()
	}
	m.Lag(longest)
}
