//go:build linux

package scenario

import (
	"math"
	"testing"
	"time"

	"cacherouter/loadtest/toll"
)

// lighter is what a busy machine can do, watched by the race detector. No more can be in flight than
// there are workers, however slow that is.
var lighter = toil{rate: 300, workers: 24, service: 50 * time.Millisecond, timeout: 5 * time.Second, length: 3 * time.Second}

func TestASlowServerIsSparedByTheBound(t *testing.T) {
	s := onStage(t)
	x, err := s.strain(spillLow, -1, lighter)
	s.must(t, err)
	t.Logf("%s\n%s", x, x.bounds())
	if got, may := x.mostLetIn(), spillLow.bound(lighter.workers-1); got == 0 || got > may {
		t.Errorf("the slow server let %d reads in at a time, it may %d", got, may)
	}
	if x.spilled == 0 || x.told == 0 || x.done == 0 {
		t.Errorf("%d of %d requests spilled, the routers tell of %.2f in flight", x.spilled, x.done, x.told)
	}
	if x.stale != 0 || x.hits < 0.99 {
		t.Errorf("%d stale, hits %.4f", x.stale, x.hits)
	}
}

func TestTheRingWalkServesOldValues(t *testing.T) {
	s := onStage(t)
	x, err := s.strain(walking, -1, lighter)
	s.must(t, err)
	t.Log(x)
	if x.stale == 0 || x.oldest == 0 {
		t.Errorf("%d stale, the stalest for %v: the check would find nothing", x.stale, x.oldest)
	}
}

func TestBoundOfAGuard(t *testing.T) {
	f := func(routers, floor, all, want int) {
		t.Helper()
		if got := guardOf("", routers, "any", floor).bound(all); got != want {
			t.Errorf("%d routers with floor %d, %d in flight: %d, want %d", routers, floor, all, got, want)
		}
	}
	f(1, 1, 0, 1)
	f(1, 8, 0, 8)
	f(1, 1, 31, 5) // 1.25 * 32/8
	f(1, 1, 32, 6)
	f(1, 8, 63, 10)
	f(3, 1, 0, 3)
	f(3, 1, 93, 17) // 15 for all of them, and 1 for each that has none
}

func TestWhatIsForcedIsNotHeldAgainstTheBound(t *testing.T) {
	seen := func(here, all toll.Counts) []toll.Seen {
		return []toll.Seen{{Spells: map[toll.State]time.Duration{{Here: here, All: all}: time.Second}}}
	}
	x := &strain{
		guard: spillLow,
		seen:  seen(toll.Counts{5, 1, 3, 5}, toll.Counts{20, 2, 8, 9}),
		pure:  seen(toll.Counts{5, 0, 3, 5}, toll.Counts{31, 0, 1, 9}),
	}
	bound, home := x.allowed()
	for what, figures := range map[string][2]float64{
		"peak":      {x.peak(), 9 * 8.0 / 30},
		"bound":     {bound, 5 * 8.0 / 30},
		"home":      {home, 4 * 8.0 / 30},
		"mostLetIn": {float64(x.mostLetIn()), 5},
		"mayLetIn":  {float64(x.mayLetIn()), 6},
	} {
		if math.Abs(figures[0]-figures[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, figures[0], figures[1])
		}
	}
}

func TestMedianIsTheServerNearestToTheMean(t *testing.T) {
	var seen []toll.Seen
	for _, n := range []int{10, 50, 27, 20} {
		seen = append(seen, toll.Seen{Came: toll.Counts{n - 1, 1}})
	}
	if got := median(seen); got != 2 {
		t.Errorf("server %d, want 2 of 27 requests; the mean is 26.75", got)
	}
}

func TestKindsOfRequests(t *testing.T) {
	f := func(before, line string, want int) {
		t.Helper()
		if got := kindOf([]byte(before), []byte(line)); got != want {
			t.Errorf("%q after %q is of kind %d, want %d", line, before, got, want)
		}
	}
	f("", "get ab\r\n", reads)
	f("mg abc t\r\n", "get ab\r\n", reads)
	f("get ab\r\n", "get ab\r\n", reads)
	f("mg ab t\r\n", "get ab\r\n", fetches)
	f("mg ab t\r\n", "set ab 0 0 3\r\n", writes)
	f("", "mg ab t\r\n", errands)
	f("", "add ab 0 10 3\r\n", errands)
	f("", "delete ab\r\n", errands)
}
