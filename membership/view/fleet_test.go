package view

import (
	"slices"
	"testing"
	"time"

	"cacherouter/membership/health"
)

// TestKill: the keys of a killed server fail over within a second and are moved at p50 <=
// 5.5 s, p99 <= 7 s, all routers within 100 ms.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"killed", "stopped"} {
		var moved, away, spread []time.Duration
		for seed := range uint64(100) {
			routers := 3 + 2*int(seed%2)
			w := newWorld(t, seed, routers, 10, Config{})
			w.run(w.jitter(time.Second))
			w.start, w.changes = w.now, nil
			w.servers["s03"].killed, w.servers["s03"].stopped = kind == "killed", kind == "stopped"
			away = append(away, w.until(5*time.Second, "failed over", func() bool { return w.status("s03", Away) }))
			w.until(9*time.Second, "moved", func() bool { return len(w.changes) == routers })
			moved = append(moved, w.changes[routers-1].at)
			spread = append(spread, w.changes[routers-1].at-w.changes[0].at)
			if !w.agreed() {
				t.Fatal("the routers do not agree")
			}
		}
		slices.Sort(moved)
		slices.Sort(away)
		t.Logf("%s: moved p50 %v p99 %v, failed over p50 %v max %v, spread max %v", kind, moved[50], moved[98], away[50], away[99], slices.Max(spread))
		if moved[50] > 5500*time.Millisecond || moved[98] > 7*time.Second {
			t.Errorf("%s: moved at p50 %v, p99 %v, want 5.5 s and 7 s", kind, moved[50], moved[98])
		}
		if s := slices.Max(spread); s > 100*time.Millisecond {
			t.Errorf("%s: routers switched %v apart, want 100 ms", kind, s)
		}
		if kind == "killed" && away[99] > time.Second {
			t.Errorf("agreed to fail over after %v, want 1 s", away[99])
		}
	}
}

// TestBlip: an outage of 3 s, of either kind, moves no key in 100 repeats, and the server
// gets its own back.
func TestBlip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		w := newWorld(t, seed, 3+2*int(seed%2), 5, Config{})
		w.run(w.jitter(time.Second))
		s := w.servers["s01"]
		s.killed, s.stopped = seed%4 < 2, seed%4 >= 2
		w.run(3 * time.Second)
		*s = server{}
		w.run(5 * time.Second)
		w.still("a blip of 3 s")
		if !w.status("s01", In) {
			t.Error("not back after a blip")
		}
	}
}

// TestBadObserver: one router that cannot reach a server moves nothing, in 100 repeats.
func TestBadObserver(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		w := newWorld(t, seed, 3, 5, Config{})
		w.routers[1].deaf["s02"] = true
		w.run(30 * time.Second)
		w.still("one bad observer")
		if !w.status("s02", In) {
			t.Error("one bad observer failed a server over")
		}
	}
	for _, routers := range []int{2, 3, 5} {
		w := newWorld(t, 1, routers, 5, Config{})
		for s := range w.servers {
			w.routers[0].deaf[s] = true
		}
		w.run(30 * time.Second)
		w.still("a router without network to the servers")
	}
}

// TestBusyOrStoppedRouter: a router whose processor is taken, or that was stopped for
// 10 s, moves nothing, in 100 repeats.
func TestBusyOrStoppedRouter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		w := newWorld(t, seed, 3, 5, Config{})
		w.routers[1].starved = true
		w.run(20 * time.Second)
		w.still("a busy router")
		w.routers[1].starved = false
		w.routers[2].paused = true
		w.run(10 * time.Second)
		w.routers[2].paused = false
		w.run(10 * time.Second)
		w.still("a stopped router")
		if !w.agreed() {
			t.Error("the routers do not agree")
		}
	}
}

// TestStoppedRouterMissesADecision and takes it over when it runs again.
func TestStoppedRouterMissesADecision(t *testing.T) {
	w := newWorld(t, 3, 3, 5, Config{})
	w.routers[2].paused = true
	w.servers["s00"].killed = true
	w.run(12 * time.Second)
	if len(w.changes) != 2 {
		t.Fatalf("changes %v, want one at each of the two that run", w.changes)
	}
	w.routers[2].paused = false
	w.until(2*time.Second, "one view", w.agreed)
}

