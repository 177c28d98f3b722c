package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cacherouter/reload"
	"cacherouter/router"

	"golang.org/x/sync/errgroup"
)

// reload takes over the configuration as it is now, and opens the log of requests anew. One that
// has a fault, or moves more keys than it may, changes nothing.
func (s *server) reload(ctx context.Context, o reload.Options) *reload.Report {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.over {
		return new(reload.Report).Fails(reload.Failed, errors.New("this process is about to end"))
	}
	began := time.Now()
	if !o.DryRun {
		s.records.reopen(s.log)
	}
	r := s.takeOver(ctx, o)
	switch {
	case o.DryRun:
		return r
	case r.OK():
		s.log.Info("reloaded", "changes", len(r.Changes), "took", time.Since(began).Round(time.Millisecond))
	default:
		s.log.Error("reload refused", "err", r.Error)
	}
	s.reloads.Note(r, time.Now())
	return r
}

// watchFile reloads when the configuration file has changed, if it says so.
func (s *server) watchFile(ctx context.Context) {
	on := func() bool { return s.inForce.Load().Reload.Watch }
	s.watch.Run(ctx, on, func() { s.reload(ctx, reload.Options{}) })
}

// settle returns when no reload is under way, and lets none begin any more.
func (s *server) settle() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.over = true
}

// takeOver is reload without what is said and counted of it.
func (s *server) takeOver(ctx context.Context, o reload.Options) *reload.Report {
	r := &reload.Report{DryRun: o.DryRun, Changes: []reload.Change{}, Upgrade: []string{}}
	file, err := s.load()
	if err != nil {
		return r.Fails(reload.Invalid, err)
	}
	r.MaxMoved = file.Reload.MaxMoved
	before := s.inForce.Load()
	next, pending, err := before.amended(&file)
	if r.Upgrade = pending; err != nil {
		return r.Fails(reload.Refused, err)
	}
	if r.Changes, err = before.changes(next, s.tableInForce); err != nil {
		return r.Fails(reload.Invalid, err)
	}
	if err := s.mayTakeOver(r, before, next, o); err != nil {
		return r.Fails(reload.Refused, err)
	}
	if r.Outcome = reload.Applied; len(r.Changes) == 0 {
		r.Outcome = reload.Unchanged
	}
	if o.DryRun {
		return r
	}
	s.sayChanges(r)
	if err := s.apply(ctx, before, next); err != nil {
		return r.Fails(reload.Failed, err)
	}
	return r
}

// tableInForce returns the table of a pool that is served, nil if it is not.
func (s *server) tableInForce(pool string) *table {
	if p := s.served(pool); p != nil {
		return p.inForce()
	}
	return nil
}

// served returns a pool by name, nil if it is not served.
func (s *server) served(name string) *served {
	if i := slices.IndexFunc(s.pools(), func(p *served) bool { return p.name == name }); i >= 0 {
		return s.pools()[i]
	}
	return nil
}

// mayTakeOver says why a sound configuration is not taken over, and completes the report.
func (s *server) mayTakeOver(r *reload.Report, before, next *config, o reload.Options) error {
	for _, p := range next.served() {
		if was := s.served(p.name); was != nil {
			if err := was.cfg.takesUpgrade(p); err != nil {
				return next.within(p, err)
			}
		}
	}
	if len(r.Changes) == 0 {
		return nil
	}
	most := slices.MaxFunc(r.Changes, func(a, b reload.Change) int { return cmp.Compare(a.Moved, b.Moved) })
	r.Moved = most.Moved
	if r.Moved > r.MaxMoved && !o.Force {
		return fmt.Errorf("%v, more than reload.max_moved (%g) allows: see it with cacherouter reload --dry-run, and force it with --force", most, r.MaxMoved)
	}
	return nil
}

// maxSaid bounds how many changes are logged.
const maxSaid = 50

// sayChanges logs what is about to change.
func (s *server) sayChanges(r *reload.Report) {
	for _, c := range r.Changes[:min(maxSaid, len(r.Changes))] {
		s.log.Info("configuration changes", "subject", c.Subject, "change", c.Change, "moved", c.Moved)
	}
	if n := len(r.Changes) - maxSaid; n > 0 {
		s.log.Info("configuration changes in more ways", "changes", n)
	}
	if len(r.Upgrade) > 0 {
		s.log.Warn("settings have changed that take an upgrade, by SIGUSR2", "settings", strings.Join(r.Upgrade, ", "))
	}
}

