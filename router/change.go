package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cacherouter/backend"
	"cacherouter/reactor"
)

// Change says which pools and routes a router has from now on.
type Change struct {
	// Pools are all of them, in order, at least one: those of [Router.Pools] that stay, and those
	// that [Router.NewPool] has made.
	Pools []*Pool
	// Routes are the router's, as in Config.
	Routes []Route
	// Listeners are the routes of listeners that have their own, by the listener's name.
	Listeners map[string][]Route
}

// NewPool makes a pool that is in use when [Router.Change] has it. If before is not nil the pool is
// to take its place: then it has the table of that one, and what loops share so that one router
// keeps its order: the two are to each other what two loops of one pool are. Any goroutine may
// call it while the router runs.
func (r *Router) NewPool(c PoolConfig, before *Pool) (*Pool, error) {
	if before != nil {
		c.Table = before.Table()
	}
	p, err := newPool(r, c)
	if err != nil {
		return nil, err
	}
	p.born = time.Since(r.started)
	if before != nil {
		p.follow(before)
	}
	for _, f := range r.fronts {
		w, err := newWorker(f, p)
		if err != nil {
			return nil, err
		}
		p.workers = append(p.workers, w)
	}
	if err := p.addRemedies(); err != nil {
		return nil, err
	}
	p.SetTable(c.Table)
	return p, nil
}

// Change gives the router other pools and routes. Each loop takes them over between two of its
// turns, and each client between two of its requests, when none of them is outstanding: so what it
// has asked keeps its order. Pools that are no more go when nobody waits for them; if that takes
// longer than ctx lasts, clients that do not take their replies are closed. Change returns when
// they are gone. An error means that nothing has changed.
func (r *Router) Change(ctx context.Context, c Change) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	gone, tables, err := r.rearrange(&c)
	if err != nil {
		return err
	}
	for _, f := range r.fronts {
		var workers []*worker
		for _, p := range c.Pools {
			workers = append(workers, p.workers[f.n])
		}
		f.loop.Post(func() { f.rearrange(workers, tables, gone) })
	}
	r.dismiss(ctx, c.Pools, gone)
	return nil
}

// rearrange takes over a change where loops do not look, and returns the pools that are no more,
// and each entrance's routes.
func (r *Router) rearrange(c *Change) (gone []*Pool, tables map[*entrance]*routes, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return nil, nil, errors.New("cannot change the pools of a router that does not run")
	}
	if err := checkPools(c.Pools); err != nil {
		return nil, nil, err
	}
	common, err := newRoutes(c.Routes, c.Pools)
	if err != nil {
		return nil, nil, err
	}
	common.keepQuotas(r.routes)
	if tables, err = r.tables(c, common); err != nil {
		return nil, nil, err
	}
	for e, t := range tables {
		e.latest = t
	}
	for _, p := range r.pools {
		if !slices.Contains(c.Pools, p) {
			gone = append(gone, p)
		}
	}
	for _, p := range c.Pools {
		if !slices.Contains(r.pools, p) {
			p.begin(r.ctx)
		}
	}
	r.pools, r.routes = c.Pools, common
	return gone, tables, nil
}

// tables returns each entrance's routes after a change: those of its own, or the common ones.
func (r *Router) tables(c *Change, common *routes) (tables map[*entrance]*routes, err error) {
	tables = make(map[*entrance]*routes)
	for _, e := range r.entrances {
		tables[e] = common
		own := c.Listeners[e.name]
		if len(own) == 0 {
			continue
		}
		if tables[e], err = newRoutes(own, c.Pools); err != nil {
			return nil, err
		}
		tables[e].keepQuotas(e.latest)
	}
	return tables, nil
}

// checkPools checks the pools of a router.
func checkPools(pools []*Pool) error {
	if len(pools) == 0 {
		return errors.New("cannot route without pools")
	}
	for i, p := range pools {
		if named(pools[:i], p.cfg.Name) != nil {
			return fmt.Errorf("two pools are named %q", p.cfg.Name)
		}
	}
	return nil
}

// dismiss returns when pools that are no more are gone, of which some have others in their place.
func (r *Router) dismiss(ctx context.Context, pools, gone []*Pool) {
	if !r.eachFront(ctx, (*front).vacated) {
		r.cfg.Log.Warn("clients that do not take their replies are closed, as their pool goes")
		for _, f := range r.fronts {
			f.loop.Post(f.closeAstray)
		}
		r.eachFront(context.Background(), (*front).vacated)
	}
	for _, p := range pools {
		p.unfollow()
	}
	r.eachFront(context.Background(), func(f *front) bool { f.dismiss(); return true })
	for _, p := range gone {
		p.finish()
	}
}

