package view

import (
	"testing"
	"time"
)

// TestForgottenForGood: routers forget one that vanished at different times, and do not
// remind each other of it; when it speaks again it is known again.
func TestForgottenForGood(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{Forget: 20 * time.Second})
	a, b, c := w.routers[0], w.routers[1], w.routers[2]
	c.paused = true
	w.run(10 * time.Second)
	if !a.node.Forget("r2") || a.node.Forget("r2") || a.node.Forget("r1") || a.node.Forget("nobody") {
		t.Error("a router that vanished is forgotten, and no other")
	}
	a.node.Step(b.node.Full(), w.now)
	if k := a.node.Stats().Known; k != 2 {
		t.Errorf("reminded of a router that was forgotten: %d known", k)
	}
	w.run(11 * time.Second)
	if k := b.node.Stats().Known; k != 2 {
		t.Errorf("%d routers known after one was to be forgotten", k)
	}
	c.paused = false
	w.until(10*time.Second, "all vote again", func() bool {
		return a.node.Stats().Voters == 3 && b.node.Stats().Voters == 3
	})
}

// TestHearsay: a router that others tell of is waited for, but its verdicts do not count
// before it has spoken itself: they may be old.
func TestHearsay(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.routers[2].paused = true
	w.run(30 * time.Second)
	late := New(Config{Router: "late", Boot: 1}, newJudge(), names(5), w.now)
	late.Step(w.routers[0].node.Full(), w.now)
	late.Tick(w.now)
	if st := late.Stats(); st.Known != 4 || st.Present != 2 || st.Voters != 2 {
		t.Errorf("told of two more routers: %+v, want 4 known, and the one that told present", st)
	}
}

// TestOneOfTwoForgotten: of two routers one vanishes. The other decides nothing until it is
// told that this was no partition, and then alone.
func TestOneOfTwoForgotten(t *testing.T) {
	w := newWorld(t, 1, 2, 5, Config{})
	w.routers[1].paused = true
	w.run(6 * time.Second)
	w.servers["s00"].killed = true
	w.run(time.Minute)
	w.still("a router that cannot hear the other")
	if !w.routers[0].node.Forget("r1") {
		t.Fatal("cannot forget a router that vanished")
	}
	w.until(8*time.Second, "moved", func() bool { return w.status("s00", Out) })
	expecting := newWorld(t, 1, 2, 5, Config{Expected: 2})
	expecting.routers[1].paused = true
	expecting.run(6 * time.Second)
	expecting.routers[0].node.Forget("r1")
	expecting.servers["s00"].killed = true
	expecting.run(time.Minute)
	expecting.still("fewer routers than expected")
}
