//go:build linux

package scenario

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/built"
	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

var build = built.Router("cacherouter")

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// binary returns the router's path.
func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// onStage returns a stage for a short form of a scenario.
func onStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	return alone(t)
}

// alone returns a stage for what takes all processors, and would disturb others beside it.
func alone(t *testing.T) *stage {
	t.Helper()
	memcachedtest.Need(t, "memcached")
	return &stage{Config: Config{Binary: binary(t), Note: func(text string) { t.Log(text) }}, Report: &Report{Name: t.Name()}, ctx: t.Context()}
}

func (s *stage) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// passed fails the test with the report if a goal was missed.
func (s *stage) passed(t *testing.T) {
	t.Helper()
	var b strings.Builder
	s.must(t, s.WriteText(&b))
	if !s.Pass() {
		t.Error("\n" + b.String())
	}
}

// small starts a small fleet with a load.
func (s *stage) small(t *testing.T, routers int) (*fleet.Fleet, *traffic.Running) {
	t.Helper()
	f, err := s.fleet(fleet.Config{Servers: 5, Routers: routers, Timeout: 500 * time.Millisecond})
	s.must(t, err)
	t.Cleanup(f.Stop)
	r, err := s.load(f, func(p *traffic.Plan) { p.Rate, p.Ledger, p.Refill = 500, ledger.New(2000, 100), false })
	s.must(t, err)
	t.Cleanup(func() { r.Stop() })
	return f, r
}

func TestErrorsWithoutAndWithActiveChecks(t *testing.T) {
	s := onStage(t)
	blind, err := s.checksDirect(false)
	s.must(t, err)
	// The request at which the server is killed may be under way, or done.
	if blind < 132 || blind > 134 {
		t.Errorf("%d errors without checks, want 133", blind)
	}
	active, err := s.checksDirect(true)
	s.must(t, err)
	if active == 0 || active >= blind {
		t.Errorf("%d errors with active checks, %d without", active, blind)
	}
}

func TestAKilledServersKeysAreMovedAtAllRouters(t *testing.T) {
	s := onStage(t)
	f, r := s.small(t, 3)
	fault := time.Now()
	f.Servers[0].Kill()
	s.must(t, s.awaitChange(f, "s00", false, fault, moved))
	var w switching
	s.must(t, w.add(f.ChangedAt("s00", false, fault), fault))
	s.must(t, s.wait(time.Second))
	quiet := time.Now()
	s.must(t, s.wait(time.Second))
	var late outage
	late.add(r.Account(), quiet)
	s.atMost("failed requests once its keys are moved", late.reads.failed+late.writes.failed, 0)
	s.atMost("changes at a router", f.MostChanges(fault), 1)
	s.correct(s.stopLoad(r))
	s.passed(t)
	if w.quantile(1) > moved || w.quantile(0) > w.quantile(1) {
		t.Errorf("moved after %v to %v", w.quantile(0), w.quantile(1))
	}
}

func TestABlipMovesNothing(t *testing.T) {
	s := onStage(t)
	f, r := s.small(t, 3)
	begin, killed, stopped := time.Now(), f.Servers[0], f.Servers[1]
	s.must(t, stopped.Pause())
	killed.Kill()
	s.must(t, s.wait(2*time.Second))
	s.must(t, killed.Start(s.ctx))
	s.must(t, s.wait(900*time.Millisecond))
	s.must(t, stopped.Resume())
	s.must(t, s.wait(4*time.Second))
	s.atMost("changes of placement", f.MostChanges(begin), 0)
	s.correct(s.stopLoad(r))
	s.passed(t)
}

func TestReportIsAsGoodAsItsWorstCheck(t *testing.T) {
	f := func(want bool, fill func(*Report)) {
		t.Helper()
		r := &Report{Name: "x"}
		fill(r)
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if last := b.String(); r.Pass() != want || !strings.HasSuffix(last, verdict(want)+"  x\n") {
			t.Errorf("%v, want %v:\n%s", r.Pass(), want, last)
		}
	}
	f(false, func(*Report) {}) // nothing was shown
	f(true, func(r *Report) { r.atMost("a", 3, 3); r.row("b", "c") })
	f(false, func(r *Report) { r.atMost("a", 3, 3); r.atMost("a", 4, 3) })
	f(true, func(r *Report) { r.within("a", time.Second, time.Second) })
	f(false, func(r *Report) { r.within("a", time.Second+1, time.Second) })
	f(true, func(r *Report) { r.ratioAtLeast("a", 0.9, 0.9); r.ratioAtMost("a", 1.05, 1.05); r.yes("a", true) })
	f(false, func(r *Report) { r.ratioAtLeast("a", 0.89, 0.9) })
	f(false, func(r *Report) { r.ratioAtMost("a", 1.06, 1.05) })
	f(false, func(r *Report) { r.yes("a", false) })
}

func TestQuantilesAreOfTheChangesSeen(t *testing.T) {
	var w switching
	fault := time.Now()
	for i := range 50 {
		at := fault.Add(time.Duration(i) * time.Second)
		if err := w.add([]time.Time{at, at.Add(time.Millisecond)}, fault); err != nil {
			t.Fatal(err)
		}
	}
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 24*time.Second + time.Millisecond, 0.99: 49 * time.Second, 1: 49*time.Second + time.Millisecond} {
		if got := w.quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if w.spread != time.Millisecond {
		t.Errorf("spread %v", w.spread)
	}
	if err := w.add([]time.Time{fault, {}}, fault); err == nil {
		t.Error("a router that has not changed is not missed")
	}
}

func TestFailuresAreSummedByKindAndRouter(t *testing.T) {
	fault := time.Now()
	var s span
	if s.String() != "none" {
		t.Errorf("%q", s.String())
	}
	refused := fmt.Errorf("cannot ask: %w", caller.Refusal("SERVER_ERROR out"))
	s.add([]traffic.Failure{
		{At: fault.Add(20 * time.Millisecond), Target: 1, Err: refused},
		{At: fault.Add(90 * time.Millisecond), Target: 2, Err: refused},
		{At: fault.Add(30 * time.Millisecond), Target: 1, Err: errors.New("read tcp 1->2: i/o timeout")},
	}, fault)
	const want = "3, at most 2 at a router, the last after 90ms (1 i/o timeout, 2 SERVER_ERROR out)"
	if got := s.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestScenariosAreFoundByName(t *testing.T) {
	all, err := Find("all")
	if err != nil || len(all) != len(All()) {
		t.Errorf("%d scenarios, %v", len(all), err)
	}
	for _, s := range all {
		if one, err := Find(s.Name); err != nil || len(one) != 1 || one[0].Name != s.Name || s.About == "" {
			t.Errorf("%s: %v, %v", s.Name, one, err)
		}
	}
	if _, err := Find("nothing"); err == nil {
		t.Error("nothing was found")
	}
}
