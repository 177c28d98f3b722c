package membership

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Cluster keeps track of servers and other routers. Any goroutine may use it.
type Cluster struct {
	cfg     Config
	log     *slog.Logger
	link    link // nil when there are no other routers
	state   atomic.Pointer[State]
	changed chan struct{}
	ctx     context.Context // ends with the cluster
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	reports  *reports
	journals sync.Map // of *watched by server, for those who must not wait for mu

	mu       sync.Mutex
	pool     *health.Pool         // guarded by mu, as is all below
	node     *view.Node           // nil until there is a list
	watched  map[string]*watched  // by server
	gone     map[string]time.Time // servers that left the list, and when
	early    []view.Message       // that came before there was a node
	said     said                 // what was last logged
	handover handover
	bad      uint64 // messages that made no sense
}

const (
	// tick is how often time is let pass.
	tick = 100 * time.Millisecond
	// refreshEvery is how many ticks pass between two looks at the sources' lists, and
	// announceEvery between two announcements.
	refreshEvery, announceEvery = 5, 50
)

// Start looks for the servers and begins to watch them. It fails when no source names any.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cannot start membership: %w", err)
	}
	c := &Cluster{
		cfg: cfg, log: cfg.Log, changed: make(chan struct{}, 1), reports: newReports(),
		watched: map[string]*watched{}, gone: map[string]time.Time{},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.connect(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("cannot start membership: %w", err)
	}
	list, err := c.firstList(ctx)
	if err != nil {
		c.Close(ctx)
		return nil, fmt.Errorf("cannot start membership: %w", err)
	}
	c.waitJoined(ctx)
	c.begin(list, time.Now())
	for _, w := range cfg.Sources {
		c.running.Go(func() { w.Run(c.ctx) })
	}
	c.running.Go(c.run)
	return c, nil
}

// begin puts the first list in force: its servers are taken to be up until they show
// otherwise, as they most probably are.
func (c *Cluster) begin(list []view.Server, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = health.NewPool(c.cfg.Health, now)
	c.cfg.View.Boot = uint64(now.UnixMilli())
	for _, s := range list {
		c.pool.Add(s.Name, true, now)
		c.watchLocked(s)
	}
	c.node = view.New(c.cfg.View, c.pool, list, now)
	for _, m := range c.early {
		c.node.Step(m, now)
	}
	c.early = nil
	c.node.Tick(now)
	c.state.Store(c.stateLocked(now))
}

// joinTimeout bounds how long a start waits for other routers to answer.
const joinTimeout = 3 * time.Second

// waitJoined lets the first state be the one that the others have agreed on, if there are
// others: a server that is away may hold old values.
func (c *Cluster) waitJoined(ctx context.Context) {
	if c.link == nil {
		return
	}
	select {
	case <-c.link.Joined():
	case <-ctx.Done():
	case <-time.After(joinTimeout):
	}
}

// connect begins to gossip.
func (c *Cluster) connect(ctx context.Context) (err error) {
	if c.cfg.link != nil {
		c.link = c.cfg.link(handler{c})
		return nil
	}
	mesh, pool := c.cfg.Mesh, c.cfg.Pool
	if c.cfg.Gossip != nil {
		gc := *c.cfg.Gossip
		gc.Name, gc.Log = c.cfg.Router, c.log
		mesh, pool = NewMesh(gc, DefaultPool), DefaultPool
	}
	if mesh != nil {
		c.link, err = mesh.join(ctx, pool, handler{c})
	}
	return err
}

// View returns the present state.
func (c *Cluster) View() *State { return c.state.Load() }

// Changed has a token in it when the state may be another than at the last time one was
// taken. It is for one reader.
func (c *Cluster) Changed() <-chan struct{} { return c.changed }

// run lets time pass: regularly, when a loop has reported a failure, and at the moment at
// which a decision takes effect.
func (c *Cluster) run() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for turn := 0; ; {
		select {
		case <-c.ctx.Done():
			return
		case <-c.reports.wake:
			c.takeReports(time.Now())
		case <-c.due():
			c.step(time.Now())
		case <-t.C: // not its time: that was when it fired, and others came since
			c.turn(turn, time.Now())
			turn++
		}
	}
}

// turn is what is done regularly.
func (c *Cluster) turn(n int, now time.Time) {
	c.takeReports(now)
	if n%refreshEvery == 0 {
		c.refreshList(now)
	}
	if n%announceEvery == 0 {
		c.announce()
	}
	c.step(now)
}

// due fires when the next decision takes effect, if that is before the next tick.
func (c *Cluster) due() <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.node.Due(time.Now()); ok && d < tick {
		return time.After(d)
	}
	return nil
}

// step lets time pass once: a turn of the state machines, what follows from it, and what
// is to be said.
func (c *Cluster) step(now time.Time) {
	c.mu.Lock()
	if c.link != nil && c.link.Stats().Health >= unhealthy {
		c.pool.Lag(time.Minute, now)
	}
	c.forgetCrashedLocked()
	c.pool.Tick(now)
	c.advanceLocked(now)
	m, due := c.node.Beat(now)
	c.mu.Unlock()
	if due && c.link != nil {
		c.link.Send(view.Encode(m))
	}
}

// forgetCrashedLocked stops waiting for routers that have certainly crashed, as their
// machines say that nothing listens where they did.
func (c *Cluster) forgetCrashedLocked() {
	if c.link == nil {
		return
	}
	for _, router := range c.link.Refusing() {
		if c.node.Forget(router) {
			c.log.Warn("router has crashed, it is not waited for", "router", router)
		}
	}
}

// unhealthy is the score of the failure detector between routers from which this one is
// too slow itself to judge anybody.
const unhealthy = 4

// advanceLocked takes decisions and publishes what came of them.
func (c *Cluster) advanceLocked(now time.Time) {
	c.node.Tick(now)
	for _, r := range c.node.Returning(now) {
		c.returnLocked(r)
	}
	c.recoverLocked(now)
	c.publishLocked(now)
}

func (c *Cluster) publishLocked(now time.Time) {
	old, next := c.state.Load(), c.stateLocked(now)
	c.sayLocked(old, next)
	if old.Version == next.Version && old.Digest == next.Digest && slices.Equal(old.Servers, next.Servers) &&
		slices.Equal(old.Before, next.Before) && slices.Equal(old.After, next.After) {
		return
	}
	c.state.Store(next)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Close says good-bye to the other routers, stops everything and returns when it has, or
// with the context's error when that ends before. Closing twice is harmless.
func (c *Cluster) Close(ctx context.Context) error {
	var err error
	c.closing.Do(func() {
		c.leave()
		if c.link != nil {
			err = c.link.Close(ctx)
		}
		c.stop()
	})
	return err
}

// leave tells the others that this router goes, so that they do not wait for it.
func (c *Cluster) leave() {
	c.mu.Lock()
	if c.node == nil || c.link == nil {
		c.mu.Unlock()
		return
	}
	c.node.Leave()
	m, _ := c.node.Beat(time.Now())
	c.mu.Unlock()
	c.link.Send(view.Encode(m))
}

func (c *Cluster) stop() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.running.Wait()
}

// goLocked starts a goroutine, unless the cluster has been closed. That is decided under
// the lock, so that none can be started while stop already waits.
func (c *Cluster) goLocked(f func()) {
	if c.ctx.Err() == nil {
		c.running.Go(f)
	}
}
