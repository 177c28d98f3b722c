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
	plan  Plan
	lanes []*lane
}

// Dial connects all clients of p and checks that a memcached answers. It does not count as load:
// the target is asked for its version once, and nothing else. The caller must Close the session.
func Dial(ctx context.Context, p Plan) (*Session, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	if err := greet(ctx, p.Target); err != nil {
		return nil, err
	}
	s := &Session{plan: p}
	keys := newKeyspace(p.Keys, p.ValueSize)
	for i := range min(max(p.Lanes, 1), p.Connections) {
		l, err := newLane(keys, p.Pipeline)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.lanes = append(s.lanes, l)
		for range share(p.Connections, i, min(max(p.Lanes, 1), p.Connections)) {
			if err := join(ctx, l, p.Target); err != nil {
				s.Close()
				return nil, err
			}
		}
	}
	return s, nil
}

func join(ctx context.Context, l *lane, target string) error {
	fd, err := connect(ctx, target)
	if err != nil {
		return err
	}
	return l.adopt(fd)
}

// Close closes all connections.
func (s *Session) Close() {
	for _, l := range s.lanes {
		l.close()
	}
	s.lanes = nil
}

// Fill sets every key once, pipelined, so that later gets hit.
func (s *Session) Fill(ctx context.Context) (Result, error) {
	for _, l := range s.lanes {
		l.depth = max(s.plan.Pipeline, fillDepth(s.plan.ValueSize))
		defer func() { l.depth = s.plan.Pipeline }()
	}
	return s.offer(ctx, 0, func(lane int) source { return sweep(s.plan, lane, len(s.lanes)) })
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
	return s.offer(ctx, x.Duration, func(lane int) source {
		if x.Requests <= 0 {
			return mix(s.plan, lane, -1)
		}
		return mix(s.plan, lane, share(x.Requests, lane, len(s.lanes)))
	})
}

// offer lets every lane send what its source yields.
func (s *Session) offer(ctx context.Context, d time.Duration, from func(lane int) source) (Result, error) {
	if len(s.lanes) == 0 {
		return Result{}, errors.New("cannot load: session is closed")
	}
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	if d > 0 {
		defer time.AfterFunc(d, func() { stop.Store(true) }).Stop()
	}
	tallies := make([]*tally, len(s.lanes))
	begin := time.Now()
	var running sync.WaitGroup
	for i, l := range s.lanes {
		running.Go(func() { tallies[i] = l.offer(from(i), &stop) })
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
