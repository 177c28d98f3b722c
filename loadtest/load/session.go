//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Session is a set of connections to one target, ready to run loads over. Its methods must not be
// called concurrently.
type Session struct {
	plan    Plan
	drivers []driver
}

// driver offers load over the connections it owns: a lane over many, a stream over one.
type driver interface {
	// offer sends what next yields until it yields nothing or stop is set, and waits for the
	// replies that are then outstanding.
	offer(next source, stop *atomic.Bool) *tally
	depth(requests int) // of the batches from now on
	close()
}

// Dial connects all clients of p and checks that a memcached answers. It does not count as load:
// the target is asked for its version once, and nothing else. The caller must Close the session.
func Dial(ctx context.Context, p Plan) (*Session, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	if err := greet(ctx, p); err != nil {
		return nil, err
	}
	s := &Session{plan: p}
	join := s.joinLanes
	if p.Wrap != nil {
		join = s.joinStreams
	}
	keys := newKeyspace(p.Keys, p.ValueSize)
	if err := join(ctx, keys, p.Protocol.dialect(keys)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) joinLanes(ctx context.Context, k *keyspace, d dialect) error {
	lanes := min(max(s.plan.Lanes, 1), s.plan.Connections)
	for i := range lanes {
		l, err := newLane(k, d, s.plan.Pipeline)
		if err != nil {
			return err
		}
		s.drivers = append(s.drivers, l)
		for range share(s.plan.Connections, i, lanes) {
			fd, err := connect(ctx, s.plan.Target)
			if err == nil {
				err = l.adopt(fd)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) joinStreams(ctx context.Context, k *keyspace, d dialect) error {
	for range s.plan.Connections {
		conn, err := dial(ctx, s.plan)
		if err != nil {
			return err
		}
		s.drivers = append(s.drivers, newStream(k, d, conn, s.plan.Pipeline))
	}
	return nil
}

// Close closes all connections.
func (s *Session) Close() {
	for _, d := range s.drivers {
		d.close()
	}
	s.drivers = nil
}

// Fill sets every key once, pipelined, so that later gets hit.
func (s *Session) Fill(ctx context.Context) (Result, error) {
	for _, d := range s.drivers {
		d.depth(max(s.plan.Pipeline, fillDepth(s.plan.ValueSize)))
		defer d.depth(s.plan.Pipeline)
	}
	return s.offer(ctx, 0, func(i int) source { return sweep(s.plan, i, len(s.drivers)) })
}

// fillDepth keeps a batch of sets near 64 KiB.
func fillDepth(size int) int { return min(max(64<<10/(size+64), 1), 64) }

// Run offers the plan's mix until the extent is reached or ctx is done, then waits for what is
// outstanding. A batch that is not answered within ten seconds is lost, with its connection; when
// all connections are, the run ends. The result is valid also when ctx was done, and says what was measured so far. The
// error is Result.Err, or says why nothing was run.
func (s *Session) Run(ctx context.Context, x Extent) (Result, error) {
	if err := x.validate(); err != nil {
		return Result{}, err
	}
	return s.offer(ctx, x.Duration, func(i int) source {
		if x.Requests <= 0 {
			return mix(s.plan, i, -1)
		}
		return mix(s.plan, i, share(x.Requests, i, len(s.drivers)))
	})
}

// offer lets every driver send what its source yields.
func (s *Session) offer(ctx context.Context, d time.Duration, from func(lane int) source) (Result, error) {
	if len(s.drivers) == 0 {
		return Result{}, errors.New("cannot load: session is closed")
	}
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	if d > 0 {
		defer time.AfterFunc(d, func() { stop.Store(true) }).Stop()
	}
	tallies := make([]*tally, len(s.drivers))
	begin := time.Now()
	var running sync.WaitGroup
	for i, d := range s.drivers {
		running.Go(func() { tallies[i] = d.offer(from(i), &stop) })
	}
	running.Wait()
	took := time.Since(begin)
	for _, t := range tallies[1:] {
		tallies[0].add(t)
	}
	r := tallies[0].result(took)
	return r, r.Err()
}

// unusable names a target that cannot be used.
func unusable(target string, err error) error {
	return fmt.Errorf("cannot use %s as target: %w", target, err)
}
