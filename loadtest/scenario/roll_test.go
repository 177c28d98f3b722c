//go:build linux

package scenario

import (
	"testing"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

func TestClientsThatKnowAnotherRouterSeeNoneKilled(t *testing.T) {
	s := onStage(t)
	f, err := s.fleet(fleet.Config{Servers: 3, Routers: 2})
	s.must(t, err)
	t.Cleanup(f.Stop)
	r, err := s.load(f, func(p *traffic.Plan) {
		p.Rate, p.Ledger, p.Failover, p.Timeout = 300, ledger.New(500, 100), true, 20*time.Second
	})
	s.must(t, err)
	t.Cleanup(func() { r.Stop() })
	s.must(t, s.wait(time.Second))
	begin := time.Now()
	f.Routers[0].Kill()
	s.must(t, s.wait(2*time.Second))
	s.must(t, f.Routers[0].Start(s.ctx))
	s.must(t, s.wait(2*time.Second))
	f.Routers[1].Stop()
	s.must(t, s.wait(time.Second))
	s.unseen(f, r, begin)
	s.correct(s.stopLoad(r))
	s.passed(t)
	if r.Account().Again() == 0 {
		t.Error("no request was asked again: nothing was killed")
	}
}

func TestWrongConfigurationsAreRefusedAndWhatARouterHasIsSeen(t *testing.T) {
	s := onStage(t)
	f, err := s.fleet(fleet.Config{Servers: 3, Listed: 2, Routers: 1})
	s.must(t, err)
	t.Cleanup(f.Stop)
	begin := time.Now().Truncate(time.Millisecond)
	s.must(t, s.reloads(f, 2, f.Reload))
	s.must(t, s.reloads(f, 3, func() error { return spoil(f) }))
	s.must(t, s.reloads(f, 1, func() error { return f.List(3) }))
	if good, bad := atEach(f, "reloaded", begin), atEach(f, "reload refused", begin); good != 3 || bad != 3 {
		t.Errorf("%d were taken over, %d refused, want 3 each", good, bad)
	}
	held := []holding{newHolding()}
	s.must(t, s.watchHoldings(f, held, 400*time.Millisecond))
	h := &held[0]
	if len(h.memory.values) < 10 || middle(h.memory.values) < 1 || middle(h.descriptors.values) < 5 || middle(h.threads.values) < 1 {
		t.Errorf("memory %s, descriptors %s, threads %s", &h.memory, &h.descriptors, &h.threads)
	}
}
