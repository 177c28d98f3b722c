package balance

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A server at 83 % that requests reach at random has 5 of them, rho/(1-rho). Least request
// waits for hardly anything.
func TestQueuesAtRandomAndByLeastRequest(t *testing.T) {
	inside := func(policy string) float64 {
		f := newFarm(t, policy, 1, machines(12, func(i int) machine { return oneByOne(1000, uint64(i)) })...)
		f.poisson(0.83 * 12_000)
		f.run(100_000)
		sum := 0.0
		for i := range f.servers {
			sum += f.inside(i)
		}
		return sum / 12
	}
	atRandom, least, two := inside(Random), inside(LeastRequest), inside(P2C)
	t.Logf("requests at a server: random %.2f, p2c %.2f, least request %.2f", atRandom, two, least)
	near(t, "at random", atRandom, 0.83/0.17, 0.5)
	if least > 1.6 || two > 2.2 || least > two {
		t.Errorf("%.2f requests by least request, %.2f by two choices", least, two)
	}
}

// generations are nine servers that do 1,000 requests a second and three that do 600.
func generations() []machine {
	return machines(12, func(i int) machine {
		if i < 9 {
			return oneByOne(1000, uint64(i))
		}
		return oneByOne(600, uint64(i))
	})
}

// rates returns the requests a second at a new and at an old server of generations, of 9,000.
func rates(f *farm) (young, old float64) {
	for i := range f.servers {
		if i < 9 {
			young += f.share(i) * 9000 / 9
		} else {
			old += f.share(i) * 9000 / 3
		}
	}
	return young, old
}

func TestUnequalServers(t *testing.T) {
	run := func(policy string, balancers int, weighted bool) *farm {
		f := newFarm(t, policy, balancers, generations()...)
		for _, b := range f.balancers {
			for i := range b.servers {
				if b.servers[i].weight = 5; weighted && i >= 9 {
					b.servers[i].weight = 3
				}
			}
		}
		f.poisson(9000)
		f.run(90_000)
		young, old := rates(f)
		t.Logf("%-22s %2d balancers: %3.0f/s = %.0f %% and %3.0f/s = %3.0f %%; %5.2f and %6.1f at a server", policy, balancers, young, young/10, old, old/6, f.inside(0), f.inside(9))
		return f
	}
	f := run(RoundRobin, 1, false)
	young, old := rates(f)
	near(t, "round robin, new servers", young, 750, 0.1)
	near(t, "round robin, old servers", old, 750, 0.1) // 125 % of what they can
	if f.inside(9) < 500 {
		t.Errorf("old servers hold %.0f requests at 125 %%, want ever more", f.inside(9))
	}
	for _, policy := range []string{WeightedRoundRobin, EDF} {
		young, old = rates(run(policy, 1, true))
		near(t, policy+", new servers", young, 833.3, 0.1)
		near(t, policy+", old servers", old, 500, 0.1)
	}
	one := run(LeastRequest, 1, false)
	young, old = rates(one)
	near(t, "least request, new servers", young, 833, 25)
	near(t, "least request, old servers", old, 500, 75)

	// Twenty balancers of 450 requests a second see a twentieth of what is in flight: a
	// quarter of a request at a server of which one balancer would see five.
	many := run(LeastRequest, 20, false)
	youngMany, oldMany := rates(many)
	if oldMany < old+20 || youngMany > young {
		t.Errorf("twenty balancers send old servers %.0f/s, one sends %.0f/s", oldMany, old)
	}
	if many.inside(9) < 3*one.inside(9) {
		t.Errorf("old servers hold %.1f requests with twenty balancers, %.1f with one", many.inside(9), one.inside(9))
	}
}

// At 83 % a server has 5 requests, of which one of twenty balancers sees a quarter: mostly 0,
// sometimes 1, hardly ever 2. A slow server does not stand out from that.
func TestLocalCountsSayLittle(t *testing.T) {
	f := newFarm(t, Random, 20, machines(12, func(i int) machine { return oneByOne(1000, uint64(i)) })...)
	seen := [3]int{} // 0, 1, more
	sum, all := 0, 0
	f.poisson(0.83 * 12_000)
	arrival := f.gap
	f.gap = func() time.Duration {
		for i := range f.servers {
			n := int(f.balancers[0].active(i))
			seen[min(n, 2)]++
			sum += n
			all++
		}
		return arrival()
	}
	f.run(100_000)
	part := func(n int) float64 { return float64(n) / float64(all) }
	t.Logf("0: %.1f %%, 1: %.1f %%, more: %.1f %%, mean %.3f", 100*part(seen[0]), 100*part(seen[1]), 100*part(seen[2]), part(sum))
	near(t, "requests in flight that a balancer sees", part(sum), 0.25, 0.03)
	if !(part(seen[0]) > 0.7 && part(seen[2]) < 0.05) {
		t.Errorf("it sees none in %.3f of all cases, more than one in %.3f", part(seen[0]), part(seen[2]))
	}
}

// Counted together, twenty loops see what one sees.
func TestCountsOfAllLoops(t *testing.T) {
	f := newFarm(t, LeastRequest, 20, generations()...)
	for _, b := range f.balancers {
		b.config.InFlight = func(server int) int { return f.servers[server].inside }
	}
	f.poisson(9000)
	f.run(90_000)
	young, old := rates(f)
	near(t, "new servers", young, 833, 25)
	near(t, "old servers", old, 500, 75)
}

