package fleet

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The list of a cache is that of the plainest one there could be.
func TestCacheKeepsTheLatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keys = 12
		room := rapid.IntRange(1, keys).Draw(t, "room")
		c := newCache(keys, room)
		var order []int32 // the least recently used first
		forget := func(key int32) {
			order = slices.DeleteFunc(order, func(k int32) bool { return k == key })
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			key := int32(rapid.IntRange(0, keys-1).Draw(t, "key"))
			there := slices.Contains(order, key)
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				if _, ok := c.get(key, 0); ok != there {
					t.Fatalf("get(%d) = %t with %d there", key, ok, order)
				}
				if forget(key); there {
					order = append(order, key)
				}
			case 1:
				c.set(key, 1, 0)
				forget(key)
				order = append(order, key)
				if len(order) > room {
					order = order[1:]
				}
			case 2:
				c.remove(key)
				forget(key)
			}
		}
		for key := range int32(keys) {
			if _, ok := c.get(key, 0); ok != slices.Contains(order, key) {
				t.Fatalf("in the end get(%d) = %t with %d there", key, ok, order)
			}
		}
	})
}

func TestCacheExpiresAndKeepsTheNewer(t *testing.T) {
	c := newCache(2, 2)
	f := func(key int32, now time.Duration, version uint32, ok bool) {
		t.Helper()
		if v, found := c.get(key, now); v != version || found != ok {
			t.Errorf("get(%d) at %v = %d, %t, want %d, %t", key, now, v, found, version, ok)
		}
	}
	c.set(0, 7, 10)
	f(0, 9, 7, true)
	c.set(0, 6, 20) // an older value comes late
	f(0, 9, 7, true)
	f(0, 10, 0, false)
	c.set(0, 8, 0)
	f(0, time.Hour, 8, true)
}

func TestClockIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c clock
		at := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "times")
		for i, n := range at {
			c.set(time.Duration(n), &call{key: int32(i)})
		}
		last := -1
		for do := c.next(100); do != nil; do = c.next(100) {
			i := int(do.key)
			if c.now != time.Duration(at[i]) || last >= 0 && (at[last] > at[i] || at[last] == at[i] && last > i) {
				t.Fatalf("%d at %d comes after %d at %v", i, at[i], last, c.now)
			}
			last = i
		}
		if c.now != 100 {
			t.Fatalf("the clock stands at %v", c.now)
		}
	})
}

// All slots are c times what is in flight, rounded up, however they are divided, and the walk takes the
// first that is free.
func TestWalk(t *testing.T) {
	s := slots{0, 0, 0, 0}
	order := []uint8{2, 0, 3, 1}
	var ranks []int
	for range 9 {
		ranks = append(ranks, s.walk(order))
	}
	// With n in flight there are ceil(1.25 n) slots: 2 3 4 5 7 8 9 10 12. Of 5 the last server has
	// two, of 7 all but the first, of 9 the last has three, and of 10 the second, too.
	if want := []int{0, 1, 2, 2, 0, 1, 2, 3, 0}; !slices.Equal(ranks, want) {
		t.Errorf("ranks %d, want %d; in flight %d", ranks, want, s)
	}
	total := 0
	for _, n := range s {
		total += n
	}
	if total != 9 {
		t.Errorf("%d in flight, want 9", total)
	}
}

func world(t *testing.T) *World {
	t.Helper()
	w, err := NewWorld(8, 5000, 0.99)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func run(t *testing.T, w *World, c Config) Outcome {
	t.Helper()
	c.Depth, c.Floor, c.Cached, c.Seed = 2, 8, 0.6, 1
	c.WarmUp, c.Measured = time.Second, 3*time.Second
	c.Slow, c.Routers = max(1, c.Slow), max(1, c.Routers)
	o, err := Run(w, c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRunsAreEqual(t *testing.T) {
	w := world(t)
	for _, p := range []Policy{None, Hot, Any, Auto, Walk} {
		c := Config{Policy: p, Routers: 3, Load: 0.05, Slow: 10, Writes: 0.02}
		if a, b := run(t, w, c), run(t, w, c); a != b {
			t.Errorf("%s: %+v and then %+v", p, a, b)
		}
	}
}

// Nothing is lost: every get that began after the warm-up ends in one way, and an idle fleet answers in
// the time of the wire and of one request.
func TestIdleFleet(t *testing.T) {
	o := run(t, world(t), Config{Policy: None, Load: 0.005})
	if o.P50 < wire+service-grain || o.P50 > wire+service+grain || o.P99 > wire+2*service+grain {
		t.Errorf("p50 %v, p99 %v of an idle fleet", o.P50, o.P99)
	}
	want := 0.005 * perServer * 8 * 3
	if got := float64(o.Gets); got < 0.9*want || got > 1.1*want {
		t.Errorf("%v gets, want about %v", got, want)
	}
	if o.Failed != 0 || o.Stale != 0 || o.Spilled != 0 || o.Origin > 0.2 || o.Origin < 0.01 {
		t.Errorf("outcome %+v", o)
	}
}

// No policy of ours returns an old value through one router, however much is written; the ring walk,
// which knows no copies, does, and so the test would see one.
func TestOldValues(t *testing.T) {
	w := world(t)
	for _, p := range []Policy{None, Hot, Any, Auto} {
		o := run(t, w, Config{Policy: p, Load: 0.4, Writes: 0.1})
		if o.Stale != 0 {
			t.Errorf("%s: %d old values", p, o.Stale)
		}
		if p != None && (o.Spilled == 0 || o.CopyHits == 0) {
			t.Errorf("%s: %.3f left home, of those %.3f found a copy", p, o.Spilled, o.CopyHits)
		}
	}
	if o := run(t, w, Config{Policy: Walk, Load: 0.4, Writes: 0.1}); o.Stale == 0 {
		t.Error("the ring walk returned no old value")
	}
}
