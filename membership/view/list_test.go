package view

import (
	"slices"
	"testing"
	"time"
)

// TestNewListTogether: routers that learn of a new server at different times switch to
// the new list at one time.
func TestNewListTogether(t *testing.T) {
	w := newWorld(t, 1, 3, 10, Config{})
	for _, r := range w.routers {
		r.node.SetList(names(11), w.now)
		r.pool.Add("s10", true, w.now)
		w.servers["s10"] = &server{}
		w.run(5 * time.Second)
	}
	if len(w.changes) != 3 {
		t.Fatalf("changes %v, want one at each router", w.changes)
	}
	if first, last := w.changes[0].at, w.changes[2].at; first < 10*time.Second || last-first > 100*time.Millisecond {
		t.Errorf("the routers switched at %v to %v, want when the last one knew, together", first, last)
	}
	if !w.agreed() {
		t.Error("the routers do not agree")
	}
}

// moved returns the servers that a router takes to have had keys of others.
func moved(r *router) (names []string) {
	for _, s := range r.node.View().Servers {
		if s.Moved {
			names = append(names, s.Name)
		}
	}
	return names
}

// TestNewServersHaveOthersKeys: those whose keys a new server gets keep what they held, and all routers
// know it, also one that starts when it has long been listed; when weights change that goes for all.
func TestNewServersHaveOthersKeys(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	add := func(list []Server) {
		for _, r := range w.routers {
			r.node.SetList(list, w.now)
			r.pool.Add("s05", true, w.now)
		}
		w.servers["s05"] = &server{}
		w.run(10 * time.Second)
	}
	add(names(6))
	w.boot(2, Config{}, 6)
	w.run(10 * time.Second)
	for i, r := range w.routers {
		if got := moved(r); !slices.Equal(got, []string{"s05"}) {
			t.Errorf("router %d: %v have had keys of others, want s05", i, got)
		}
	}
	heavier := names(6)
	heavier[1].Weight = 2
	add(heavier)
	for i, r := range w.routers {
		if got := moved(r); len(got) != 6 {
			t.Errorf("router %d: after a change of weights %v", i, got)
		}
	}
	if !w.agreed() {
		t.Error("the routers do not agree")
	}
}

// TestMostHaveIt: a router that cannot see the new list does not hold the others up.
func TestMostHaveIt(t *testing.T) {
	w := newWorld(t, 1, 3, 10, Config{})
	for _, r := range w.routers[:2] {
		r.node.SetList(names(9), w.now)
	}
	w.run(29 * time.Second)
	w.still("a list that one router lacks")
	w.run(4 * time.Second)
	if len(w.changes) != 2 {
		t.Errorf("changes %v, want one at each of the two", w.changes)
	}
	w.run(31 * time.Second)
	if !w.routers[2].node.Stats().ListsDiffer {
		t.Error("no alarm where the list differs")
	}
}

// TestTwoConfigurations: routers with different lists keep serving, say so within 35 s,
// and those in the minority have no vote.
func TestTwoConfigurations(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.routers[2].node.SetList(names(4), w.now)
	w.until(67*time.Second, "alarm everywhere", func() bool {
		for _, r := range w.routers {
			if !r.node.Stats().ListsDiffer {
				return false
			}
		}
		return true
	})
	if v := w.routers[0].node.Stats().Voters; v != 2 {
		t.Errorf("%d voters among the two with one list", v)
	}
	if v := w.routers[2].node.Stats().Voters; v != 1 {
		t.Errorf("%d voters for the third", v)
	}
	w.changes = nil
	w.routers[0].deaf["s02"] = true
	w.routers[2].deaf["s02"] = true
	w.run(10 * time.Second)
	w.still("a majority made of routers with different lists")
	w.servers["s01"].killed = true
	w.run(10 * time.Second)
	if len(w.changes) != 3 {
		t.Errorf("changes %v, want one at each router: all have the server", w.changes)
	}
}

// TestPlacementsDiffer: routers that make different placements of one list say so.
func TestPlacementsDiffer(t *testing.T) {
	w := newWorld(t, 1, 2, 5, Config{})
	w.routers[1].node.view.Digest++
	w.run(4 * time.Second)
	if w.routers[0].node.Stats().PlacementsDiffer {
		t.Error("alarm before the bound")
	}
	w.run(2 * time.Second)
	if !w.routers[0].node.Stats().PlacementsDiffer {
		t.Error("no alarm for differing placements")
	}
}