// TestPartition: of five routers the two that are cut off stay as they are while the
// three go on, and there is one view within 45 s of healing.
func TestPartition(t *testing.T) {
	t.Parallel()
	var slowest time.Duration
	for seed := range uint64(3) {
		w := newWorld(t, seed, 5, 10, Config{})
		for _, r := range w.routers[:2] {
			r.group = 1
		}
		w.run(6 * time.Second)
		w.servers["s04"].killed = true
		w.run(2 * time.Minute)
		for _, c := range w.changes {
			if c.router < 2 {
				t.Fatalf("the minority changed its placement: %v", w.changes)
			}
		}
		if len(w.changes) != 3 {
			t.Fatalf("the majority did not: %v", w.changes)
		}
		if st := w.routers[0].node.Stats(); !st.Frozen || st.Present != 2 || st.Known != 5 {
			t.Errorf("the minority: %+v", st)
		}
		w.heal()
		slowest = max(slowest, w.until(45*time.Second, "one view after healing", w.agreed))
	}
	t.Logf("one view at most %v after healing", slowest)
}

// TestEvenPartition freezes both sides.
func TestEvenPartition(t *testing.T) {
	w := newWorld(t, 1, 4, 5, Config{})
	w.routers[0].group, w.routers[1].group = 1, 1
	w.run(6 * time.Second)
	w.servers["s00"].killed = true
	w.run(time.Minute)
	w.still("half a fleet of routers")
}

// TestLoss: with a fifth of all messages lost the routers switch within a second.
func TestLoss(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := newWorld(t, seed, 5, 10, Config{})
		w.loss = 0.2
		w.servers["s07"].stopped = true
		w.until(12*time.Second, "moved", func() bool { return len(w.changes) == 5 })
		if spread := w.changes[4].at - w.changes[0].at; spread > time.Second {
			t.Errorf("routers switched %v apart", spread)
		}
	}
}

// TestRouterAlone decides by itself, and fails over at once.
func TestRouterAlone(t *testing.T) {
	w := newWorld(t, 1, 1, 5, Config{})
	w.servers["s00"].killed = true
	took := w.until(time.Second, "failed over", func() bool { return w.status("s00", Away) })
	if took > 500*time.Millisecond {
		t.Errorf("failed over after %v", took)
	}
	w.until(7*time.Second, "moved", func() bool { return w.status("s00", Out) })
}

// TestEverythingDown: when no server answers, nothing is changed.
func TestEverythingDown(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	for _, s := range w.servers {
		s.killed = true
	}
	w.run(20 * time.Second)
	w.still("an outage of all servers")
	if st := w.routers[0].node.Stats(); !st.Abstains {
		t.Errorf("%+v", st)
	}
}

// TestNeverMoreThanAFifth: of ten servers three die one after the other; the keys of two
// are moved and the third is failed over only.
func TestNeverMoreThanAFifth(t *testing.T) {
	w := newWorld(t, 1, 3, 10, Config{})
	for _, s := range []string{"s01", "s02", "s03"} {
		w.servers[s].killed = true
		w.run(15 * time.Second)
	}
	if got := len(w.routers[0].node.View().Members()); got != 8 {
		t.Errorf("%d servers are placed, want 8", got)
	}
	if !w.status("s03", Away) {
		t.Error("the third server is not failed over")
	}
}

// TestTwoServersOneLeft: the last server is never moved away from.
func TestTwoServersOneLeft(t *testing.T) {
	w := newWorld(t, 1, 3, 2, Config{})
	w.servers["s00"].killed = true
	w.until(9*time.Second, "moved", func() bool { return w.status("s00", Out) })
	w.changes = nil
	w.servers["s01"].killed = true
	w.run(20 * time.Second)
	w.still("the death of the last server")
}

// TestReturn: a server comes back after it was held out, emptied before.
func TestReturn(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.servers["s00"].killed = true
	w.run(20 * time.Second)
	w.servers["s00"].killed = false
	took := w.until(60*time.Second, "back", func() bool { return w.status("s00", In) })
	if took < 5*time.Second {
		t.Errorf("back %v after it answered again, want it to be steady first", took)
	}
	if len(w.routers[0].flushes) == 0 {
		t.Error("back without being emptied although its keys had been elsewhere")
	}
	if !w.agreed() {
		t.Error("the routers do not agree")
	}
	for _, s := range w.routers[2].node.View().Servers {
		if s.Moved != (s.Name == "s00") {
			t.Errorf("%s has moved: %v", s.Name, s.Moved)
		}
	}
}

// TestOnlyServer: whatever shares are allowed, the last server keeps its keys.
func TestOnlyServer(t *testing.T) {
	w := newWorld(t, 1, 1, 1, Config{MaxAway: 1000, MaxOut: 1000})
	w.routers[0].pool = health.NewPool(health.Config{Panic: -1}, w.now)
	w.routers[0].pool.Add("s00", true, w.now)
	w.routers[0].node.judge = w.routers[0].pool
	w.servers["s00"].killed = true
	w.until(time.Second, "failed over", func() bool { return w.status("s00", Away) })
	w.run(20 * time.Second)
	if !w.status("s00", Away) {
		t.Error("the keys of the only server were moved")
	}
}
