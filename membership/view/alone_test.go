package view

import (
	"testing"
	"time"
)

// TestReturnWhileMostAreDown: a server that answers again is given its keys back although
// most others are down, and nothing else is decided: to a router alone it may be the only
// one that is left.
func TestReturnWhileMostAreDown(t *testing.T) {
	w := newWorld(t, 1, 1, 3, Config{})
	w.blip("s00")
	w.servers["s00"].killed = true
	w.until(10*time.Second, "moved", func() bool { return w.status("s00", Out) })
	w.servers["s01"].killed, w.servers["s02"].killed = true, true
	w.run(5 * time.Second)
	w.servers["s00"].killed = false
	w.until(5*time.Minute, "back", func() bool { return w.status("s00", In) })
	if st := w.routers[0].node.Stats(); !st.Abstains {
		t.Errorf("the router trusts itself: %+v", st)
	}
	if !w.status("s01", In) || !w.status("s02", In) {
		t.Error("one of the servers that are down was decided on")
	}
}

// TestListWhileMostAreDown: a router alone takes over a list although it does not trust
// what it sees: it may be how the operator gets rid of those that are down.
func TestListWhileMostAreDown(t *testing.T) {
	w := newWorld(t, 1, 1, 4, Config{})
	for _, s := range []string{"s00", "s01", "s02"} {
		w.servers[s].killed = true
	}
	w.run(5 * time.Second)
	if st := w.routers[0].node.Stats(); !st.Abstains {
		t.Fatalf("the router trusts itself: %+v", st)
	}
	list := names(4)[3:]
	w.routers[0].node.SetList(list, w.now)
	w.run(time.Second)
	if got := w.routers[0].node.View().placed(); len(got) != 1 || got[0] != list[0] {
		t.Errorf("placed %v", got)
	}
}
