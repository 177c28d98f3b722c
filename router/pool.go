package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/coalesce"
	"cacherouter/epoch"
	"cacherouter/hotkey"
	"cacherouter/quota"
	"cacherouter/reactor"
	"cacherouter/refresh"
)

// PoolConfig is a set of servers, and what is done so that they serve well. Zero values
// stand for the defaults.
type PoolConfig struct {
	// Name tells the pool from others in what is shown of it.
	Name string
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
	// forget them; see [Pool.Forget]. It is called on a goroutine of its own. Nil means
	// that nobody wants to know.
	OnWritten func(hashes []uint64)
	// Shed says how many units in flight, as Table.Bound counts them, each server may have when
	// a request of a priority comes; 0 means any number. Beyond that the request is answered
	// with an error, or as MissOnFailure says. It needs tables with a bound.
	Shed [NumPriorities]int
	// Retries bounds how many reads are asked again because a server failed; nil means no
	// bound. Each loop has its share of Floor.
	Retries *quota.Retries
	// FailoverTTL bounds the time to live of what is written in place of a server that is
	// away; 0 means DefaultFailoverTTL.
	FailoverTTL time.Duration
	// AnswerEarly answers a write to a pool with copies when the home has done it, and not
	// when all copies are the same. Reads go to the home until they are.
	AnswerEarly bool
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
	// SplitOver is the length in bytes of the longest value that is stored as it is: longer
	// ones are split into parts of that length. At least MinSplit; 0 means that none is.
	SplitOver int
	// JoinGets has gets of single keys that go to a server at the same time travel on one
	// line, as memcached answers lines with a write each.
	JoinGets bool
	// BulkSize is the size in bytes from which a request or value travels on a server's
	// second connection; 0 means DefaultBulkSize.
	BulkSize int
	// Dial opens connections to servers; nil means plain ones.
	Dial reactor.Dialer
	// User and Password are said first to each server, if User is not empty.
	User, Password string
}

// Defaults and limits of a pool.
const (
	DefaultTimeout  = time.Second
	DefaultMaxValue = 128 << 20
	DefaultBulkSize = 32 << 10
	// DefaultPatience is how long a client may have gets parked.
	DefaultPatience = time.Second
	// DefaultFailoverTTL is how long what is written elsewhere lives at most.
	DefaultFailoverTTL = time.Minute

	// MinSplit is the least length of parts.
	MinSplit = 512

	// maxQueue bounds what may wait to be sent to a server on one connection, in bytes.
	maxQueue = 256 << 20
)

func (c PoolConfig) withDefaults() PoolConfig {
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
	if c.BulkSize == 0 {
		c.BulkSize = DefaultBulkSize
	}
	return c
}

// Pool is a pool of a router, as all its loops share it. Any goroutine may use it.
type Pool struct {
	r       *Router
	cfg     PoolConfig
	workers []*worker     // one of each loop
	born    time.Duration // on the router's clock
	slowest time.Duration // the longest timeout there was

	epochs  *epoch.Table
	copies  *copyMarks
	heat    *heat           // nil if keys are not counted
	limiter *hotkey.Limiter // nil if there is no limit
	sheds   bool            // Shed bounds anything
	leases  *leases         // nil if misses are shown to all
	rumours rumours
	version atomic.Uint64 // of the table

	stop    context.CancelFunc // of what runs beside the loops; nil before it does
	running sync.WaitGroup

	mu        sync.Mutex
	before    *Pool                  // guarded by mu: whose place this one takes, until it is gone
	table     *Table                 // guarded by mu
	standings map[identity]*standing // guarded by mu
}

// newPool returns a pool without workers.
func newPool(r *Router, c PoolConfig) (*Pool, error) {
	if c.Table == nil || len(c.Table.Servers) == 0 {
		return nil, errors.New("cannot route without servers")
	}
	if c.SplitOver != 0 && c.SplitOver < MinSplit {
		return nil, fmt.Errorf("cannot split values into parts of %d bytes", c.SplitOver)
	}
	p := &Pool{r: r, cfg: c.withDefaults(), epochs: epoch.New(0), copies: newCopyMarks()}
	p.sheds = c.Shed != [NumPriorities]int{}
	p.slowest = p.cfg.Timeout
	p.rumours.some = make(chan struct{}, 1)
	return p, nil
}

