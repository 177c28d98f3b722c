//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"cacherouter/loadtest/origin"
	"cacherouter/loadtest/pace"
)

// Session is a set of connections to one target, ready to run loads over. Its methods must not be
// called concurrently.
type Session struct {
	plan    Plan
	keys    *keyspace
	drivers []driver
}

// driver offers load over the connections it owns: a lane over many, a stream over one, a library over all.
type driver interface {
	// offer sends what next yields until it yields nothing or the run is stopped, at its schedule if it
	// has one, and waits for the replies that are then outstanding.
	offer(r *run, number int, next source) *tally
	depth(requests int) // of the batches from now on
	close()
}

// Dial connects all clients of p and checks that a memcached answers. It does not count as load:
// the target is asked for its version once, and nothing else. The caller must Close the session.
func Dial(ctx context.Context, p Plan) (*Session, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := greet(ctx, p); err != nil {
		return nil, err
	}
	s := &Session{plan: p, keys: newKeyspace(p)}
	if p.Versions {
		s.keys.writes, s.keys.run = newVersions(p.Keys), rand.Uint32()
	}
	join := s.joinLanes
	switch {
	case p.Wrap != nil:
		join = s.joinStreams
	case p.Client == Gomemcache:
		join = s.joinLibrary
	}
	if err := join(ctx, s.keys, p.Protocol.dialect(s.keys)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) joinLanes(ctx context.Context, k *keyspace, d dialect) error {
	lanes := min(max(s.plan.Lanes, 1), s.plan.Connections)
	for i := range lanes {
		l, err := newLane(k, d, s.plan)
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

func (s *Session) joinLibrary(_ context.Context, k *keyspace, _ dialect) error {
	s.drivers = append(s.drivers, newLibrary(k, s.plan))
	return nil
}

// Close closes all connections.
func (s *Session) Close() {
	for _, d := range s.drivers {
		d.close()
	}
	s.drivers = nil
}

// Fill sets every key once, pipelined and in a closed loop, so that later gets hit.
func (s *Session) Fill(ctx context.Context) (Result, error) {
	for _, d := range s.drivers {
		d.depth(max(s.plan.Pipeline, fillDepth(s.keys.size)))
		defer d.depth(s.plan.Pipeline)
	}
	closed := s.plan
	closed.Rate, closed.Origin = 0, nil
	return s.offer(ctx, closed, Extent{}, func(i int) source { return sweep(s.plan, i, len(s.drivers)) })
}

// fillDepth keeps a batch of sets near 64 KiB.
func fillDepth(size int) int { return min(max(64<<10/(size+64), 1), 64) }

// Run offers the plan's mix until the extent is reached or ctx is done, then waits for what is
// outstanding. What is not answered within ten seconds is given up, with its connection; when
// all connections are, the run ends. The result is valid also when ctx was done, and says what was measured so far. The
// error is Result.Err, or says why nothing was run.
func (s *Session) Run(ctx context.Context, x Extent) (Result, error) {
	if err := x.validate(); err != nil {
		return Result{}, err
	}
	return s.offer(ctx, s.plan, x, func(i int) source {
		if x.Requests <= 0 || s.plan.Rate > 0 { // a schedule counts for all
			return mix(s.plan, i, len(s.drivers), -1)
		}
		return mix(s.plan, i, len(s.drivers), share(x.Requests, i, len(s.drivers)))
	})
}

// offer lets every driver send what its source yields.
func (s *Session) offer(ctx context.Context, p Plan, x Extent, from func(driver int) source) (Result, error) {
	if len(s.drivers) == 0 {
		return Result{}, errors.New("cannot load: session is closed")
	}
	r := &run{plan: p, series: newSeries(len(s.drivers), x.Watch)}
	if p.Rate > 0 {
		r.schedule = &schedule{pace.NewSchedule(p.Rate), x.Requests, x.Duration}
	}
	if o := p.Origin; o != nil {
		r.origin = origin.New(o.Latency, o.Capacity)
	}
	tallies := make([]*tally, len(s.drivers))
	r.begin = time.Now()
	defer context.AfterFunc(ctx, r.halt)()
	if x.Duration > 0 {
		defer time.AfterFunc(x.Duration, r.halt).Stop()
	}
	var running sync.WaitGroup
	for i, d := range s.drivers {
		running.Go(func() { tallies[i] = d.offer(r, i, from(i)) })
	}
	running.Wait()
	return r.result(tallies)
}

// result puts together what the drivers have counted.
func (r *run) result(tallies []*tally) (Result, error) {
	took := time.Since(r.begin)
	all := tallies[0]
	for _, t := range tallies[1:] {
		all.add(t)
	}
	res := all.result(took)
	res.Series = r.series.windows()
	if r.schedule != nil {
		res.Open = r.judge(all)
	}
	return res, res.Err()
}

// unusable names a target that cannot be used.
func unusable(target string, err error) error {
	return fmt.Errorf("cannot use %s as target: %w", target, err)
}
