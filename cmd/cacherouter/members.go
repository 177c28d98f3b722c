package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/backend"
	"cacherouter/membership"
	"cacherouter/membership/health"
	"cacherouter/membership/probe"
	"cacherouter/router"
)

// members keeps a router's table as membership wants it.
type members struct {
	cluster *membership.Cluster
	sources *sources
	placer  *placer
	keys    *keyring              // nil if there is none
	shown   atomic.Pointer[table] // the table in force
	log     *slog.Logger

	mu       sync.Mutex
	digest   string // guarded by mu: of the placement last logged
	unplaced string // guarded by mu: the error last logged
	lacks    int    // guarded by mu: the copies that could not be made, as last logged
}

// startMembers looks for the servers of a pool and begins to watch them. It takes as long as
// it takes to find the first one, or until the context ends.
func startMembers(ctx context.Context, c *config, p *served, g *meeting) (*members, error) {
	prober := probe.TCP{Dial: p.up.dial, User: p.up.user, Password: p.up.password}
	m := &members{sources: newSources(p.cfg, &c.Membership.Lists, prober, p.log), placer: new(placer), keys: g.keys, log: p.log}
	m.placer.use(p.cfg)
	mc := membership.Config{
		Router:         c.routerName(),
		Sources:        m.sources.watchers,
		Prober:         prober,
		ProbeTimeout:   time.Duration(c.Membership.ProbeTimeout),
		Parameters:     p.cfg.parameters(),
		Mesh:           g.mesh,
		Pool:           p.cfg.name,
		Announce:       found(append(c.Announce, p.cfg.Announce...)), // one of which is empty
		Announced:      m.sources.announced,
		FailoverAtOnce: c.Membership.FailoverWrites == "at_once",
		Handover:       time.Duration(c.Membership.Handover),
		OnHint:         p.hints.heard,
		Log:            p.log,
	}
	mc.Health, mc.View, mc.Journal, mc.Readmit = c.Membership.constants()
	mc.View.Expected = c.Gossip.Expected
	var err error
	m.cluster, err = membership.Start(ctx, mc)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// keyringEvery is the time between two looks at the keyring.
const keyringEvery = 2 * time.Second

// follow gives the router's pool a new table at each change, until the context ends.
func (m *members) follow(ctx context.Context, p *served) {
	look := time.NewTicker(keyringEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.cluster.Changed():
			m.update(p)
		case <-look.C:
			m.keys.rotate(m.cluster.SetGossipKeys)
			if m.shown.Load().fades(time.Now()) {
				m.update(p)
			}
		}
	}
}

// first returns the table to begin with.
func (m *members) first() (*table, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.placer.table(m.cluster.View())
	if err == nil {
		m.digest = t.digest()
		m.sayLacks(t)
		m.shown.Store(t)
	}
	return t, err
}

// update gives the router a table for the present state. A placement that cannot be made
// leaves the last one in force.
func (m *members) update(p *served) {
	m.mu.Lock() // so that nobody puts an older state in the place of a newer one
	defer m.mu.Unlock()
	s := m.cluster.View()
	t, err := m.placer.table(s)
	if err != nil {
		m.sayUnplaced(err)
		return
	}
	m.unplaced = ""
	m.sayLacks(t)
	p.pool.Load().SetTable(&t.Table)
	m.shown.Store(t)
	if d := t.digest(); d != m.digest {
		m.log.Info("placement changed", "servers", len(s.Placed()), "digest", d, "view", s.Version)
		m.digest = d
	}
}

// sayUnplaced logs an error once.
func (m *members) sayUnplaced(err error) {
	if err.Error() != m.unplaced {
		m.log.Error("servers cannot be placed, the last placement stays in force", "err", err)
		m.unplaced = err.Error()
	}
}

// sayLacks logs once that there are too few servers for the copies of each item.
func (m *members) sayLacks(t *table) {
	switch {
	case t.lacks == m.lacks:
	case t.lacks > 0:
		m.log.Warn("too few servers for the copies of each item", "copies", t.Copies, "wanted", t.Copies+t.lacks)
	default:
		m.log.Info("enough servers for the copies of each item", "copies", t.Copies)
	}
	m.lacks = t.lacks
}

// replace gives the members another pool of the router in place of the one that they have tables
// for.
func (m *members) replace(p *served, made func(before *router.Pool) (*router.Pool, error)) (*router.Pool, error) {
	m.mu.Lock() // no table may come in between
	defer m.mu.Unlock()
	next, err := made(p.pool.Load())
	if err == nil {
		p.use(next)
	}
	return next, err
}

// patience is how long a reload waits for its list to be in force: for new servers to
// answer, and for the other routers.
const patience = 10 * time.Second

// reload takes over the list of servers, and how keys are placed, of a configuration, and
// returns when they are in force, or says what is missing.
func (m *members) reload(ctx context.Context, p *served, c *poolConfig) {
	m.placer.use(c)
	m.cluster.SetParameters(c.parameters())
	m.keys.rotate(m.cluster.SetGossipKeys)
	if m.sources.static != nil {
		m.sources.static.set(c.all())
		m.await(ctx, c.all())
	}
	m.update(p)
}

// await waits until a list is in force.
func (m *members) await(ctx context.Context, servers []serverConfig) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		missing := m.differ(servers)
		if len(missing) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			m.log.Warn("the new list is not in force yet: these servers are to come or to go", "servers", strings.Join(missing, " "))
			return
		case <-look.C:
		}
	}
}

// differ returns the names of the servers that the configuration lists otherwise than it
// is in force.
func (m *members) differ(servers []serverConfig) []string {
	wanted := found(servers)
	for _, w := range m.sources.watchers {
		if w != m.sources.static.watcher {
			wanted = append(wanted, w.List()...)
		}
	}
	var names []string
	s := m.cluster.View()
	listed := make(map[string]bool)
	for _, want := range wanted {
		got, ok := s.Find(want.Name)
		if !listed[want.Name] && (!ok || got.Address != want.Address || got.Weight != want.Weight) {
			names = append(names, want.Name)
		}
		listed[want.Name] = true
	}
	for _, got := range s.Servers {
		if !listed[got.Name] {
			names = append(names, got.Name)
		}
	}
	return names
}

// observer tells membership what the loops see. It implements router.Membership.
type observer struct{ *membership.Cluster }

// Observe passes on what happened to a loop's calls to a server.
func (o observer) Observe(server string, seen backend.Observation) {
	o.Cluster.Observe(server, healthOf(seen))
}

// healthOf takes from an observation what says something about a server's health: that
// too much waits for it, or that it does not take our password, is no sign that it is gone.
func healthOf(seen backend.Observation) health.Observation {
	h := health.Observation{
		OK: seen.OK, Latency: seen.Latency,
		Refused:  seen.Failures[backend.Refused],
		Lost:     seen.Failures[backend.Lost],
		TimedOut: seen.Failures[backend.TimedOut],
		BadReply: seen.Failures[backend.BadReply],
	}
	h.Streak = min(seen.Streak, h.Errors())
	return h
}

var _ router.Membership = observer{}