// Name returns the pool's name.
func (p *Pool) Name() string { return p.cfg.Name }

// addRemedies makes what spares servers hot and missing keys.
func (p *Pool) addRemedies() (err error) {
	c := &p.cfg
	if c.HotKeys != nil {
		if p.heat, err = newHeat(*c.HotKeys, p.workers); err != nil {
			return err
		}
	}
	if c.Limit != nil {
		if p.limiter, err = hotkey.NewLimiter(*c.Limit); err != nil {
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
		w := p.workers[0]
		w.leaser.Func = w.expireLeases
		lease := *c.Lease
		lease.Began = func() { w.loop.Post(w.expireLeases) }
		l, err := coalesce.NewLeases[*request](lease)
		if err != nil {
			return err
		}
		p.leases = &leases{l, c.LeasePatience}
	}
	if err = c.Refresh.Validate(); err != nil {
		return err
	}
	if c.Near == nil {
		return nil
	}
	near := *c.Near
	near.Epochs = p.epochs
	for _, w := range p.workers {
		if w.near, err = hotkey.NewNear(near); err != nil {
			return err
		}
	}
	return nil
}

// SetTable replaces the table. Servers that stay keep their connections; one that is
// gone first answers what it was asked. Requests that come later are placed by t.
func (p *Pool) SetTable(t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	standings := make(map[identity]*standing)
	for i := range t.Servers {
		id := t.Servers[i].identity()
		standings[id] = p.standings[id]
		if standings[id] == nil {
			standings[id] = new(standing)
		}
	}
	p.setTableLocked(t, standings)
	if p.before != nil { // its writes, too, must learn that they may not have gone where they should
		p.before.mu.Lock()
		defer p.before.mu.Unlock()
		p.before.setTableLocked(t, standings)
	}
}

func (p *Pool) setTableLocked(t *Table, standings map[identity]*standing) {
	p.table = t
	if p.heat != nil {
		p.heat.collector.SetServers(len(t.Servers))
	}
	p.standings = standings
	// First the number and then the table: a write that ends in between looks once too
	// often whether it went where it should.
	version := p.version.Add(1)
	for _, w := range p.workers {
		w.loop.Post(func() { w.adopt(t, version, standings) })
	}
}

// follow makes the pool take the place of another one. What that has promised about keys holds on:
// which are being written, and of which there may be copies, and on what servers.
func (p *Pool) follow(before *Pool) {
	before.mu.Lock()
	defer before.mu.Unlock()
	p.before, p.standings = before, before.standings
	p.epochs, p.copies = before.epochs, before.copies
	p.born, p.slowest = before.born, max(p.slowest, before.slowest)
}

// predecessor returns the pool whose place this one takes, until that is gone.
func (p *Pool) predecessor() *Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.before
}

// unfollow forgets it.
func (p *Pool) unfollow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = nil
}

// begin runs what the pool needs beside the loops, until finish or until ctx ends.
func (p *Pool) begin(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	if p.heat != nil {
		p.running.Go(func() { p.watchHeat(ctx) })
	}
	if p.cfg.OnWritten != nil {
		p.running.Go(func() { p.spreadRumours(ctx) })
	}
}

// finish ends that.
func (p *Pool) finish() {
	p.stop()
	p.running.Wait()
}

// copyMargin is how much longer than its time to live a copy may be there: it may have
// been stored as late as a call may end, and memcached counts in seconds.
func (p *Pool) copyMargin() time.Duration { return 2*p.slowest + 2*time.Second }

// copyLife is how long after it was made a copy may be there at most.
func (p *Pool) copyLife() time.Duration { return copyTTL*time.Second + p.copyMargin() }

// Table returns the table in force.
func (p *Pool) Table() *Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table
}
