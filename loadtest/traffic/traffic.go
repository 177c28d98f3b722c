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
)

// Plan says what is done. Targets, Ledger and Rate must be set.
type Plan struct {
	Targets []string // of routers or servers, each host:port; workers use them in turn
	Ledger  *ledger.Ledger
	Rate    float64 // requests per second, over all targets
	Workers int     // connections; 0 is 48 for each target
	// Writes and Deletes are their shares of the requests, per mille.
	Writes, Deletes int
	// Refill has a read that misses be followed by a write of the key, as look-aside clients do.
	Refill bool
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

// client is a worker's connection, and its choices.
type client struct {
	conn   caller.Conn
	target int
	rng    *rand.Rand
}

// Fill writes every key of the ledger once, through the first target. It comes before Start.
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
	c := caller.Conn{Target: p.Targets[0], Timeout: p.timeout()}
	defer c.Close()
	for i := share; i < p.Ledger.Len() && ctx.Err() == nil; i += shares {
		w, ok := p.Ledger.Begin(i, false)
		if !ok {
			return fmt.Errorf("cannot fill %s: it is in use", p.Targets[0])
		}
		err := c.Set(w.Key, w.Value, 0)
		w.End(err == nil)
		if err != nil {
			return fmt.Errorf("cannot fill: %w", err)
		}
	}
	return ctx.Err()
}

func (p Plan) timeout() time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return 2 * time.Second
}

// Start begins the load. It goes on until Stop, or ctx ends.
func Start(ctx context.Context, p Plan) (*Running, error) {
	if len(p.Targets) == 0 || p.Ledger == nil || p.Rate <= 0 {
		return nil, errors.New("traffic needs targets, a ledger and a rate")
	}
	if p.Workers == 0 {
		p.Workers = 48 * len(p.Targets)
	}
	ctx, stop := context.WithCancel(ctx)
	r := &Running{plan: p, account: newAccount(), stop: stop, ended: make(chan struct{})}
	r.clients = make([]client, p.Workers)
	for w := range r.clients {
		target := w % len(p.Targets)
		r.clients[w] = client{
			conn:   caller.Conn{Target: p.Targets[target], Timeout: p.timeout()},
			target: target, rng: rand.New(rand.NewPCG(p.Seed, uint64(w))),
		}
	}
	go func() {
		defer close(r.ended)
		r.paced, _ = pace.Run(ctx, pace.Plan{Rate: p.Rate, Workers: p.Workers}, r.request) // its plan is right
	}()
	return r, nil
}

// Stop ends the load, returns when all requests have ended, and says how well the rate was kept. It
// may be called again.
func (r *Running) Stop() pace.Result {
	r.stop()
	<-r.ended
	for w := range r.clients {
		r.clients[w].conn.Close()
	}
	return r.paced
}

// Account is what was seen so far. It may be read while the load goes on.
func (r *Running) Account() *Account { return r.account }

func (r *Running) request(worker, _ int) {
	c := &r.clients[worker]
	key, kind := c.rng.IntN(r.plan.Ledger.Len()), c.rng.IntN(1000)
	switch {
	case kind < r.plan.Deletes:
		r.write(c, key, true)
	case kind < r.plan.Deletes+r.plan.Writes:
		r.write(c, key, false)
	default:
		r.read(c, key)
	}
}

func (r *Running) read(c *client, key int) {
	read := r.plan.Ledger.Read(key)
	value, hit, err := c.conn.Get(read.Key)
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
		err = c.conn.Delete(w.Key)
	} else {
		err = c.conn.Set(w.Key, w.Value, 0)
	}
	w.End(err == nil)
	if err != nil {
		r.account.failed(Failure{Target: c.target, Write: true, Err: err})
		return
	}
	r.account.wrote()
}
