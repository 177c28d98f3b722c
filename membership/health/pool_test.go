package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// clock is a pool whose time the test moves.
type clock struct {
	*Pool
	now time.Time
}

func newClock(c Config, known bool, servers ...string) *clock {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := &clock{NewPool(c, now), now}
	for _, s := range servers {
		k.Add(s, known, now)
	}
	return k
}

// pass lets time pass in steps of a tenth of a second.
func (k *clock) pass(d time.Duration) {
	for end := k.now.Add(d); k.now.Before(end); {
		k.now = k.now.Add(100 * time.Millisecond)
		k.Tick(k.now)
	}
}

func (k *clock) refuse(server string, n int) {
	k.Observe(server, Observation{Refused: n, Streak: n}, k.now)
}

func (k *clock) reply(server string, n int, latency time.Duration) {
	k.Observe(server, Observation{OK: n, Latency: time.Duration(n) * latency}, k.now)
}

func (k *clock) probed(server string, ok bool) { k.Pool.Probe(server, ok, k.now, k.now) }

func TestFromUpToDownAndBack(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	state := func(want State) {
		t.Helper()
		if got := k.State("a"); got != want {
			t.Errorf("state %v, want %v", got, want)
		}
	}
	state(Up)
	k.refuse("a", 2)
	state(Suspect)
	k.reply("a", 1, time.Millisecond)
	state(Up)
	k.refuse("a", 2)
	k.refuse("a", 1)
	state(Down)
	if k.Usable("a") || k.Reachable("a") || k.Weight("a", k.now) != 0 {
		t.Error("a server that is down is used")
	}
	k.probed("a", true)
	state(Down)
	k.probed("a", true)
	state(Probation)
	k.probed("a", false)
	state(Down)
	k.probed("a", true)
	k.probed("a", true)
	k.probed("a", true)
	state(SlowStart)
	k.pass(90 * time.Second)
	state(Up)
	want := []string{"suspect", "up", "suspect", "down", "probation", "down", "probation", "slow start", "up"}
	var got []string
	for _, c := range k.Changes() {
		got = append(got, c.To.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestStreakEndsAtASuccessWithinABatch(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	k.Observe("a", Observation{OK: 5, Lost: 10, Streak: 2}, k.now)
	if got := k.State("a"); got != Suspect {
		t.Errorf("state %v, want suspect: only two failures came last", got)
	}
	k.Observe("a", Observation{BadReply: 1, Streak: 1}, k.now)
	if got := k.State("a"); got != Down {
		t.Errorf("state %v after the third, want down", got)
	}
}

// TestThen: two reports taken in together have the effect of one after the other.
func TestThen(t *testing.T) {
	report := rapid.Custom(func(t *rapid.T) Observation {
		n := rapid.IntRange(0, 4).Draw(t, "lost")
		return Observation{OK: rapid.IntRange(0, 3).Draw(t, "ok"), Lost: n, Streak: rapid.IntRange(0, n).Draw(t, "streak")}
	})
	rapid.Check(t, func(t *rapid.T) {
		one, two := newClock(Config{}, true, "a"), newClock(Config{}, true, "a")
		o, p := report.Draw(t, "first"), report.Draw(t, "second")
		one.Observe("a", o, one.now)
		one.Observe("a", p, one.now)
		two.Observe("a", o.Then(p), two.now)
		a, b := one.machines["a"], two.machines["a"]
		if a.requests != b.requests || a.state != Down && (a.state != b.state || a.streak != b.streak) {
			t.Fatalf("%v, streak %d apart; %v, streak %d together", a.state, a.streak, b.state, b.streak)
		}
	})
}

// TestProbationTakesOneRequestAtATime: a server that never answered gets one request.
func TestProbationTakesOneRequestAtATime(t *testing.T) {
	k := newClock(Config{}, false, "a", "b", "c")
	first, second := k.Admit("a"), k.Admit("a")
	if !first || second {
		t.Fatalf("a new server takes a first request: %v, and a second: %v", first, second)
	}
	if w := k.Weight("a", k.now); w != 100 {
		t.Errorf("weight in probation %d, want 100", w)
	}
	k.reply("a", 1, time.Millisecond)
	for range 2 {
		if !k.Admit("a") {
			t.Error("a server that has answered is still in probation")
		}
	}
}

// TestRamp has the figures of Envoy's slow start: max(10 %, (elapsed/window)^(1/aggression)).
func TestRamp(t *testing.T) {
	f := func(aggression float64, elapsed time.Duration, want int) {
		t.Helper()
		c := Config{Aggression: aggression}.WithDefaults()
		if got := c.Ramp(elapsed); got != want {
			t.Errorf("weight %v after the start is %d, want %d", elapsed, got, want)
		}
	}
	f(1, -time.Second, 100)
	f(1, 0, 100)
	f(1, 9*time.Second, 100)
	f(1, 45*time.Second, 500)
	f(1, 81*time.Second, 900)
	f(1, 90*time.Second, 1000)
	f(2, 22500*time.Millisecond, 500)
	f(0.5, 45*time.Second, 250)
}

// TestStatisticsDecayToNothing: what was half a minute ago excludes nobody.
func TestStatisticsDecayToNothing(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	k.reply("a", 100, 400*time.Millisecond)
	k.Observe("a", Observation{OK: 100, Lost: 10, Latency: 40 * time.Second}, k.now)
	if k.Cost("a") < 400*time.Millisecond {
		t.Fatalf("cost %v does not count the errors", k.Cost("a"))
	}
	k.pass(30 * time.Second)
	if got := k.Cost("a"); got != 0 {
		t.Errorf("cost after 30 s without requests is %v", got)
	}
}

func TestSlowServerIsSuspectAndStaysInUse(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c", "d")
	for _, s := range []string{"b", "c", "d"} {
		k.reply(s, 100, 10*time.Millisecond)
	}
	k.reply("a", 100, 60*time.Millisecond)
	k.pass(time.Second)
	if k.State("a") != Suspect || !k.Usable("a") {
		t.Errorf("six times slower than the others: %v", k.State("a"))
	}
	if v := k.Verdict("a", k.now); v.Opinion != Fine {
		t.Errorf("a slow server is %v to the others, want fine", v.Opinion)
	}
	k.pass(31 * time.Second)
	if k.State("a") != Up {
		t.Errorf("half a minute later: %v", k.State("a"))
	}
}

func TestTooManyErrorsEjectAFewServers(t *testing.T) {
	servers := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	k := newClock(Config{}, true, servers...)
	for _, s := range servers {
		k.Observe(s, Observation{OK: 40, BadReply: 60}, k.now)
	}
	k.pass(time.Second)
	out := 0
	for _, s := range servers {
		if !k.Usable(s) {
			out++
			if !k.Reachable(s) {
				t.Error("a server that answers with errors counts as unreachable")
			}
		}
	}
	if out != 2 {
		t.Errorf("%d of 10 ejected for errors, want 2", out)
	}
	k.pass(31 * time.Second)
	for _, s := range servers {
		if !k.Usable(s) {
			t.Errorf("%s is still out: %v", s, k.State(s))
		}
	}
}

// TestErrorsOfAnOutageAreForgotten: what failed before a server was given up does not count
// when it answers again.
func TestErrorsOfAnOutageAreForgotten(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	k.refuse("a", 200)
	k.pass(5 * time.Second)
	k.probed("a", true)
	k.probed("a", true)
	k.reply("a", 1, time.Millisecond)
	for range 30 {
		k.reply("a", 5, time.Millisecond)
		k.pass(time.Second)
		if got := k.State("a"); got != SlowStart {
			t.Fatalf("%v after the return: %v", k.now.Sub(time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)), got)
		}
	}
}

func TestVerdicts(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	opinion := func(want Opinion) {
		t.Helper()
		if got := k.Verdict("a", k.now).Opinion; got != want {
			t.Errorf("opinion %v, want %v", got, want)
		}
	}
	opinion(Fine)
	k.refuse("a", 1)
	opinion(Unsure)
	k.refuse("a", 2)
	opinion(Failing)
	k.pass(3 * time.Second)
	opinion(Failing) // no probe has failed
	k.probed("a", false)
	k.probed("a", false)
	opinion(Dead)
	k.probed("a", true)
	opinion(Unsure)
	k.probed("a", true)
	k.probed("a", true)
	opinion(Fine)
}

// TestStoppedRouterTrustsNothing: after a pause of its own it abstains, and what it finds
// overdue is not held against the servers.
func TestStoppedRouterTrustsNothing(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	k.refuse("a", 2)
	k.now = k.now.Add(10 * time.Second)
	k.Observe("a", Observation{TimedOut: 50, Streak: 50}, k.now)
	if k.State("a") == Down || !k.Abstains(k.now) {
		t.Errorf("after a pause: %v, abstains %v", k.State("a"), k.Abstains(k.now))
	}
	k.pass(3 * time.Second)
	if k.Abstains(k.now) {
		t.Error("still abstains when it has run for 3 s")
	}
	k.Lag(90*time.Millisecond, k.now)
	if k.Abstains(k.now) {
		t.Error("abstains for a short turn")
	}
	k.Lag(200*time.Millisecond, k.now)
	if !k.Abstains(k.now) {
		t.Error("a starved loop does not abstain")
	}
}

func TestPanicWhenMostAreDown(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c", "d")
	k.refuse("a", 3)
	k.refuse("b", 3)
	k.pass(time.Second)
	if k.Panics() || k.Abstains(k.now) || k.Usable("a") {
		t.Error("panics with half of the servers left")
	}
	k.refuse("c", 3)
	k.pass(time.Second)
	if !k.Panics() || !k.Abstains(k.now) || !k.Usable("a") {
		t.Error("no panic with a quarter of the servers left")
	}
}

func TestClockThatJumpsBack(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	k.reply("a", 10, time.Millisecond)
	k.now = k.now.Add(-time.Hour)
	k.Tick(k.now)
	if !k.Abstains(k.now) || k.State("a") != Up {
		t.Error("a jump of the clock was taken for news of the servers")
	}
}

// TestAnythingGoes checks what holds whatever is reported: no panic of the program, no
// weight outside its bounds, no request to a server that is down but in a panic, and a
// way back.
func TestAnythingGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newClock(Config{}, false, "a", "b", "c")
		server := rapid.SampledFrom([]string{"a", "b", "c", "unknown"})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := server.Draw(t, "server")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				n := rapid.IntRange(0, 30).Draw(t, "failures")
				k.Observe(s, Observation{OK: rapid.IntRange(0, 30).Draw(t, "ok"), Lost: n, Streak: n}, k.now)
			case 1:
				k.probed(s, rapid.Bool().Draw(t, "answered"))
			case 2:
				k.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "time")) * time.Second / 4)
			case 3:
				k.now = k.now.Add(time.Duration(rapid.IntRange(-20, 20).Draw(t, "jump")) * time.Second)
			}
			if w := k.Weight(s, k.now); w < 0 || w > 1000 || w > 0 != k.Usable(s) {
				t.Fatalf("weight %d, usable %v", w, k.Usable(s))
			}
		}
		for range 150 {
			k.now = k.now.Add(time.Second)
			k.Tick(k.now)
			for _, s := range []string{"a", "b", "c"} {
				k.probed(s, true)
			}
		}
		for _, s := range []string{"a", "b", "c"} {
			if v := k.Verdict(s, k.now); v.Opinion != Fine || k.State(s) != Up {
				t.Fatalf("%s is %v and %v after answering for 150 s", s, k.State(s), v.Opinion)
			}
		}
	})
}

// Whoever reports something read the clock before it waited for others to have reported: time may be a
// little earlier than the last time, which is no clock that was set back.
func TestTimesOutOfOrderVoidNothing(t *testing.T) {
	k := newClock(Config{}, true, "a", "b", "c")
	k.pass(time.Second)
	k.Probe("b", true, k.now, k.now.Add(time.Millisecond))
	k.Tick(k.now)
	k.refuse("a", 2)
	k.Probe("b", true, k.now, k.now.Add(2*time.Millisecond))
	k.refuse("a", 1)
	if k.Abstains(k.now) || k.State("a") != Down {
		t.Errorf("abstains %v, a is %v", k.Abstains(k.now), k.State("a"))
	}
	back := k.now.Add(-time.Minute)
	k.Tick(back)
	if !k.Abstains(back) {
		t.Error("a clock that was set back is not noticed")
	}
}
