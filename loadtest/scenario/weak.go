//go:build linux

package scenario

import (
	"context"
	"errors"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/load"
)

const (
	turn = 2 * time.Millisecond // how long one server runs while the others stand still
	// manyClients are enough for each server to have all it can do in its turn: a batch takes until all
	// servers that it needs have had theirs.
	manyClients = 512
)

// weak measures a remedy where servers are what limits the throughput, as they are in large fleets: on
// one machine they never are, since clients and router take more of its processors. Servers run in turn,
// each a part of the time that is the same for all, whatever the scheduler thinks of them.
func (s *stage) weak(r remedy, d time.Duration) (spread, error) {
	f, err := s.cold(r)
	if err != nil {
		return spread{}, err
	}
	defer f.Stop()
	plan := hotPlan(f, fewWrites)
	plan.Connections = manyClients
	session, err := load.Dial(s.ctx, plan)
	if err != nil {
		return spread{}, err
	}
	defer session.Close()
	if err := s.ignite(f, session, d); err != nil {
		return spread{}, err
	}
	s.note("measure %s with slow servers", r.name)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- takeTurns(ctx, f.Servers) }()
	sp, err := s.spreadOf(f, session, d)
	cancel()
	return sp, errors.Join(err, <-ended)
}

// takeTurns lets one server run at a time until ctx is done, and then all.
func takeTurns(ctx context.Context, servers []*fleet.Server) (err error) {
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.Resume())
		}
	}()
	for _, s := range servers {
		if err := s.Pause(); err != nil {
			return err
		}
	}
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for i := 0; ; i = (i + 1) % len(servers) {
		if err := servers[i].Resume(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := servers[i].Pause(); err != nil {
			return err
		}
	}
}
