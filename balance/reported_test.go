package balance

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReportedWeight(t *testing.T) {
	f := func(qps, eps, utilization, penalty, want float64) {
		t.Helper()
		near(t, "weight", Report{qps, eps, utilization}.Weight(penalty), want, 1e-9)
	}
	f(1000, 0, 0.5, 1, 2000)
	f(1000, 100, 0.5, 1, 1000/0.6)
	f(1000, 100, 0.5, 2, 1000/0.7)
	f(1000, 100, 0.5, 0, 2000)
	f(1000, 1000, 0.5, 1, 1000/1.5)
	f(0, 0, 0.5, 1, 0)
	f(1000, 0, 0, 1, 0)
	f(1000, -1, 0.5, 1, 0)
	f(math.NaN(), 0, 0.5, 1, 0)
	f(1000, 0, math.NaN(), 1, 0)
	f(1e300, 0, 1e-300, 1, 0)
}

// reporting is a balancer by reports, and its clock.
type reporting struct {
	*Balancer
	now time.Time
}

func newReporting(t *testing.T, servers int) *reporting {
	r := &reporting{now: time.Unix(0, 0)}
	c := withPolicy(Reported, servers)
	c.Now = func() time.Time { return r.now }
	r.Balancer = must(t, c)
	return r
}

// shares fails unless picks go to servers in these proportions.
func (r *reporting) shares(t *testing.T, want ...float64) {
	t.Helper()
	sum := 0.0
	for _, w := range want {
		sum += w
	}
	const n = 20_000
	names := picks(r.Balancer, n)
	for i, w := range want {
		near(t, "share of "+string(rune('a'+i)), float64(strings.Count(names, string(rune('a'+i))))/n, w/sum, 0.002)
	}
}

func TestReportedBlackoutAndExpiry(t *testing.T) {
	r := newReporting(t, 3)
	all := func(utilization ...float64) {
		for i, u := range utilization {
			if !r.Report(i, Report{QPS: 100, Utilization: u}) {
				t.Fatalf("report of %d refused", i)
			}
		}
	}
	r.shares(t, 1, 1, 1)
	all(0.1, 0.2, 0.4)
	r.now = r.now.Add(9 * time.Second)
	all(0.1, 0.2, 0.4)
	r.shares(t, 1, 1, 1) // blackout
	r.now = r.now.Add(time.Second)
	r.shares(t, 4, 2, 1)
	r.now = r.now.Add(179 * time.Second)
	r.shares(t, 4, 2, 1)
	r.now = r.now.Add(2 * time.Second)
	r.shares(t, 1, 1, 1) // expired
	all(0.1, 0.2, 0.4)
	r.now = r.now.Add(9 * time.Second)
	r.shares(t, 1, 1, 1) // blackout again
	r.now = r.now.Add(time.Second)
	r.shares(t, 4, 2, 1)
}

func TestReportedMissingIsMedian(t *testing.T) {
	r := newReporting(t, 4)
	for i, u := range []float64{0.1, 0.2, 0.4} { // weights 1000, 500, 250
		r.Report(i, Report{QPS: 100, Utilization: u})
	}
	if r.Report(3, Report{QPS: 100}) {
		t.Error("a report without utilization was taken")
	}
	r.now = r.now.Add(10 * time.Second)
	r.shares(t, 4, 2, 1, 2)
	r.now = r.now.Add(100 * time.Second)
	r.Report(1, Report{QPS: 100, Utilization: 0.2})
	r.Report(2, Report{QPS: 100, Utilization: 0.4})
	r.now = r.now.Add(100 * time.Second) // the first has expired; of two, the median is the mean
	r.shares(t, 3, 4, 2, 3)
}

func TestStanding(t *testing.T) {
	r := newReporting(t, 2)
	f := func(after time.Duration, want Standing, name string) {
		t.Helper()
		r.now = r.now.Add(after)
		if got := r.Standing(0); got != want || got.String() != name {
			t.Errorf("standing %s, want %s", got, name)
		}
		if got := r.Standing(1); got != Unheard {
			t.Errorf("standing of a server without reports: %s", got)
		}
	}
	f(0, Unheard, "unheard")
	r.Report(1, Report{QPS: 100})
	r.Report(0, Report{QPS: 100, Utilization: 0.2})
	f(0, Blackout, "blackout")
	f(10*time.Second-1, Blackout, "blackout")
	f(1, Believed, "believed")
	f(170*time.Second, Believed, "believed")
	f(1, Expired, "expired")
	r.Report(0, Report{QPS: 100, Utilization: 0.2})
	f(0, Blackout, "blackout")
	f(10*time.Second, Believed, "believed")
	r.Forget(0)
	f(0, Unheard, "unheard")
	r.Report(0, Report{QPS: 100, Utilization: 0.2})
	f(time.Second, Blackout, "blackout")
}

// A server that says it does nothing, or everything, is still picked, and no more than it can be.
func TestReportedExtremes(t *testing.T) {
	r := newReporting(t, 3)
	r.Report(0, Report{QPS: 1e300, Utilization: 1})
	r.Report(1, Report{QPS: 1, Utilization: 1})
	r.Report(2, Report{QPS: 1e-3, EPS: 1e300, Utilization: 1})
	r.now = r.now.Add(10 * time.Second)
	names := picks(r.Balancer, 10)
	if !strings.Contains(names, "a") {
		t.Errorf("picks %s", names)
	}
	for i := range r.servers {
		if s := r.servers[i].report.share; s < 1 || s > 1000*scale {
			t.Errorf("server %d has share %d", i, s)
		}
	}
}

// Weights are worked out once each Update, not at each pick.
func TestReportedUpdates(t *testing.T) {
	r := newReporting(t, 2)
	report := func(u ...float64) {
		for i := range u {
			r.Report(i, Report{QPS: 100, Utilization: u[i]})
		}
	}
	report(0.1, 0.3)
	r.now = r.now.Add(10 * time.Second)
	r.shares(t, 3, 1)
	report(0.3, 0.1)
	r.now = r.now.Add(999 * time.Millisecond)
	r.shares(t, 3, 1)
	r.now = r.now.Add(time.Millisecond)
	r.shares(t, 1, 3)
}

func TestPoliciesAreListed(t *testing.T) {
	want := []string{EDF, LeastRequest, P2C, PeakEWMA, Random, Reported, RoundRobin, WeightedLeastRequest, WeightedRoundRobin}
	if got := Policies(); !slices.Equal(got, want) {
		t.Errorf("Policies = %s, want %s", got, want)
	}
}
