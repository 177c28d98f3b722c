package bounded

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
)

var (
	simRequests = flag.Int("sim", 20_000, "requests of each simulated row")
	simSeed     = flag.Uint64("seed", 1, "seed of the simulated rows")
)

// The tests of this file simulate 20 servers and keys by Zipf's law. Given with each is what
// another simulation of 400,000 requests found; homes are drawn anew here, so that shares of requests that
// leave home differ by some points, and the bounds do not.

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s %.3f, want %.3f +- %.3f", what, got, want, tolerance)
	}
}

// row runs a lab and logs its row.
func row(t *testing.T, l lab) outcome {
	t.Helper()
	l.seed = *simSeed
	o := l.run(t, *simRequests)
	t.Logf("zipf %.1f load %4.1f c %.2f floor %d depth %2d routers %2d: peak %5.2f p99.9 %5.2f spilled %5.1f %% forced %4.1f %% copies %.2f",
		l.zipf, l.load, float64(l.bound.PerMille)/1000, l.bound.Floor, l.bound.Depth, max(1, l.routers), o.peak, o.p999, 100*o.spilled, 100*o.forced, o.copies)
	if o.violations != 0 {
		t.Errorf("%d requests above the bound", o.violations)
	}
	return o
}

// paper is the bound without our floor and depth.
func paper(perMille int) Config {
	return Config{PerMille: perMille, Floor: 1, Depth: simServers - 1}
}

func TestBoundByFactor(t *testing.T) {
	f := func(load float64, perMille int, peak, spilled float64) {
		t.Helper()
		o := row(t, lab{zipf: 1, load: load, bound: paper(perMille)})
		near(t, "fullest by the mean", o.peak, peak, 0.006)
		near(t, "spilled, %", 100*o.spilled, spilled, 5)
		if o.forced != 0 {
			t.Errorf("%.3f %% found all servers full", 100*o.forced)
		}
	}
	// With half a request in flight per server the bound is one request whatever c is: the
	// ceiling rules, and half of all requests leave home.
	f(0.5, 1100, 2, 52.5)
	f(0.5, 1250, 2, 52.5)
	f(0.5, 1500, 2, 52.5)
	f(0.5, 2000, 4, 12.1)
	f(2, 1100, 1.5, 40.6)
	f(2, 1250, 1.5, 40.6)
	f(2, 1500, 2, 19.4)
	f(2, 2000, 2.5, 10.1)
	f(8, 1100, 1.125, 49.1)
	f(8, 1250, 1.375, 24.0)
	f(8, 1500, 1.625, 14.8)
	f(8, 2000, 2.125, 6.9)
	f(32, 1100, 1.125, 29.1)
	f(32, 1250, 1.281, 18.7)
	f(32, 1500, 1.531, 12.1)
	f(32, 2000, 2.031, 5.6)
}

func TestNoBound(t *testing.T) {
	f := func(load, peak float64) {
		t.Helper()
		o := row(t, lab{zipf: 1, load: load})
		if o.peak < peak || o.spilled != 0 {
			t.Errorf("without a bound the fullest has %.2f times the mean, and %.3f left home", o.peak, o.spilled)
		}
	}
	f(0.5, 8) // 16 there
	f(2, 4)   // 7.5
	f(8, 3)   // 5
	f(32, 2)  // 3.7
}

// The floor is what keeps requests at home when few are in flight.
func TestFloor(t *testing.T) {
	f := func(floor int, load, p999, spilled, tolerance float64) {
		t.Helper()
		c := paper(1250)
		c.Floor = floor
		o := row(t, lab{zipf: 1, load: load, bound: c})
		near(t, "spilled, %", 100*o.spilled, spilled, tolerance)
		if o.peak > max(float64(floor), math.Ceil(1.25*(load*simServers+1)/simServers))/load {
			t.Errorf("fullest by the mean %.2f", o.peak)
		}
		if o.p999 > p999+0.01 {
			t.Errorf("99.9th percentile of the fullest by the mean %.2f, want at most %.2f", o.p999, p999)
		}
	}
	f(1, 0.5, 2, 52.5, 5)
	f(2, 0.5, 4, 12.1, 4)
	f(4, 0.5, 8, 0.6, 0.4)
	f(8, 0.5, 12, 0, 0.01)
	f(2, 2, 1.5, 40.6, 5)
	f(4, 2, 2, 19.4, 5)
	f(8, 2, 4, 1.7, 1.2)
	f(2, 8, 1.375, 24, 5)
	f(4, 8, 1.375, 24, 5)
	f(8, 8, 1.375, 24, 5)
}

// With less depth the home takes what nobody else may, and goes above the bound.
func TestDepth(t *testing.T) {
	previous := outcome{peak: 99}
	for depth, there := range map[int]float64{1: 3, 2: 2.25, 3: 1.88} {
		o := row(t, lab{zipf: 1, load: 8, bound: Config{PerMille: 1250, Floor: 1, Depth: depth}})
		near(t, fmt.Sprintf("fullest by the mean at depth %d", depth), o.p999, there, 0.6)
	}
	for depth := range 5 {
		o := row(t, lab{zipf: 1, load: 8, bound: Config{PerMille: 1250, Floor: 1, Depth: depth}})
		if o.peak >= previous.peak || o.forced >= previous.forced && depth > 0 {
			t.Errorf("depth %d: fullest %.2f with %.3f forced, one less: %.2f with %.3f", depth, o.peak, o.forced, previous.peak, previous.forced)
		}
		previous = o
	}
}

