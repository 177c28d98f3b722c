package router

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/quota"
	"cacherouter/reactor"

	"golang.org/x/sync/errgroup"
)

// Config says how a router works. Zero values stand for the defaults.
type Config struct {
	// Loops is the number of event loops; 0 means 1.
	Loops int
	// Engine is the way to serve sockets; the zero value stands for reactor.Auto.
	Engine reactor.Engine
	// Spare says that runtime.GOMAXPROCS is over Loops, so that loops may sleep in the
	// cheapest way; see reactor.Config.
	Spare bool
	// Pools are those that keys may go to; at least one. Their names differ.
	Pools []PoolConfig
	// Routes say which pool a key goes to; none means that all go to the first one.
	Routes []Route
	// Clients bound what clients may ask, by the networks that they come from. The longest
	// prefix that an address is in decides; clients of unix sockets are in none.
	Clients []ClientQuota
	// Version is what the version command says, n.n.n; empty means DefaultVersion.
	Version string
	// MaxLine is the longest line of a get, in bytes; 0 means DefaultMaxLine. Any other
	// line ends within 2 KiB, as with memcached.
	MaxLine int
	// MaxClients bounds the clients of all listeners; 0 means no bound.
	MaxClients int
	// TellFull tells a client beyond MaxClients so, as memcached does. Some clients take
	// the line for the answer to their first request.
	TellFull bool
	// MaxOutstanding bounds the requests that a client may have outstanding before it is
	// no longer read; 0 means DefaultMaxOutstanding.
	MaxOutstanding int
	// IdleTimeout closes clients that ask nothing for so long; 0 means never.
	IdleTimeout time.Duration
	// SlowTimeout closes clients that take none of their replies for so long; 0 means
	// never.
	SlowTimeout time.Duration
	// Nodes returns the addresses, host:port, that a client is told when it asks which
	// nodes the cluster has, and their version, which grows with each change. It is called
	// on all loops with the client's address and must not wait; nil means that the question
	// is not understood.
	Nodes func(client string) (version int64, nodes []string)
	// Reached is called on goroutines of loops when one cannot reach a server, or all can
	// again. It must not wait; nil means that nobody wants to know.
	Reached func()
	// Record says which requests are recorded one by one.
	Record Recording
	// Log gets changes of state; nil means slog.Default.
	Log *slog.Logger
}

// Listen says who may come in by a listener. The zero value lets everybody in.
type Listen struct {
	// Name tells the listeners apart for clients that move here from another process; see
	// [Router.Adopt].
	Name string
	// Passwords, if not nil, must approve of a client before it is served.
	Passwords Passwords
	// TLS makes clients speak TLS; nil means that they speak plain.
	TLS *tls.Config
	// Routes are those of the listener's clients; none means the router's.
	Routes []Route
	// Allow decides whether a client's address may connect; nil allows all. It must be
	// safe for concurrent use.
	Allow func(netip.Addr) bool
}

// Passwords checks users. It must be safe for concurrent use and must not take long.
type Passwords interface {
	Check(user, password []byte) bool
}

// Defaults and limits.
const (
	DefaultVersion = "1.6.18"

	// DefaultMaxOutstanding is how many requests a client may have outstanding.
	DefaultMaxOutstanding = 1024

	// DefaultMaxLine is the longest line of a get, in bytes.
	DefaultMaxLine = 8 << 20
)