func TestListGuards(t *testing.T) {
	w := newWorld(t, 1, 1, 3, Config{})
	n := w.routers[0].node
	before := n.View()
	if n.SetList(nil, w.now) {
		t.Error("an empty list was taken")
	}
	moved := names(3)
	moved[1].Address = "10.9.9.9:11211"
	n.SetList(moved, w.now)
	v := n.View()
	if p, _ := v.Find("s01"); p.Address != "10.9.9.9:11211" {
		t.Errorf("address %s after it changed", p.Address)
	}
	if v.Digest != before.Digest || v.Since != before.Since {
		t.Error("a change of address changed the placement")
	}
	if _, ok := v.Find("s09"); ok {
		t.Error("found a server that is not there")
	}
}

func TestDigest(t *testing.T) {
	a := []Server{{"a", "x", 1}, {"b", "y", 2}}
	f := func(same bool, parameters string, list []Server) {
		t.Helper()
		if got := Digest(parameters, list) == Digest("p", a); got != same {
			t.Errorf("digest of %v with %q the same: %v, want %v", list, parameters, got, same)
		}
	}
	f(true, "p", a)
	f(true, "p", []Server{{"b", "y", 2}, {"a", "x", 1}})
	f(true, "p", []Server{{"a", "elsewhere", 1}, {"b", "y", 2}})
	f(false, "q", a)
	f(false, "p", a[:1])
	f(false, "p", []Server{{"a", "x", 2}, {"b", "y", 2}})
	f(false, "p", []Server{{"ab", "x", 1}, {"", "y", 2}})
}

// TestWrongClock: a router whose clock is wrong votes for nothing, and switches when the
// others do.
func TestWrongClock(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		w := newWorld(t, 1, 3, 5, Config{})
		w.routers[1].clock = off // a jump
		w.run(10 * time.Second)
		if st := w.routers[1].node.Stats(); !st.Abstains || (st.Skew+off).Abs() > time.Second {
			t.Errorf("clock off by %v: %+v", off, st)
		}
		w.servers["s00"].killed = true
		w.until(9*time.Second, "moved", func() bool { return len(w.changes) == 3 })
		if spread := w.changes[2].at - w.changes[0].at; spread > 200*time.Millisecond {
			t.Errorf("clock off by %v: routers switched %v apart", off, spread)
		}
		w.routers[1].clock = 0
		w.run(15 * time.Second)
		if w.routers[1].node.Stats().Abstains {
			t.Error("abstains with its clock set right")
		}
	}
}

// TestSetBackAtRestart: a router that starts again with an earlier clock is believed.
func TestSetBackAtRestart(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	boot := w.now
	w.now = w.now.Add(-time.Hour)
	w.routers[1].node.self.Boot = uint64(boot.UnixMilli()) // as its former self said
	w.now = boot
	r := w.routers[1]
	r.node = New(Config{Router: "r1", Boot: 5}, r.pool, names(5), w.now)
	w.run(10 * time.Second)
	if r.node.self.Boot == 5 {
		t.Fatal("never learnt of its former self")
	}
	if got := w.routers[0].node.Stats().Voters; got != 3 {
		t.Errorf("%d voters, want 3", got)
	}
}

func TestLeavingIsNotVanishing(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	for _, r := range w.routers[1:] {
		r.node.Leave()
		m, _ := r.node.Beat(w.now)
		r.paused = true
		w.routers[0].node.Step(m, w.now)
	}
	w.run(time.Second)
	if st := w.routers[0].node.Stats(); st.Known != 1 || st.Frozen {
		t.Errorf("after the others left: %+v", st)
	}
	w.servers["s00"].killed = true
	w.until(7*time.Second, "moved by the last router", func() bool {
		return w.routers[0].node.status("s00", w.now) == Out
	})
}

// TestTimesOutOfOrder: a tick whose time is a little before that of the one before is no clock that was
// set back.
func TestTimesOutOfOrder(t *testing.T) {
	w := newWorld(t, 1, 1, 3, Config{})
	w.run(20 * time.Second)
	n := w.routers[0].node
	now := n.ticked
	n.Tick(now.Add(-time.Millisecond))
	if n.settle.After(now) {
		t.Errorf("it decides nothing for %v", n.settle.Sub(now))
	}
	n.Tick(now.Add(-time.Minute))
	if !n.settle.After(now.Add(-time.Minute)) {
		t.Error("a clock that was set back is not noticed")
	}
}

// TestPauseOfItsOwn: a node that was stopped, or whose clock was set back, decides nothing
// for a while, whatever its judge says.
func TestPauseOfItsOwn(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n := New(Config{Router: "r", Alone: true}, newJudge(), names(3), now)
	f := func(pause time.Duration, want bool) {
		t.Helper()
		now = now.Add(pause)
		if n.Tick(now); n.Stats().Abstains != want {
			t.Errorf("after a pause of %v: abstains %v, want %v", pause, !want, want)
		}
	}
	f(time.Second, false)
	f(1100*time.Millisecond, true)
	for range 9 {
		f(500*time.Millisecond, true)
	}
	f(500*time.Millisecond, false)
	f(-time.Second, true)
}
