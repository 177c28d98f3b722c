package view

import (
	"testing"
	"time"
)

// blip fails a server over and lets it answer again.
func (w *world) blip(name string) {
	w.t.Helper()
	w.servers[name].killed = true
	w.until(5*time.Second, "failed over", func() bool { return w.status(name, Away) })
	w.servers[name].killed = false
}

// TestNotBackBeforeItIsClean: a server does not serve before every router has made good
// what it missed.
func TestNotBackBeforeItIsClean(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.routers[2].noClean = true
	w.blip("s01")
	w.run(20 * time.Second)
	if !w.status("s01", Away) {
		t.Fatal("back although one router could not replay what it missed")
	}
	w.routers[2].noClean = false
	w.until(2*time.Second, "back", func() bool { return w.status("s01", In) })
	for i, r := range w.routers {
		if len(r.flushes) > 0 {
			t.Errorf("router %d emptied the server, replaying was enough", i)
		}
	}
}

// TestNotBackBeforeThoseWithoutAVoteHaveCleanedIt: a router that does not trust itself, or
// has another list, has failed writes over like all others. The server is back when it has
// made them good, or emptied when that takes too long.
func TestNotBackBeforeThoseWithoutAVoteHaveCleanedIt(t *testing.T) {
	f := func(what string, lose func(w *world, r *router)) {
		t.Helper()
		w := newWorld(t, 1, 4, 5, Config{})
		lose(w, w.routers[2])
		w.routers[2].noClean = true
		w.blip("s01")
		if v := w.routers[0].node.Stats().Voters; v != 3 {
			t.Fatalf("%s: %d voters, want 3", what, v)
		}
		w.run(20 * time.Second)
		if !w.status("s01", Away) {
			t.Fatalf("%s: back although it could not replay what the server missed", what)
		}
		w.routers[2].noClean = false
		w.until(2*time.Second, "back", func() bool { return w.status("s01", In) })
		if n := len(w.routers[0].flushes); n > 0 {
			t.Errorf("%s: emptied %d times, replaying was enough", what, n)
		}
	}
	f("a busy router", func(w *world, r *router) { r.starved = true; w.run(time.Second) })
	f("a router with another list", func(w *world, r *router) {
		r.node.SetList(names(6), w.now)
		r.pool.Add("s05", true, w.now)
		w.servers["s05"] = &server{}
		w.run(40 * time.Second)
	})
}

// TestMinorityCannotHoldAServerBack for ever: the others empty it and take it.
func TestMinorityCannotHoldAServerBack(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.routers[2].noClean = true
	w.blip("s01")
	took := w.until(45*time.Second, "back", func() bool { return w.status("s01", In) })
	if took < 30*time.Second {
		t.Errorf("back after %v, before the minority had its time", took)
	}
	if len(w.routers[0].flushes) != 1 || len(w.routers[1].flushes) != 0 {
		t.Errorf("emptied by %v and %v, want by the first router only", w.routers[0].flushes, w.routers[1].flushes)
	}
}

// TestLostJournal: when a router dies or starts again while a server is away, nobody knows
// all that the server missed, so it is emptied.
func TestLostJournal(t *testing.T) {
	f := func(what string, happen func(w *world)) {
		t.Helper()
		w := newWorld(t, 1, 3, 5, Config{})
		w.servers["s01"].killed = true
		w.until(5*time.Second, "failed over", func() bool { return w.status("s01", Away) })
		happen(w)
		w.servers["s01"].killed = false
		w.until(60*time.Second, "back", func() bool { return w.status("s01", In) })
		if len(w.routers[0].flushes) == 0 {
			t.Errorf("%s: the server came back unflushed", what)
		}
	}
	f("a router started again", func(w *world) { w.boot(2, Config{}, 5); w.run(time.Second) })
	f("a router died", func(w *world) { w.routers[2].paused = true; w.run(6 * time.Second) })
	f("the keys were moved", func(w *world) { w.run(8 * time.Second) })
}

// TestDrain moves a server's keys away at all routers; back it comes emptied.
func TestDrain(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.run(time.Second)
	if w.routers[1].node.Drain("nobody", w.now) {
		t.Error("an unknown server can be drained")
	}
	if !w.routers[1].node.Drain("s02", w.now) {
		t.Fatal("cannot drain")
	}
	w.until(4*time.Second, "drained", func() bool { return w.status("s02", Draining) })
	w.until(time.Second, "the server may be stopped", func() bool { return w.routers[0].node.Stats().Agreed })
	if spread := w.changes[len(w.changes)-1].at - w.changes[0].at; spread > 100*time.Millisecond {
		t.Errorf("routers switched %v apart", spread)
	}
	w.run(time.Minute)
	if !w.status("s02", Draining) {
		t.Fatal("a drained server came back by itself")
	}
	if w.routers[1].node.Undrain("s03", w.now) {
		t.Error("a server that does not drain was undrained")
	}
	if !w.routers[0].node.Undrain("s02", w.now) {
		t.Fatal("cannot undrain")
	}
	w.until(10*time.Second, "back", func() bool { return w.status("s02", In) })
	if len(w.routers[0].flushes) == 0 {
		t.Error("back without being emptied")
	}
}

// TestLameDuck: a leaving server may stop once the slowest router has heard of it, and not
// before. Here one router hears nothing for a while.
func TestLameDuck(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.routers[2].group = 1
	w.routers[0].node.Drain("s02", w.now)
	w.run(20 * time.Second)
	if w.routers[0].node.Stats().Agreed {
		t.Fatal("a router that cannot be heard still uses the server")
	}
	w.routers[2].group = 0
	w.until(5*time.Second, "agreed", func() bool { return w.routers[0].node.Stats().Agreed })
	if !w.status("s02", Draining) {
		t.Error("agreed, and a router still uses the server")
	}
}

func TestLastServerCannotBeDrained(t *testing.T) {
	w := newWorld(t, 1, 1, 2, Config{})
	if !w.routers[0].node.Drain("s00", w.now) {
		t.Fatal("cannot drain one of two")
	}
	w.run(3 * time.Second)
	if w.routers[0].node.Drain("s01", w.now) {
		t.Error("the last server can be drained")
	}
}