// apply puts a configuration in force: it starts the pools that are new, gives those that stay
// their servers, changes the routes of all clients, and ends the pools that are no more. What can
// fail comes first.
func (s *server) apply(ctx context.Context, before, next *config) error {
	begun, err := s.beginPools(ctx, next)
	if err != nil {
		return err
	}
	if err := s.reloadServers(ctx, before, next); err != nil {
		return errors.Join(err, s.endPools(begun))
	}
	if before.reroutes(next) {
		if err := s.reroute(ctx, next, begun); err != nil {
			return errors.Join(err, s.endPools(begun))
		}
	}
	for _, p := range next.served() {
		s.served(p.name).cfg = p
	}
	s.inForce.Store(next)
	for _, doubt := range next.doubts() {
		if !slices.Contains(before.doubts(), doubt) {
			s.log.Warn(doubt)
		}
	}
	return nil
}

// beginPools starts the pools of a configuration that are not served yet.
func (s *server) beginPools(ctx context.Context, next *config) (begun []*served, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, cfg := range next.served() {
		if s.served(cfg.name) != nil {
			continue
		}
		p, err := s.newServed(next, cfg)
		if err == nil {
			if s.meeting.mesh != nil {
				s.meeting.mesh.Add(cfg.name)
			}
			err = p.start(ctx, next, &s.meeting)
		}
		if err != nil {
			return nil, errors.Join(err, s.endPools(begun))
		}
		begun = append(begun, p)
	}
	return begun, nil
}

// endPools ends pools.
func (s *server) endPools(pools []*served) error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	var all []error
	for _, p := range pools {
		p.end()
		all = append(all, p.leave(ctx))
	}
	return errors.Join(all...)
}

// reloadServers gives the pools that stay, and are otherwise, their servers. Each may have to wait
// for other routers.
func (s *server) reloadServers(ctx context.Context, before, next *config) error {
	var g errgroup.Group
	for _, cfg := range next.served() {
		p, was := s.served(cfg.name), before.find(cfg.name)
		if p != nil && was != nil && was.differs(cfg) {
			g.Go(func() error { return p.reload(ctx, cfg) })
		}
	}
	return g.Wait()
}

// reroutes reports whether another configuration takes more of the router than other tables for
// its pools.
func (c *config) reroutes(next *config) bool {
	names := func(c *config) (all []string) {
		for _, p := range c.served() {
			all = append(all, p.name)
		}
		return all
	}
	if !slices.Equal(names(c), names(next)) {
		return true
	}
	for _, p := range next.served() {
		if c.find(p.name).beginsAnew(p) {
			return true
		}
	}
	return len(compared(&c.Routes, &next.Routes))+len(compared(&c.Listen, &next.Listen)) > 0
}

// leavePatience is how long clients may hold up a change of pools and routes by not taking their
// replies.
const leavePatience = 30 * time.Second

// reroute gives the router its pools and routes anew, and ends the pools that are no more.
func (s *server) reroute(ctx context.Context, next *config, begun []*served) error {
	change := router.Change{Routes: next.routes(next.Routes), Listeners: make(map[string][]router.Route)}
	for _, l := range next.Listen {
		change.Listeners[l.Address] = next.routes(l.Routes)
	}
	var pools []*served
	for _, cfg := range next.served() {
		p := s.served(cfg.name)
		if p == nil {
			p = begun[slices.IndexFunc(begun, func(p *served) bool { return p.name == cfg.name })]
		}
		pool, err := s.routed(p, cfg)
		if err != nil {
			return err
		}
		pools, change.Pools = append(pools, p), append(change.Pools, pool)
	}
	for _, p := range begun {
		p.begin(ctx)
	}
	leave, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	if err := s.router.Change(leave, change); err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(s.pools()), func(p *served) bool { return slices.Contains(pools, p) })
	s.serving.Store(&pools)
	if s.admin != nil && len(gone)+len(begun) > 0 {
		s.admin.Show(s.shown())
	}
	if err := s.endPools(gone); err != nil {
		s.log.Warn("good-bye to the other routers not finished", "err", err)
	}
	return nil
}

// routed returns the router's pool for one that is served: a new one, if it is new or a
// configuration has something otherwise that a pool takes over only when it begins.
func (s *server) routed(p *served, cfg *poolConfig) (*router.Pool, error) {
	now := p.pool.Load()
	c := p.config(cfg, time.Duration(s.cfg.Membership.FailoverTTL))
	switch {
	case now == nil:
		pool, err := s.router.NewPool(c, nil)
		if err == nil {
			p.serve(pool, s.loops)
		}
		return pool, err
	case p.cfg.beginsAnew(cfg):
		return p.replace(s.router, c)
	}
	return now, nil
}

// differs reports whether a pool, or a part of it, is otherwise than before.
func (p *poolConfig) differs(next *poolConfig) bool {
	for _, pair := range [][2]*poolConfig{{p, next}, {p.parts.failover, next.parts.failover}, {p.parts.warmUp, next.parts.warmUp}} {
		was, is := pair[0], pair[1]
		if (was == nil) != (is == nil) || was != nil && len(compared(was, is)) > 0 {
			return true
		}
	}
	return false
}
