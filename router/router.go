package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/coalesce"
	"cacherouter/epoch"
	"cacherouter/hotkey"
	"cacherouter/reactor"
	"cacherouter/refresh"

	"golang.org/x/sync/errgroup"
)

// Config says how a router works. Zero values stand for the defaults.
type Config struct {
	// Loops is the number of event loops; 0 means 1.
	Loops int
	// Portable serves sockets by goroutines even where loops can poll them.
	Portable bool
	// Spare says that runtime.GOMAXPROCS is over Loops, so that loops may sleep in the
	// cheapest way; see reactor.Config.
	Spare bool
	// Table is the first table.
	Table *Table
	// Membership hears of the servers; nil means that nobody wants to.
	Membership Membership
	// Coalesce lets gets of one key share a request; nil means that each goes by itself.
	Coalesce *coalesce.Config
	// HotKeys counts keys and finds those that are hot; nil means that nobody does.
	HotKeys *hotkey.Config
	// Near is the near cache of each loop, for hot keys; nil means none. Its Epochs are
	// filled in. It needs Coalesce and HotKeys, as do Lease and Refresh the former.
	Near *hotkey.NearConfig
	// Limit bounds the rate of each hot key; nil means no bound.
	Limit *hotkey.LimitConfig
	// Lease lets one client at a time fill a missing key, while the others wait for up to
	// LeasePatience; nil means that everybody is shown the miss.
	Lease *coalesce.LeaseConfig
	// LeasePatience is how long a client may have gets parked; 0 means DefaultPatience.
	LeasePatience time.Duration
	// Refresh lets one client renew an item that nears its end. The zero value does not.
	Refresh refresh.Config
	// OnWritten is told the hashes of hot keys that were written, so that other routers can
	// forget them; see [Router.Forget]. It is called on a goroutine of its own. Nil means
	// that nobody wants to know.
	OnWritten func(hashes []uint64)
	// FailoverTTL bounds the time to live of what is written in place of a server that is
	// away; 0 means DefaultFailoverTTL.
	FailoverTTL time.Duration
	// AnswerEarly answers a write to a pool with copies when the home has done it, and not
	// when all copies are the same. Reads go to the home until they are.
	AnswerEarly bool
	// Version is what the version command says, n.n.n; empty means DefaultVersion.
	Version string
	// FlushAll lets clients flush all servers.
	FlushAll bool
	// MissOnFailure answers a get whose server fails with a miss, not an error.
	MissOnFailure bool
	// Timeout is how long a server may take to answer; 0 means DefaultTimeout.
	Timeout time.Duration
	// ConnectTimeout is how long connecting to a server may take; 0 means DefaultTimeout.
	ConnectTimeout time.Duration
	// MaxValue is the longest value taken from a client, in bytes; 0 means
	// DefaultMaxValue.
	MaxValue int
	// MaxLine is the longest line of a get, in bytes; 0 means DefaultMaxLine. Any other
	// line ends within 2 KiB, as with memcached.
	MaxLine int
	// BulkSize is the size in bytes from which a request or value travels on a server's
	// second connection; 0 means DefaultBulkSize.
	BulkSize int
	// Dial opens connections to servers; nil means plain ones.
	Dial reactor.Dialer
	// User and Password are said first to each server, if User is not empty.
	User, Password string
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
	// Log gets changes of state; nil means slog.Default.
	Log *slog.Logger
}

// Listen says who may come in by a listener. The zero value lets everybody in.
type Listen struct {
	// Passwords, if not nil, must approve of a client before it is served.
	Passwords Passwords
	// TLS makes clients speak TLS; nil means that they speak plain.
	TLS *tls.Config
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
	DefaultVersion  = "1.6.18"
	DefaultTimeout  = time.Second
	DefaultMaxValue = 128 << 20
	DefaultBulkSize = 32 << 10
	// DefaultPatience is how long a client may have gets parked.
	DefaultPatience = time.Second
	// DefaultFailoverTTL is how long what is written elsewhere lives at most.
	DefaultFailoverTTL = time.Minute

	// DefaultMaxOutstanding is how many requests a client may have outstanding.
	DefaultMaxOutstanding = 1024

	// DefaultMaxLine is the longest line of a get, in bytes.
	DefaultMaxLine = 8 << 20
	// maxQueue bounds what may wait to be sent to a server on one connection, in bytes.
	maxQueue = 256 << 20
)

