package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/admin"
	"cacherouter/balance"
	"cacherouter/hotkey"
	"cacherouter/membership"
	"cacherouter/meter"
	"cacherouter/quota"
	"cacherouter/router"

	"golang.org/x/sync/errgroup"
)

// served is a pool that is served.
type served struct {
	name string
	cfg  *poolConfig // as in force; a reload replaces it
	up   upstream
	log  *slog.Logger // for changes of state; says which pool it is about, if there are several
	// members is nil where membership is off: then keys stay where the configuration
	// places them.
	members *members
	first   *table                      // to begin with
	fixed   atomic.Pointer[table]       // the table in force where membership is off
	pool    atomic.Pointer[router.Pool] // a reload replaces it
	meter   *meter.Meter
	hints   hints

	stop    context.CancelFunc // of what runs beside; nil before that does
	running sync.WaitGroup
}

// meeting is how all pools meet other routers.
type meeting struct {
	mesh *membership.Mesh // nil if this router is alone
	keys *keyring         // nil if there is none
}

// meet returns how pools meet other routers. Those of the configuration begin together.
func (c *config) meet(log *slog.Logger) (g meeting, err error) {
	if g.mesh, err = c.mesh(log); err != nil {
		return g, err
	}
	g.keys, err = c.keyring(log)
	return g, err
}

// pools returns the pools that are served, in the order of the configuration, as the router has
// them. The slice is never changed.
func (s *server) pools() []*served {
	if all := s.serving.Load(); all != nil {
		return *all
	}
	return nil
}

// startPools looks for the servers of all pools, which may take until a first one is found
// of each.
func (s *server) startPools(ctx context.Context) error {
	var err error
	if s.meeting, err = s.cfg.meet(s.log); err != nil {
		return err
	}
	var all []*served
	for _, cfg := range s.cfg.served() {
		p, err := s.newServed(&s.cfg, cfg)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	s.serving.Store(&all)
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range all { // at once, as they wait for each other
		g.Go(func() error { return p.start(ctx, &s.cfg, &s.meeting) })
	}
	return g.Wait()
}

// newServed returns a pool of a configuration that is still to be started.
func (s *server) newServed(c *config, cfg *poolConfig) (*served, error) {
	p := &served{name: cfg.name, cfg: cfg, log: s.log}
	if len(c.served()) > 1 {
		p.log = s.log.With("pool", cfg.name)
	}
	p.hints.name, p.hints.started = s.cfg.routerName(), time.Now()
	var err error
	if p.up, err = cfg.upstream(s.quiet); err != nil {
		return nil, c.within(cfg, err)
	}
	p.meter = meterFor(p, s.quiet)
	return p, nil
}

// start finds the pool's first table.
func (p *served) start(ctx context.Context, c *config, g *meeting) (err error) {
	if !c.Membership.Enabled {
		if p.first, err = p.cfg.fixedTable(nil); err != nil {
			return c.within(p.cfg, err)
		}
		p.fixed.Store(p.first)
		return nil
	}
	if p.members, err = startMembers(ctx, c, p, g); err != nil {
		return fmt.Errorf("pool %s: %w", p.name, err)
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

// config returns the pool as the router wants it, as a configuration says.
func (p *served) config(c *poolConfig, failoverTTL time.Duration) router.PoolConfig {
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
		OnWritten:      p.onWritten(c),
		FlushAll:       c.FlushAll,
		MissOnFailure:  c.OnFailure == "miss",
		Timeout:        time.Duration(c.Timeout),
		ConnectTimeout: time.Duration(c.ConnectTimeout),
		MaxValue:       c.MaxValue,
		SplitOver:      c.Large.SplitOver,
		BulkSize:       c.BulkSize,
		JoinGets:       c.JoinGets,
		Dial:           p.up.dial,
		User:           p.up.user,
		Password:       p.up.password,
	}
}

// onWritten returns what tells other routers of hot keys that were written, nil if nobody
// keeps any.
func (p *served) onWritten(c *poolConfig) func([]uint64) {
	if p.members == nil || c.Near.Bytes == 0 {
		return nil
	}
	return func(hashes []uint64) { p.members.cluster.SendHint(written(hashes)) }
}

// serve makes the router's pool this one.
func (p *served) serve(pool *router.Pool, loops int) {
	p.use(pool)
	p.log.Info("routing", "servers", len(p.first.Servers), "distribution", p.cfg.Distribution, "digest", p.first.digest(), "loops", loops)
}

// use makes a pool of the router the one that is meant.
func (p *served) use(pool *router.Pool) {
	p.pool.Store(pool)
	p.hints.pool.Store(pool)
}

// begin runs what the pool needs on the side, until end or until the context ends.
func (p *served) begin(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	p.running.Go(func() { p.meter.Run(ctx) })
	if p.members != nil {
		p.running.Go(func() { p.members.follow(ctx, p) })
		p.running.Go(func() { p.hints.tell(ctx, p.members.cluster) })
	}
}

// end ends that.
func (p *served) end() {
	if p.stop != nil {
		p.stop()
	}
	p.running.Wait()
}

// leave ends the pool's membership, with a good-bye to the other routers.
func (p *served) leave(ctx context.Context) error {
	if p.members == nil {
		return nil
	}
	return p.members.cluster.Close(ctx)
}

// inForce returns the table in force, as it was made.
func (p *served) inForce() *table {
	if p.members != nil {
		return p.members.shown.Load()
	}
	return p.fixed.Load()
}

// reload takes over the servers of a configuration, and how keys are placed on them.
func (p *served) reload(ctx context.Context, c *poolConfig) error {
	if p.members != nil {
		p.members.reload(ctx, p, c)
		return nil
	}
	t, err := c.fixedTable(p.pool.Load().Table())
	if err != nil {
		return err
	}
	p.pool.Load().SetTable(&t.Table)
	p.fixed.Store(t)
	return nil
}

// replace makes the router's pool anew, for what a pool takes over only when it begins.
func (p *served) replace(r *router.Router, c router.PoolConfig) (*router.Pool, error) {
	anew := func(before *router.Pool) (*router.Pool, error) { return r.NewPool(c, before) }
	if p.members != nil {
		return p.members.replace(p, anew)
	}
	next, err := anew(p.pool.Load())
	if err == nil {
		p.use(next)
	}
	return next, err
}

// Report passes on what a server says of its load. It implements meter.Sink.
func (p *served) Report(server string, report balance.Report) { p.pool.Load().Report(server, report) }

// ForgetReports passes on that a server is not the process that it was.
func (p *served) ForgetReports(server string) { p.pool.Load().ForgetReports(server) }
