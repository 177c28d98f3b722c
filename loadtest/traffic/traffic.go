// Package traffic is what applications do to routers while something happens: reads and writes at a
// fixed rate over many connections, every answer checked, and an account of what failed and when.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/pace"
	"cacherouter/loadtest/workload"
)

// Cache is what a worker asks. A [caller.Conn] is one; errors are those that it returns.
type Cache interface {
	Get(key string) (value []byte, hit bool, err error)
	Set(key string, value []byte, ttl int) error
	Delete(key string) error
	Close() // at the end
}

// Plan says what is done. Ledger, Rate, and Targets or Cache must be set.
type Plan struct {
	Targets []string // of routers or servers, each host:port; workers use them in turn
	// Cache is asked by all workers at once instead of targets; nil means that there is none.
	Cache Cache
	// Switch has a worker whose target does not answer go on with the next one, as clients do that know
	// several routers.
	Switch  bool
	Ledger  *ledger.Ledger
	Rate    float64 // requests per second, over all targets
	Workers int     // requests at a time; 0 is 48 for each target
	// Zipf is by which power keys become rarer, from the first of the ledger on: over 0, or 0 for keys
	// that are all as frequent.
	Zipf float64
	// Writes and Deletes are their shares of the requests, per mille.
	Writes, Deletes int
	// Refill has a read that misses be followed by a write of the key, as look-aside clients do.
	Refill bool
	// Failover has a worker whose target fails ask the next one, and so on; only what all failed is failed.
	Failover bool
	// Churn is after how many requests a worker closes its connection and makes another; 0 is never.
	Churn int
	// Timeout is how long a client waits; 0 is 2 s.
	Timeout time.Duration
	Seed    uint64
}

// Running is a load under way.
type Running struct {
	plan    Plan
	account *Account
	clients []client
	stop    context.CancelFunc
	ended   chan struct{}
	paced   pace.Result // valid once ended is closed
}

// client is what a worker asks, and its choices.
type client struct {
	cache  Cache
	target int
	rng    *rand.Rand
	key    func() int
	made   int // requests
}

// Fill writes every key of the ledger once, through the first target or the cache. It comes before Start.
func Fill(ctx context.Context, p Plan) error {
	const workers = 8
	errs := make([]error, workers)
	var filling sync.WaitGroup
	for w := range workers {
		filling.Go(func() { errs[w] = fillShare(ctx, p, w, workers) })
	}
	filling.Wait()
	return errors.Join(errs...)
}

func fillShare(ctx context.Context, p Plan, share, shares int) error {
	c := p.cache(0)
	defer c.Close()
	for i := share; i < p.Ledger.Len() && ctx.Err() == nil; i += shares {
		w, ok := p.Ledger.Begin(i, false)
		if !ok {
			return fmt.Errorf("cannot fill %s: it is being written", ledger.Key(i))
		}
		err := c.Set(w.Key, w.Value, 0)
		w.End(err == nil)
		if err != nil {
			return fmt.Errorf("cannot fill: %w", err)
		}
	}
	return ctx.Err()
}

// cache is what to ask instead of, or at, a target.
func (p Plan) cache(target int) Cache {
	if p.Cache != nil {
		return p.Cache
	}
	if p.Switch {
		return newSwitching(p.Targets, target, p.timeout())
	}
	return &caller.Conn{Target: p.Targets[target], Timeout: p.timeout()}
}

// keys returns how a worker chooses keys.
func (p Plan) keys(rng *rand.Rand) func() int {
	if p.Zipf == 0 {
		return func() int { return rng.IntN(p.Ledger.Len()) }
	}
	z := workload.NewZipf(p.Zipf, p.Ledger.Len())
	return func() int { return z.Draw(rng) - 1 }
}

func (p Plan) timeout() time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return 2 * time.Second
}

// Start begins the load. It goes on until Stop, or ctx ends.
func Start(ctx context.Context, p Plan) (*Running, error) {
	switch {
	case len(p.Targets) == 0 && p.Cache == nil || p.Ledger == nil || p.Rate <= 0:
		return nil, errors.New("traffic needs targets or a cache, a ledger and a rate")
	case !(p.Zipf >= 0):
		return nil, fmt.Errorf("keys cannot be chosen by Zipf's law with an exponent of %v: want 0 or over", p.Zipf)
	}
	if p.Workers == 0 {
		p.Workers = 48 * max(1, len(p.Targets))
	}
	ctx, stop := context.WithCancel(ctx)
	r := &Running{plan: p, account: newAccount(), stop: stop, ended: make(chan struct{})}
	r.clients = make([]client, p.Workers)
	for w := range r.clients {
		target := w % max(1, len(p.Targets))
		rng := rand.New(rand.NewPCG(p.Seed, uint64(w)))
		r.clients[w] = client{cache: r.cache(target), target: target, rng: rng, key: p.keys(rng)}
	}
	go func() {
		defer close(r.ended)
		r.paced, _ = pace.Run(ctx, pace.Plan{Rate: p.Rate, Workers: p.Workers}, r.request) // its plan is right
	}()
	return r, nil
}

// cache is what a worker asks.
func (r *Running) cache(target int) Cache {
	if r.plan.Failover && r.plan.Cache == nil {
		return newSeveral(r.plan, target, &r.account.again)
	}
	return r.plan.cache(target)
}

// Stop ends the load, returns when all requests have ended, and says how well the rate was kept. It
// may be called again.
func (r *Running) Stop() pace.Result {
	r.stop()
	<-r.ended
	for w := range r.clients {
		r.clients[w].cache.Close()
	}
	return r.paced
}

// Account is what was seen so far. It may be read while the load goes on.
func (r *Running) Account() *Account { return r.account }

func (r *Running) request(worker, _ int) {
	c := &r.clients[worker]
	key, kind := c.key(), c.rng.IntN(1000)
	switch {
	case kind < r.plan.Deletes:
		r.write(c, key, true)
	case kind < r.plan.Deletes+r.plan.Writes:
		r.write(c, key, false)
	default:
		r.read(c, key)
	}
	if c.made++; r.plan.Churn > 0 && c.made%r.plan.Churn == 0 {
		c.cache.Close()
	}
}

func (r *Running) read(c *client, key int) {
	read := r.plan.Ledger.Read(key)
	value, hit, err := c.cache.Get(read.Key)
	if err != nil {
		r.account.failed(Failure{Target: c.target, Err: err})
		return
	}
	verdict := read.Judge(value, hit)
	r.account.read(time.Now(), verdict, hit)
	if verdict == ledger.Stale || verdict == ledger.Wrong {
		r.account.bad(verdict, read.Age(value), fmt.Sprintf("%s (from target %d)", read.Explain(value), c.target))
	}
	if !hit && r.plan.Refill {
		r.write(c, key, false)
	}
}

// write leaves a key alone that another worker is writing.
func (r *Running) write(c *client, key int, del bool) {
	w, ok := r.plan.Ledger.Begin(key, del)
	if !ok {
		return
	}
	var err error
	if del {
		err = c.cache.Delete(w.Key)
	} else {
		err = c.cache.Set(w.Key, w.Value, 0)
	}
	w.End(err == nil)
	if err != nil {
		r.account.failed(Failure{Target: c.target, Write: true, Err: err})
		return
	}
	r.account.wrote()
}