func (c Config) withDefaults() Config {
	c.Loops = max(c.Loops, 1)
	if c.Version == "" {
		c.Version = DefaultVersion
	}
	for _, d := range []*time.Duration{&c.Timeout, &c.ConnectTimeout} {
		if *d == 0 {
			*d = DefaultTimeout
		}
	}
	if c.LeasePatience == 0 {
		c.LeasePatience = DefaultPatience
	}
	if c.FailoverTTL == 0 {
		c.FailoverTTL = DefaultFailoverTTL
	}
	if c.MaxValue == 0 {
		c.MaxValue = DefaultMaxValue
	}
	if c.MaxLine == 0 {
		c.MaxLine = DefaultMaxLine
	}
	if c.BulkSize == 0 {
		c.BulkSize = DefaultBulkSize
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
	cfg     Config
	started time.Time
	workers []*worker
	loops   []*reactor.Loop

	epochs   *epoch.Table
	copies   *copyMarks
	heat     *heat           // nil if keys are not counted
	limiter  *hotkey.Limiter // nil if there is no limit
	leases   *leases         // nil if misses are shown to all
	rumours  rumours
	sessions atomic.Uint64 // so far
	version  atomic.Uint64 // of the table

	mu        sync.Mutex
	table     *Table                 // guarded by mu
	standings map[identity]*standing // guarded by mu
	stops     []func()               // guarded by mu: one per listener
}

// New returns a router that [Router.Run] sets going.
func New(c Config) (*Router, error) {
	c = c.withDefaults()
	if c.Table == nil || len(c.Table.Servers) == 0 {
		return nil, errors.New("cannot route without servers")
	}
	r := &Router{cfg: c, started: time.Now(), epochs: epoch.New(0), copies: newCopyMarks()}
	r.rumours.some = make(chan struct{}, 1)
	for range c.Loops {
		l, err := reactor.NewLoop(reactor.Config{Portable: c.Portable, Spare: c.Spare})
		if err != nil {
			return nil, fmt.Errorf("cannot make event loop: %w", err)
		}
		r.loops = append(r.loops, l)
		w, err := newWorker(r, l)
		if err != nil {
			return nil, err
		}
		r.workers = append(r.workers, w)
	}
	if c.HotKeys != nil {
		var err error
		if r.heat, err = newHeat(*c.HotKeys, r.workers); err != nil {
			return nil, err
		}
	}
	if err := r.addRemedies(); err != nil {
		return nil, err
	}
	r.SetTable(c.Table)
	return r, nil
}

// addRemedies makes what spares servers hot and missing keys.
func (r *Router) addRemedies() (err error) {
	c := &r.cfg
	if c.Limit != nil {
		if r.limiter, err = hotkey.NewLimiter(*c.Limit); err != nil {
			return err
		}
	}
	if c.Coalesce == nil && (c.Lease != nil || c.Near != nil || c.Refresh.Before > 0) || c.HotKeys == nil && (c.Near != nil || c.Limit != nil) {
		return errors.New("cannot keep, lease or renew items of gets that share nothing, nor keep or limit hot ones that nobody counts")
	}
	if c.Refresh.Vivify > 0 && c.Lease == nil {
		return errors.New("cannot hold back misses through all routers without leases")
	}
	if c.Lease != nil {
		l, err := coalesce.NewLeases[*request](*c.Lease)
		if err != nil {
			return err
		}
		r.leases = &leases{l, c.LeasePatience}
		r.workers[0].leaser.Func = r.workers[0].expireLeases
		r.loops[0].Post(r.workers[0].expireLeases)
	}
	if err = c.Refresh.Validate(); err != nil {
		return err
	}
	if c.Near == nil {
		return nil
	}
	near := *c.Near
	near.Epochs = r.epochs
	for _, w := range r.workers {
		if w.near, err = hotkey.NewNear(near); err != nil {
			return err
		}
	}
	return nil
}

// Run turns the loops until ctx ends; then every connection is closed.
func (r *Router) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range r.loops {
		g.Go(func() error { return l.Run(ctx) })
	}
	if r.heat != nil {
		g.Go(func() error { return r.watchHeat(ctx) })
	}
	if r.cfg.OnWritten != nil {
		g.Go(func() error { return r.spreadRumours(ctx) })
	}
	return g.Wait()
}

// Serve accepts clients from ln until the router drains or ends.
func (r *Router) Serve(ln net.Listener, l Listen) error {
	stop, err := reactor.Serve(reactor.Listener{
		Net:     ln,
		TLS:     l.TLS,
		Allow:   l.Allow,
		Handler: func(c *reactor.Conn) reactor.Handler { return r.accept(c, l.Passwords) },
	}, r.loops)
	if err != nil {
		return fmt.Errorf("cannot accept on %s: %w", ln.Addr(), err)
	}
	r.mu.Lock()
	r.stops = append(r.stops, stop)
	r.mu.Unlock()
	return nil
}

// accept makes the session of a new client, on the goroutine of its loop.
func (r *Router) accept(c *reactor.Conn, p Passwords) reactor.Handler {
	for _, w := range r.workers {
		if w.loop == c.Loop() {
			return w.newSession(c, p)
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

// SetTable replaces the table. Servers that stay keep their connections; one that is
// gone first answers what it was asked. Requests that come later are placed by t.
func (r *Router) SetTable(t *Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table = t
	if r.heat != nil {
		r.heat.collector.SetServers(len(t.Servers))
	}
	standings := make(map[identity]*standing)
	for i := range t.Servers {
		id := t.Servers[i].identity()
		standings[id] = r.standings[id]
		if standings[id] == nil {
			standings[id] = new(standing)
		}
	}
	r.standings = standings
	// First the number and then the table: a write that ends in between looks once too
	// often whether it went where it should.
	version := r.version.Add(1)
	for _, w := range r.workers {
		w.loop.Post(func() { w.adopt(t, version, standings) })
	}
}

// copyMargin is how much longer than its time to live a copy may be there: it may have
// been stored as late as a call may end, and memcached counts in seconds.
func (r *Router) copyMargin() time.Duration { return 2*r.cfg.Timeout + 2*time.Second }

// copyLife is how long after it was made a copy may be there at most.
func (r *Router) copyLife() time.Duration { return copyTTL*time.Second + r.copyMargin() }

// Table returns the table in force.
func (r *Router) Table() *Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table
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

// Drain stops listening and closes each client when it has been answered. It returns
// when all are gone, or with an error when ctx ends before.
func (r *Router) Drain(ctx context.Context) error {
	r.StopListening()
	var left sync.WaitGroup
	for _, w := range r.workers {
		left.Add(1)
		if !w.loop.Post(func() { w.drain(left.Done) }) {
			left.Done()
		}
	}
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot drain in time: %w", ctx.Err())
	}
}
