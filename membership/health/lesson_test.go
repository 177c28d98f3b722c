package health

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// sink simulates ten servers of which the last fails each request in 1 ms while the
// others answer in 50 ms, at 1,000 requests a second, and returns the share of requests
// that the last one drew, per mille, in 20 s.
func sink(choose func(k *clock, busy []int) int) int {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint(i))
	}
	k := newClock(Config{}, true, names...)
	busy, ends := make([]int, 10), map[int][]int{}
	bad := 0
	for ms := range 20000 {
		k.now = k.now.Add(time.Millisecond)
		for _, s := range ends[ms] {
			busy[s]--
			if s == 9 {
				k.refuse(names[s], 1)
			} else {
				k.reply(names[s], 1, 50*time.Millisecond)
			}
		}
		delete(ends, ms)
		if ms%100 == 0 {
			k.Tick(k.now)
		}
		s, took := choose(k, busy), 50
		if s == 9 {
			bad++
			took = 1
		}
		busy[s]++
		ends[ms+took] = append(ends[ms+took], s)
	}
	return bad / 20
}

// TestSinkhole: a server that fails fast has few requests open, so the fewer its open
// requests attract, the more fail. Full least-request gives it nearly everything and two
// choices 1-(9/10)^2 = 19 %; counting failures ends it after three.
func TestSinkhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	least := func(k *clock, busy []int) int {
		best := 9
		for i, n := range busy {
			if n < busy[best] {
				best = i
			}
		}
		return best
	}
	pair := func() (a, b int) {
		a = rng.IntN(10)
		return a, (a + 1 + rng.IntN(9)) % 10
	}
	two := func(k *clock, busy []int) int {
		a, b := pair()
		if busy[b] < busy[a] || busy[b] == busy[a] && b == 9 {
			return b
		}
		return a
	}
	aware := func(k *clock, busy []int) int {
		a, b := pair()
		switch {
		case !k.Usable(fmt.Sprint(a)):
			return b
		case !k.Usable(fmt.Sprint(b)):
			return a
		}
		costA, costB := k.Cost(fmt.Sprint(a))*time.Duration(busy[a]+1), k.Cost(fmt.Sprint(b))*time.Duration(busy[b]+1)
		if costB < costA {
			return b
		}
		return a
	}
	f := func(name string, got, from, to int) {
		t.Helper()
		t.Logf("%s: %d per mille to the failing server", name, got)
		if got < from || got > to {
			t.Errorf("%s: %d per mille to the failing server, want %d to %d", name, got, from, to)
		}
	}
	f("least requests", sink(least), 900, 1000)
	f("two choices", sink(two), 170, 210)
	f("two choices, health and cost", sink(aware), 0, 2)
}

// TestNewcomerIsNotFlooded: under full least-request a newcomer with nothing open draws
// every request until it is as busy as the others; its weight bounds that.
func TestNewcomerIsNotFlooded(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c", "d")
	k.Add("new", false, k.now)
	k.reply("new", 1, time.Millisecond)
	load := map[string]int{"a": 1000, "b": 1000, "c": 1000, "d": 1000}
	names := []string{"a", "b", "c", "d", "new"}
	first := 0
	for range 1000 {
		best, bestLoad := "", 0
		for _, s := range names {
			if l := (load[s] + 1) * 1000 / k.Weight(s, k.now); best == "" || l < bestLoad {
				best, bestLoad = s, l
			}
		}
		load[best]++
		if best == "new" {
			first++
		}
	}
	if first > 150 {
		t.Errorf("the newcomer drew %d of the first 1,000 requests, want about a tenth", first)
	}
	k.pass(45 * time.Second)
	if w := k.Weight("new", k.now); w != 500 {
		t.Errorf("weight halfway %d, want 500", w)
	}
}

// killed simulates three servers asked in turn, 200 requests a second, of which one is
// killed at request 200 of 600, and returns how many fail.
func killed(passive, active bool) int {
	names := []string{"a", "b", "c"}
	k := newClock(Config{Fall: 3, Interval: 500 * time.Millisecond, Fast: 500 * time.Millisecond}, true, names...)
	if !passive {
		k = newClock(Config{Fall: 2}, true, names...)
	}
	errors, turn := 0, 0
	for i := range 600 {
		k.now = k.now.Add(5 * time.Millisecond)
		if i%20 == 0 {
			k.Tick(k.now)
		}
		dead := i >= 200
		if active && i%100 == 99 {
			for _, s := range names {
				k.probed(s, s != "b" || !dead)
			}
		}
		for !k.Usable(names[turn%3]) {
			turn++
		}
		s := names[turn%3]
		turn++
		if s == "b" && dead {
			if errors++; passive {
				k.refuse(s, 1)
			}
			continue
		}
		k.reply(s, 1, 20*time.Millisecond)
	}
	return errors
}

// TestErrorsAfterAKill: requests see a failure at once, probes only in time.
func TestErrorsAfterAKill(t *testing.T) {
	f := func(passive, active bool, from, to int) {
		t.Helper()
		if got := killed(passive, active); got < from || got > to {
			t.Errorf("passive %v, active %v: %d errors, want %d to %d", passive, active, got, from, to)
		}
	}
	f(false, false, 133, 134)
	f(false, true, 33, 67)
	f(true, true, 1, 5)
}

// TestBudgetOfFailures is the passive budget: with four loops reporting each request, a
// killed server costs three requests, wherever they ran.
func TestBudgetOfFailures(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	for i := range 4 {
		if !k.Usable("a") {
			if i != 3 {
				t.Errorf("out after %d failures, want 3", i)
			}
			return
		}
		k.refuse("a", 1)
	}
	t.Error("four failures in a row did not take the server out")
}

// TestEjectionSpeed: with ejection after five errors in a row, those who send a server
// little see little of it. 400 callers at 100 requests a second each over 200 servers, one
// of which dies: each caller for itself needs 10 s and together they lose 2,000 requests,
// callers with 20 servers each lose 200 in 1 s, four routers 20 in a tenth of a second.
func TestEjectionSpeed(t *testing.T) {
	f := func(observers int, perSecond float64, want int, within time.Duration) {
		t.Helper()
		lost, last := 0, time.Duration(0)
		for range observers {
			k := newClock(Config{Fall: 5}, true, "a", "b", "c")
			began := k.now
			for k.Usable("a") {
				k.now = k.now.Add(time.Duration(float64(time.Second) / perSecond))
				k.ticked = k.now // the router runs all the time
				k.refuse("a", 1)
				lost++
			}
			last = max(last, k.now.Sub(began))
		}
		if lost != want || last != within {
			t.Errorf("%d observers lost %d requests in %v, want %d in %v", observers, lost, last, want, within)
		}
	}
	f(400, 0.5, 2000, 10*time.Second)
	f(40, 5, 200, time.Second)
	f(4, 50, 20, 100*time.Millisecond)
}