func (c Config) withDefaults() Config {
	c.Loops = max(c.Loops, 1)
	if c.Version == "" {
		c.Version = DefaultVersion
	}
	if c.MaxLine == 0 {
		c.MaxLine = DefaultMaxLine
	}
	if c.MaxOutstanding == 0 {
		c.MaxOutstanding = DefaultMaxOutstanding
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Router routes requests of memcached clients to servers.
type Router struct {
	cfg      Config
	started  time.Time
	fronts   []*front
	loops    []*reactor.Loop
	networks []*network    // the longest prefix first
	sessions atomic.Uint64 // so far
	local    *entrance     // of clients in this process
	unequal  *quota.Quota  // lines about shadows that differ

	changing sync.Mutex    // held by a change of pools and routes
	ended    chan struct{} // closed when the loops have

	mu        sync.Mutex
	ctx       context.Context // guarded by mu: of Run; nil before that
	pools     []*Pool         // guarded by mu; replaced, not changed
	routes    *routes         // guarded by mu
	stops     []func()        // guarded by mu: one per listener
	entrances []*entrance     // guarded by mu: of all listeners there have been
}

// New returns a router that [Router.Run] sets going.
func New(c Config) (*Router, error) {
	c = c.withDefaults()
	r := &Router{cfg: c, started: time.Now(), ended: make(chan struct{})}
	for _, pc := range c.Pools {
		p, err := newPool(r, pc)
		if err != nil {
			return nil, err
		}
		r.pools = append(r.pools, p)
	}
	err := checkPools(r.pools)
	if err != nil {
		return nil, err
	}
	if r.routes, err = newRoutes(c.Routes, r.pools); err != nil {
		return nil, err
	}
	if r.networks, err = newNetworks(c.Clients); err != nil {
		return nil, err
	}
	if r.unequal, err = quota.New(quota.Config{Rate: 1, Burst: 1}); err != nil {
		return nil, err
	}
	if r.loops, err = reactor.NewLoops(c.Loops, reactor.Config{Engine: c.Engine, Spare: c.Spare}); err != nil {
		return nil, fmt.Errorf("cannot make event loops: %w", err)
	}
	for _, l := range r.loops {
		if err := r.equip(l); err != nil {
			return nil, err
		}
	}
	for _, p := range r.pools {
		if err := p.addRemedies(); err != nil {
			return nil, err
		}
		p.SetTable(p.cfg.Table)
	}
	r.local = r.newEntrance("local", "local", r.routes)
	r.local.local = true
	return r, r.record()
}

// equip gives a loop a front, with a worker of each pool.
func (r *Router) equip(l *reactor.Loop) error {
	f := newFront(r, l)
	for _, p := range r.pools {
		w, err := newWorker(f, p)
		if err != nil {
			return err
		}
		f.workers = append(f.workers, w)
		p.workers = append(p.workers, w)
	}
	r.fronts = append(r.fronts, f)
	f.begin()
	return nil
}

// Engine returns how sockets are served, and why not by what reactor.Auto would have taken rather;
// nil if there is no such reason. Any goroutine may call it.
func (r *Router) Engine() (e reactor.Engine, refused error) { return r.loops[0].Engine() }

// named returns the pool of a name, nil if there is none.
func named(pools []*Pool, name string) *Pool {
	if i := slices.IndexFunc(pools, func(p *Pool) bool { return p.cfg.Name == name }); i >= 0 {
		return pools[i]
	}
	return nil
}

// Pools returns the pools, in the order of the configuration. Any goroutine may call it.
func (r *Router) Pools() []*Pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pools
}

// Run turns the loops until ctx ends; then every connection is closed.
func (r *Router) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	r.mu.Lock()
	r.ctx = ctx
	for _, p := range r.pools {
		p.begin(ctx)
	}
	r.mu.Unlock()
	for _, l := range r.loops {
		g.Go(func() error { return l.Run(ctx) })
	}
	err := g.Wait()
	close(r.ended)
	r.changing.Lock()
	defer r.changing.Unlock()
	for _, p := range r.Pools() {
		p.finish()
	}
	return err
}

// entrance is how clients come in by one listener.
type entrance struct {
	name      string
	addr      string    // of the listener; empty if there is none
	routes    []*routes // as each loop has them
	latest    *routes   // guarded by the router's mu: as all of them will
	passwords Passwords
	local     bool // from within the process: not limited, as it belongs to who runs the router
}

// newEntrance returns an entrance with some routes.
func (r *Router) newEntrance(name, addr string, routes *routes) *entrance {
	e := &entrance{name: name, addr: addr, latest: routes}
	for range r.fronts {
		e.routes = append(e.routes, routes)
	}
	r.entrances = append(r.entrances, e)
	return e
}

// enter makes the entrance of a listener.
func (r *Router) enter(ln net.Listener, l *Listen) (*entrance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	routes := r.routes
	if len(l.Routes) > 0 {
		var err error
		if routes, err = newRoutes(l.Routes, r.pools); err != nil {
			return nil, err
		}
	}
	by := r.newEntrance(l.Name, ln.Addr().String(), routes)
	by.passwords = l.Passwords
	return by, nil
}

// Serve accepts clients from ln until the router drains or ends.
func (r *Router) Serve(ln net.Listener, l Listen) error {
	by, err := r.enter(ln, &l)
	if err != nil {
		return err
	}
	stop, err := reactor.Serve(reactor.Listener{
		Net:     ln,
		TLS:     l.TLS,
		Allow:   l.Allow,
		Handler: func(c *reactor.Conn) reactor.Handler { return r.frontOf(c).newSession(c, by) },
	}, r.loops)
	if err != nil {
		return fmt.Errorf("cannot accept on %s: %w", ln.Addr(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, stop)
	return nil
}

// frontOf returns the front of a connection's loop.
func (r *Router) frontOf(c *reactor.Conn) *front {
	for _, f := range r.fronts {
		if f.loop == c.Loop() {
			return f
		}
	}
	panic("bug: connection of a loop that is not ours")
}

// clients returns the number of clients of all loops.
func (r *Router) clients() (n int64) {
	for _, l := range r.loops {
		n += l.Load()
	}
	return n
}

// StopListening closes the listeners; clients that are connected stay.
func (r *Router) StopListening() {
	r.mu.Lock()
	stops := r.stops
	r.stops = nil
	r.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}