func TestSkew(t *testing.T) {
	for zipf, spilled := range map[float64]float64{0.8: 14.3, 1.0: 24, 1.2: 39.6} {
		o := row(t, lab{zipf: zipf, load: 8, bound: paper(1250)})
		near(t, "fullest by the mean", o.peak, 1.375, 0.001)
		near(t, fmt.Sprintf("spilled at Zipf %.1f, %%", zipf), 100*o.spilled, spilled, 6)
	}
}

// Routers that each bound what they see add up to c + (c+n)R/T times the mean.
func TestManyRouters(t *testing.T) {
	f := func(routers int, load, peak, spilled float64) {
		t.Helper()
		o := row(t, lab{zipf: 1, load: load, routers: routers, bound: paper(1250)})
		limit := 1.25 + (1.25+simServers)*float64(routers)/(load*simServers)
		if o.peak > limit {
			t.Errorf("%d routers: fullest by the mean %.2f, above %.2f", routers, o.peak, limit)
		}
		near(t, "99.9th percentile of the fullest", o.p999, peak, 0.3+peak/10)
		near(t, "spilled, %", 100*o.spilled, spilled, 5)
	}
	f(1, 8, 1.375, 24)
	f(1, 32, 1.28, 18.7)
	f(4, 2, 2.5, 50.6)
	f(4, 8, 1.75, 39.4)
	f(4, 32, 1.38, 27.1)
	f(16, 8, 2, 49.1)
	f(16, 32, 1.53, 38.9)
	f(64, 32, 1.69, 48.8)
}

// Twenty routers with c = 1.25 each keep the servers within 1.25 times the mean of all when their
// keys are evenly mixed. Otherwise each may be above by less than a request, so the sum is at most
// c + (c+n)R/T whatever the mixes. It comes near when all have the same server in excess; what
// differs between routers cancels out.
func TestRoutersWithUnequalMixes(t *testing.T) {
	const routers, servers, c = 20, 10, 1.25
	f := func(each int, mix string, home func(router, n int) int, want float64) {
		t.Helper()
		inFlight := make([]int, servers)
		for router := range routers {
			b := must(t, Config{Weights: equal(servers), PerMille: 1000 * c, Floor: 1, Depth: servers - 1})
			for n := range each {
				candidates := upTo(servers)
				for i := range candidates {
					candidates[i] = (i + home(router, n)) % servers
				}
				rank, within := b.Take(candidates, 0, 1)
				if !within {
					t.Fatalf("router %d: all full with %d in flight", router, b.Total()-1)
				}
				inFlight[candidates[rank]]++
			}
		}
		total := float64(routers * each)
		got := float64(slices.Max(inFlight)*servers) / total
		if limit := c + (c+servers)*routers/total; got > limit || math.Abs(got-want) > 0.0005 {
			t.Errorf("%s mix, %d in flight at each router: fullest by the mean %.3f, want %.3f, and at most %.3f", mix, each, got, want, limit)
		}
	}
	even := func(_, n int) int { return n % servers }
	sameHome := func(_, _ int) int { return 0 }
	ownHome := func(router, _ int) int { return router % servers }
	f(5, "even", even, 2) // no bound can be kept: half of the servers have nothing to do
	f(10, "even", even, 1)
	f(40, "even", even, 1)
	f(5, "same home", sameHome, 2)
	f(10, "same home", sameHome, 2)
	f(40, "same home", sameHome, 1.25)
	f(400, "same home", sameHome, 1.25)
	f(10, "own home", ownHome, 1)
	f(40, "own home", ownHome, 1)
}

// When a router has fewer in flight than there are servers, its bound protects nobody.
func TestTooManyRouters(t *testing.T) {
	none := row(t, lab{zipf: 1, load: 2})
	many := row(t, lab{zipf: 1, load: 2, routers: 64, bound: paper(1250)})
	if many.p999 < 0.75*none.p999 {
		t.Errorf("fullest by the mean %.2f with 64 routers, %.2f without a bound", many.p999, none.p999)
	}
}

// What Default gives leaves quiet pools alone and still bounds busy ones.
func TestDefaultBound(t *testing.T) {
	c := Default(equal(simServers))
	if o := row(t, lab{zipf: 1, load: 0.5, bound: c}); o.spilled >= 0.01 {
		t.Errorf("%.3f spilled with half a request in flight per server", o.spilled)
	}
	none := row(t, lab{zipf: 1, load: 32})
	o := row(t, lab{zipf: 1, load: 32, bound: c})
	if o.p999 > 0.75*none.p999 {
		t.Errorf("fullest by the mean %.2f, without a bound %.2f", o.p999, none.p999)
	}
}