// Eleven servers with a median of 167 ms, of which one takes 2 s for half a minute.
func TestOneServerSlowForAWhile(t *testing.T) {
	slow := func(policy string) float64 {
		f := newFarm(t, policy, 1, machines(11, func(i int) machine {
			r := rand.New(rand.NewPCG(uint64(i), 9))
			return machine{serve: func(now time.Duration) (time.Duration, bool) {
				if i == 3 && now >= 30*time.Second && now < time.Minute {
					return 2 * time.Second, false
				}
				return time.Duration(167e6 * math.Exp(0.3*r.NormFloat64())), false
			}}
		})...)
		f.poisson(1000)
		f.run(90_000)
		late := 0
		for _, took := range f.took {
			if took > time.Second {
				late++
			}
		}
		t.Logf("%-13s p50 %v p95 %v p99 %v p99.9 %v, %d sent to the slow server", policy, f.percentile(.5), f.percentile(.95), f.percentile(.99), f.percentile(.999), f.sent[3])
		return float64(late) / float64(len(f.took))
	}
	turns, least, ewma := slow(RoundRobin), slow(LeastRequest), slow(PeakEWMA)
	t.Logf("above 1 s: %.2f %%, %.2f %%, %.3f %%", 100*turns, 100*least, 100*ewma)
	f := func(policy string, late, good, bad float64) {
		t.Helper()
		if late > 1-good || late < 1-bad {
			t.Errorf("%s: %.3f %% above 1 s, want it good to p%v and not to p%v", policy, 100*late, 100*good, 100*bad)
		}
	}
	f(RoundRobin, turns, 0.95, 0.99)
	f(LeastRequest, least, 0.99, 0.999)
	f(PeakEWMA, ewma, 0.999, 1)
}

// sinkhole returns the share that a server draws which fails within 1 ms, of ten; the others
// take 50 ms.
func sinkhole(t *testing.T, policy string, rate float64) float64 {
	f := newFarm(t, policy, 1, machines(10, func(i int) machine {
		if i == 4 {
			return machine{serve: func(time.Duration) (time.Duration, bool) { return time.Millisecond, true }}
		}
		return constant(0, 50*time.Millisecond)
	})...)
	f.poisson(rate)
	f.run(40_000)
	t.Logf("%-14s %.0f/s: %.1f %% to the server that fails", policy, rate, 100*f.share(4))
	return f.share(4)
}

func TestFastFailures(t *testing.T) {
	// With as many in flight everywhere, a server that is 50 times as fast as nine others has
	// 50 of 59 requests.
	if got := sinkhole(t, LeastRequest, 16_000); got < 0.8 {
		t.Errorf("least request sends %.3f to it, want nearly all", got)
	}
	near(t, "two choices, few in flight", sinkhole(t, P2C, 500), 1-0.9*0.9, 0.01)
	near(t, "two choices", sinkhole(t, P2C, 2000), 1-0.9*0.9, 0.012)
	near(t, "round robin", sinkhole(t, RoundRobin, 2000), 0.1, 0.001)
	if got := sinkhole(t, PeakEWMA, 2000); got > 0.01 {
		t.Errorf("with errors that count as slow it draws %.3f, want next to nothing", got)
	}
}

// Three servers that do 8 at a time in 20 ms, one of which comes to need 300 ms.
func TestOneServerSlow(t *testing.T) {
	f := func(policy string, slowLow, slowHigh int, p99Low, p99High time.Duration) {
		t.Helper()
		f := newFarm(t, policy, 1, constant(8, 20*time.Millisecond), constant(8, 20*time.Millisecond), constant(8, 300*time.Millisecond))
		f.evenly(200)
		f.run(600)
		t.Logf("%-13s %d p50 %v p99 %v", policy, f.sent, f.percentile(.5), f.percentile(.99))
		between(t, policy+" p50", f.percentile(.5), 20*time.Millisecond, 25*time.Millisecond)
		between(t, policy+" p99", f.percentile(.99), p99Low, p99High)
		if f.sent[2] < slowLow || f.sent[2] > slowHigh {
			t.Errorf("%s sends %d to the slow server, want %d to %d", policy, f.sent[2], slowLow, slowHigh)
		}
	}
	f(RoundRobin, 200, 200, 4400*time.Millisecond, 4900*time.Millisecond)
	f(LeastRequest, 10, 50, 300*time.Millisecond, 320*time.Millisecond)
	f(P2C, 10, 60, 300*time.Millisecond, 320*time.Millisecond)
	f(PeakEWMA, 1, 20, 20*time.Millisecond, 320*time.Millisecond)
}

// Nobody checks health here: of three servers the one that died at request 200 gets its third
// of the rest.
func TestDeadServerTakesItsTurns(t *testing.T) {
	errors := func(policy string) int {
		f := newFarm(t, policy, 1, machines(3, func(i int) machine {
			return machine{slots: 8, serve: func(now time.Duration) (time.Duration, bool) {
				if dead := i == 1 && now > time.Second; dead {
					return 0, true
				}
				return 20 * time.Millisecond, false
			}}
		})...)
		f.evenly(200)
		f.run(600)
		return f.failed
	}
	if got := errors(RoundRobin); got < 133 || got > 134 { // 400 by turns among three
		t.Errorf("round robin: %d errors, want 133", got)
	}
	if got := errors(PeakEWMA); got > 5 {
		t.Errorf("peak EWMA: %d errors, want hardly any: an error is a slow reply", got)
	}
}
