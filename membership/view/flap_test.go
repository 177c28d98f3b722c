package view

import (
	"testing"
	"time"

	"cacherouter/membership/damping"
)

// flap makes a server come and go and returns how often the placement changed, in all and
// in the second half.
func flap(t *testing.T, c Config, up, down, total time.Duration) (all, late int) {
	w := newWorld(t, 7, 3, 10, c)
	for range total / (up + down) {
		w.run(up)
		w.servers["s05"].stopped = true
		w.run(down)
		w.servers["s05"].stopped = false
	}
	for _, c := range w.changes {
		if c.router == 0 && c.at > total/2 {
			late++
		}
	}
	if !w.agreed() {
		t.Error("the routers do not agree")
	}
	return w.moves(), late
}

// TestFlapping has the counts of changes of placement for servers that come and go for
// ten minutes, with damping and without.
func TestFlapping(t *testing.T) {
	t.Parallel()
	f := func(up, down time.Duration, undamped, most, mostLate int) {
		t.Helper()
		free := Config{Damping: damping.Config{Off: true}}
		all, _ := flap(t, free, up, down, 10*time.Minute)
		if undamped > 0 && all != undamped {
			t.Errorf("%v up, %v down: %d changes undamped, want %d", up, down, all, undamped)
		}
		damped, late := flap(t, Config{}, up, down, 10*time.Minute)
		t.Logf("%v up, %v down: %d changes undamped, %d damped, %d of them in the second half", up, down, all, damped, late)
		if damped > most || late > mostLate {
			t.Errorf("%v up, %v down: %d changes damped, %d late; want at most %d and %d", up, down, damped, late, most, mostLate)
		}
	}
	f(10*time.Second, 10*time.Second, 59, 12, 3)
	f(20*time.Second, 20*time.Second, 29, 12, 4)
	f(30*time.Second, 6*time.Second, 0, 12, 4)
	f(55*time.Second, 5*time.Second, 0, 12, 4)
}

// TestFlappingFast: a server that flaps every 2 s is moved away from once, not each time,
// and before that its keys do not go to and fro with every flap.
func TestFlappingFast(t *testing.T) {
	f := func(c Config) (w *world) {
		w = newWorld(t, 7, 3, 10, c)
		for range 15 {
			w.run(2 * time.Second)
			w.servers["s05"].killed = true
			w.run(2 * time.Second)
			w.servers["s05"].killed = false
		}
		return w
	}
	w := f(Config{})
	if n := w.moves(); n > 1 {
		t.Errorf("%d changes of placement in a minute of flapping, want at most 1", n)
	}
	free := f(Config{Damping: damping.Config{Off: true}})
	damped, undamped := w.routers[0].node.View().Version, free.routers[0].node.View().Version
	t.Logf("%d decisions, %d undamped", damped, undamped)
	if damped > 12 || undamped < 20 {
		t.Errorf("%d decisions on a server that flaps, %d undamped; want at most 12, and at least 20", damped, undamped)
	}
}

// TestTooLateToCallOff: close to the time at which keys are to move, the others could not
// hear any more that they are not to.
func TestTooLateToCallOff(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := func(left time.Duration, want uint64) {
		t.Helper()
		n := New(Config{Router: "r", Alone: true}, newJudge(), names(5), now)
		d := Decision{Server: "s01", N: 1, Was: Away, Now: Out, At: now.Add(left)}
		n.Step(Message{Decisions: []Decision{d}}, now)
		n.Tick(now)
		if got := n.decisions["s01"].N; got != want {
			t.Errorf("%v before its time: decision %d, want %d", left, got, want)
		}
	}
	f(600*time.Millisecond, 2)
	f(500*time.Millisecond, 2)
	f(499*time.Millisecond, 1)
	f(0, 1)
}
