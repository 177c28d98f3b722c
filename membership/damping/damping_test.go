package damping

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestPenaltyHalves(t *testing.T) {
	c := Config{}.WithDefaults()
	m := Mark{}.Depart(c, 2000, start)
	f := func(after time.Duration, want int) {
		t.Helper()
		if got := m.Value(c, start.Add(after)); got != want {
			t.Errorf("penalty after %v is %d, want %d", after, got, want)
		}
	}
	f(0, 2000)
	f(time.Minute, 1000)
	f(2*time.Minute, 500)
	f(-time.Hour, 2000) // a clock that jumped back forgives nothing
}

func TestTimeToReuse(t *testing.T) {
	c := Config{}.WithDefaults()
	f := func(penalty int, want time.Duration) {
		t.Helper()
		got := Mark{}.Charge(c, penalty, start).Until(c).Sub(start).Round(time.Second)
		if got != want {
			t.Errorf("a penalty of %d keeps out for %v, want %v", penalty, got, want)
		}
	}
	f(1000, 0)
	f(1999, 0)
	f(2000, 85*time.Second)
	f(3000, 120*time.Second)
	f(1e9, 300*time.Second)
}

func TestHoldDoubles(t *testing.T) {
	c := Config{Suppress: 1 << 30}.WithDefaults()
	m, now := Mark{}, start
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		m = m.Depart(c, 0, now)
		if got := m.Until(c).Sub(now); got != want*time.Second {
			t.Errorf("departure %d holds for %v, want %v", m.Flips, got, want*time.Second)
		}
		now = now.Add(time.Minute)
	}
	m = m.Depart(c, 0, now.Add(c.Forget+time.Second))
	if m.Flips != 1 {
		t.Errorf("after a long stay %d departures are remembered, want 1", m.Flips)
	}
}

func TestSuppressedUntilReuse(t *testing.T) {
	c := Config{}.WithDefaults()
	m := Mark{}.Charge(c, 1500, start)
	if m.Holds(c, start) {
		t.Error("kept out below the suppress limit")
	}
	m = m.Charge(c, 600, start)
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {80 * time.Second, true}, {90 * time.Second, false}} {
		if got := m.Holds(c, start.Add(step.after)); got != step.want {
			t.Errorf("kept out %v after the limit: %v, want %v", step.after, got, step.want)
		}
	}
	c.Off = true
	if m.Holds(c, start) || !m.Until(c).Equal(start) {
		t.Error("damping that is off keeps a server out")
	}
}

func TestNeverOutForLongerThanTheLimits(t *testing.T) {
	c := Config{}.WithDefaults()
	rapid.Check(t, func(t *rapid.T) {
		m, now := Mark{}, start
		for range rapid.IntRange(1, 40).Draw(t, "departures") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "gap")))
			m = m.Depart(c, rapid.IntRange(0, 5000).Draw(t, "penalty"), now)
			if out := m.Until(c).Sub(now); out < c.Hold || out > max(c.MaxHold, c.MaxSuppress)+time.Second {
				t.Fatalf("out for %v after %+v", out, m)
			}
		}
	})
}
