package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"cacherouter/admin"
	"cacherouter/hotkey"
	"cacherouter/membership"
	"cacherouter/meter"
	"cacherouter/quota"
	"cacherouter/router"

	"golang.org/x/sync/errgroup"
)

// served is a pool that is served.
type served struct {
	cfg *poolConfig
	up  upstream
	log *slog.Logger // for changes of state; says which pool it is about, if there are several
	// members is nil where membership is off: then keys stay where the configuration
	// places them.
	members *members
	first   *table                // to begin with
	fixed   atomic.Pointer[table] // the table in force where membership is off
	pool    *router.Pool
	meter   *meter.Meter
	hints   hints
}

// startPools looks for the servers of all pools, which may take until a first one is found
// of each.
func (s *server) startPools(ctx context.Context) error {
	all := s.cfg.served()
	mesh, err := s.cfg.mesh(s.log)
	if err != nil {
		return err
	}
	for _, cfg := range all {
		p := &served{cfg: cfg, log: s.log}
		if len(all) > 1 {
			p.log = s.log.With("pool", cfg.name)
		}
		p.hints.name, p.hints.started = s.cfg.routerName(), time.Now()
		if p.up, err = cfg.upstream(s.quiet); err != nil {
			return s.cfg.within(cfg, err)
		}
		s.pools = append(s.pools, p)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range s.pools { // at once, as they wait for each other
		g.Go(func() error { return p.start(ctx, &s.cfg, mesh, i == 0) })
	}
	return g.Wait()
}

// start finds the pool's first table. The keys of the gossip are the first pool's matter.
func (p *served) start(ctx context.Context, c *config, mesh *membership.Mesh, first bool) (err error) {
	if !c.Membership.Enabled {
		if p.first, err = p.cfg.fixedTable(nil); err != nil {
			return c.within(p.cfg, err)
		}
		p.fixed.Store(p.first)
		return nil
	}
	if p.members, err = startMembers(ctx, c, p, mesh); err != nil {
		return fmt.Errorf("pool %s: %w", p.cfg.name, err)
	}
	if first {
		if err = p.members.useKeyring(c); err != nil {
			return err
		}
	}
	p.first, err = p.members.first()
	return err
}

// mesh returns the gossip that all pools share, nil if this router is alone.
func (c *config) mesh(log *slog.Logger) (*membership.Mesh, error) {
	if c.Gossip.Bind == "" {
		return nil, nil
	}
	gc, err := c.Gossip.config()
	if err != nil {
		return nil, err
	}
	if len(gc.Keys) == 0 && !admin.Loopback(c.Gossip.Bind) {
		log.Warn("gossip is not encrypted: whoever reaches its port can decide for this router", "bind", c.Gossip.Bind)
	}
	gc.Name, gc.Log, gc.Note = c.routerName(), log, c.AdvertiseSelf
	var names []string
	for _, p := range c.served() {
		names = append(names, p.name)
	}
	return membership.NewMesh(gc, names...), nil
}

// config returns the pool as the router wants it.
func (p *served) config(failoverTTL time.Duration) router.PoolConfig {
	c := p.cfg
	var watching router.Membership
	if p.members != nil {
		watching = observer{p.members.cluster}
	}
	var hot *hotkey.Config
	if c.Hot.Enabled {
		h := c.Hot.config()
		hot = &h
	}
	return router.PoolConfig{
		Name:           c.name,
		Table:          &p.first.Table,
		Membership:     watching,
		Shed:           c.Shed.asRouted(),
		Retries:        &quota.Retries{Share: c.Retries.Budget, Floor: c.Retries.Floor},
		FailoverTTL:    failoverTTL,
		AnswerEarly:    c.Copies.Answer == "home",
		Coalesce:       modes[c.Coalesce],
		HotKeys:        hot,
		Near:           c.Near.config(),
		Limit:          c.Limit.config(),
		Lease:          c.Lease.config(),
		LeasePatience:  time.Duration(c.Lease.Patience),
		Refresh:        c.Refresh.config(),
		OnWritten:      p.onWritten(),
		FlushAll:       c.FlushAll,
		MissOnFailure:  c.OnFailure == "miss",
		Timeout:        time.Duration(c.Timeout),
		ConnectTimeout: time.Duration(c.ConnectTimeout),
		MaxValue:       c.MaxValue,
		BulkSize:       c.BulkSize,
		Dial:           p.up.dial,
		User:           p.up.user,
		Password:       p.up.password,
	}
}

// onWritten returns what tells other routers of hot keys that were written, nil if nobody
// keeps any.
func (p *served) onWritten() func([]uint64) {
	if p.members == nil || p.cfg.Near.Bytes == 0 {
		return nil
	}
	return func(hashes []uint64) { p.members.cluster.SendHint(written(hashes)) }
}

// serve makes the router's pool this one.
func (p *served) serve(pool *router.Pool, loops int, quiet *slog.Logger) {
	p.pool = pool
	p.hints.pool.Store(pool)
	p.meter = meterFor(pool, p.up, quiet)
	p.log.Info("routing", "servers", len(p.first.Servers), "distribution", p.cfg.Distribution, "digest", p.first.digest(), "loops", loops)
}

// run runs in g what the pool needs on the side.
func (p *served) run(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { p.meter.Run(ctx); return nil })
	if p.members != nil {
		g.Go(func() error { p.members.follow(ctx, p.pool); return nil })
		g.Go(func() error { p.hints.tell(ctx, p.members.cluster); return nil })
	}
}

// inForce returns the table in force, as it was made.
func (p *served) inForce() *table {
	if p.members != nil {
		return p.members.shown.Load()
	}
	return p.fixed.Load()
}

// reload takes over the servers and the distribution of a configuration.
func (p *served) reload(ctx context.Context, c *poolConfig) error {
	if p.members != nil {
		p.members.reload(ctx, c, p.pool)
	} else {
		t, err := c.fixedTable(p.pool.Table())
		if err != nil {
			return err
		}
		p.pool.SetTable(&t.Table)
		p.fixed.Store(t)
	}
	p.log.Info("reloaded", "servers", len(p.pool.Table().Servers), "distribution", c.Distribution)
	return nil
}