// eachFront returns true when something has been so on each loop, or the loops have ended, and
// false when the context ends before. It is looked at now and then.
func (r *Router) eachFront(ctx context.Context, is func(*front) bool) bool {
	so := make(chan struct{}, len(r.fronts))
	for _, f := range r.fronts {
		var look func()
		var again reactor.Timer
		look = func() {
			if is(f) {
				so <- struct{}{}
			} else if ctx.Err() == nil {
				f.loop.Set(&again, f.loop.Now().Add(vacateEvery))
			}
		}
		again.Func = look
		f.loop.Post(look)
	}
	for range r.fronts {
		select {
		case <-so:
		case <-r.ended:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// vacateEvery is how often it is looked whether anybody waits for a pool that goes. Mostly nobody
// does after a round trip.
const vacateEvery = 2 * time.Millisecond

// leaver is a worker of a pool that is no more, and the one that has its place; nil if none has.
type leaver struct{ w, heir *worker }

// rearrange takes over other pools and routes.
func (f *front) rearrange(workers []*worker, tables map[*entrance]*routes, gone []*Pool) {
	f.workers = workers
	f.parser.MaxValue = 0
	for _, w := range workers {
		f.parser.MaxValue = max(f.parser.MaxValue, w.p.cfg.MaxValue)
	}
	for _, p := range gone {
		l := leaver{w: f.workerOf(p)}
		for _, w := range workers {
			if w.p.predecessor() == p {
				l.heir = w
			}
		}
		f.leavers = append(f.leavers, l)
	}
	for e, t := range tables {
		e.routes[f.n] = t
	}
	for s := range f.sessions {
		if !s.astray {
			s.astray = true
			f.astray++
		}
		if s.n == 0 {
			s.reroute()
		}
	}
}

// reroute takes over the routes that are in force.
func (s *session) reroute() {
	if s.astray {
		s.astray = false
		s.front.astray--
	}
	s.routes, s.only = s.by.routes[s.front.n], nil
	if p := s.routes.only; p != nil && s.quota == nil {
		s.only = s.front.workerOf(p)
	}
}

// closeAstray closes the clients that still wait for what they asked before a change.
func (f *front) closeAstray() {
	for s := range f.sessions {
		if s.astray {
			f.stats.ClosedSlow++
			s.conn.Close()
		}
	}
}

// vacated reports whether nobody waits any more for pools that are no more.
func (f *front) vacated() bool {
	return f.astray == 0 && !slices.ContainsFunc(f.leavers, func(l leaver) bool { return l.w.busy() })
}

// busy reports whether something is still to come of the worker's servers, be it that no client
// waits for it.
func (w *worker) busy() bool {
	asked := func(n *node) bool { return n.InFlight() > 0 }
	return w.shadows > 0 || len(w.holds.waiting) > 0 || slices.ContainsFunc(w.nodes, asked)
}

// dismiss closes the connections of pools that are no more. What they have counted is kept: in
// their place's pool, or in the sum of all.
func (f *front) dismiss() {
	for _, l := range f.leavers {
		w := l.w
		w.loop.Stop(&w.leaser)
		for _, n := range w.nodes {
			n.Close() // nothing is outstanding, and what a client that has gone left behind fails
		}
		w.settle()
		past := &f.past
		if l.heir != nil {
			past = &l.heir.past
		}
		past.keep(w.bygone())
	}
	f.leavers = nil
}

// past is what was counted by workers that are gone.
type past struct{ *PoolSnapshot }

// keep adds what one has counted.
func (p *past) keep(o PoolSnapshot) {
	if p.PoolSnapshot == nil {
		p.PoolSnapshot = &PoolSnapshot{Servers: make(map[string]backend.Stats)} // pools count no requests by verb
	}
	p.add(&o)
}

// addTo adds all of it to a snapshot.
func (p *past) addTo(s *PoolSnapshot) {
	if p.PoolSnapshot != nil {
		s.add(p.PoolSnapshot)
	}
}

// bygone is what a worker that leaves has counted, without what is so only now.
func (w *worker) bygone() PoolSnapshot {
	snap := w.snapshot()
	for addr, st := range snap.Servers {
		st.Up, st.InFlight = 0, 0
		snap.Servers[addr] = st
	}
	snap.Leases.Waiting = 0
	return snap
}
