//go:build linux

package paired

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

func TestQuantile(t *testing.T) {
	f := func(q, want float64, v ...float64) {
		t.Helper()
		before := slices.Clone(v)
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v of %v is %v, want %v", q, v, got, want)
		}
		if !slices.Equal(before, v) {
			t.Errorf("quantile changed its argument to %v", v)
		}
	}
	f(0.5, 0)
	f(0.5, 7, 7)
	f(0.5, 2, 3, 1, 2)
	f(0.5, 2.5, 4, 1, 3, 2)
	f(0.25, 2, 5, 4, 3, 2, 1)
	f(0.75, 4, 5, 4, 3, 2, 1)
	f(0.25, 1.75, 4, 1, 3, 2)
	f(0, 1, 2, 1)
	f(1, 2, 2, 1)
}

func TestSampleDividesByTheAnsweredRequests(t *testing.T) {
	r := load.Result{
		Counts: load.Counts{Gets: 90, Sets: 30, Unanswered: 20}, Seconds: 2, Rate: 50,
		Latency: load.Latency{P50: 5, P99: 9},
	}
	got := newSample(process.Cost{CPU: time.Millisecond, Switches: 25}, process.Cost{CPU: 2 * time.Millisecond}, r)
	want := Sample{CPU: 10, Load: 0.0005, Switches: 0.25, Rate: 50, P50: 5, P99: 9, Generator: 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachContenderTakesEachTurnEquallyOftenAndAfterEachNeighbour(t *testing.T) {
	for n := 1; n <= 5; n++ {
		seen, after := map[[2]int]int{}, map[[2]int]int{}
		for round := range 2 * n {
			order := Alternate(n, round)
			for turn, who := range order {
				seen[[2]int{turn, who}]++
				if turn > 0 {
					after[[2]int{who, order[turn-1]}]++
				}
			}
		}
		if len(seen) != n*n {
			t.Errorf("%d contenders: turns are %v", n, seen)
		}
		for at, times := range seen {
			if times != 2 {
				t.Errorf("%d contenders: in turn %d was %d, %d times of %d", n, at[0], at[1], times, 2*n)
			}
		}
		for pair, times := range after {
			if back := after[[2]int{pair[1], pair[0]}]; back != times {
				t.Errorf("%d contenders: %d came after %d %d times, and %d times before", n, pair[0], pair[1], times, back)
			}
		}
	}
}

func TestCompareIsOfTheRoundsThatBothHave(t *testing.T) {
	f := func(a, b []float64, want Spread) {
		t.Helper()
		of := make([][]Sample, 2)
		for i, figures := range [][]float64{a, b} {
			for _, x := range figures {
				of[i] = append(of[i], Sample{CPU: x})
			}
		}
		got := Compare(of, func(round []Sample) float64 { return round[0].CPU - round[1].CPU })
		if got != want {
			t.Errorf("%v and %v differ by %+v, want %+v", a, b, got, want)
		}
	}
	f([]float64{5, 9, 4, 8}, []float64{4, 5, 2}, Spread{2, 1.5, 3})
	f([]float64{5}, nil, Spread{})
	if got := Compare(nil, func([]Sample) float64 { return 1 }); got != (Spread{}) {
		t.Errorf("nobody compares as %+v", got)
	}
}

func TestMedianIsOfEachFieldByItself(t *testing.T) {
	got := Median([]Sample{{CPU: 1, P50: 9}, {CPU: 2, P50: 7}, {CPU: 3, P50: 8}})
	if want := (Sample{CPU: 2, P50: 8}); got != want {
		t.Errorf("median is %+v, want %+v", got, want)
	}
}

func TestRunMeasuresAllContendersAndLeavesFailedRoundsOut(t *testing.T) {
	server := memcachedtest.Start(t)
	p := load.DefaultPlan(server.Addr())
	p.Connections, p.Keys = 4, 100
	down := p
	down.Target = memcachedtest.Reserve(t)
	c := Config{Rounds: 8, Duration: 20 * time.Millisecond, Warmup: time.Millisecond}
	good := Contender{"good", p, server.PID()}
	s, err := Run(t.Context(), c, []Contender{good, good})
	if err != nil || len(s.Of[0]) != 8 || len(s.Of[1]) != 8 || len(s.Failed) != 0 {
		t.Errorf("%d and %d samples, failed %v, %v", len(s.Of[0]), len(s.Of[1]), s.Failed, err)
	}
	if m := Median(s.Of[0]); m.CPU <= 0 || m.Rate <= 0 || m.P99 < m.P50 || m.Generator <= 0 {
		t.Errorf("median is %+v", m)
	}
	s, err = Run(t.Context(), c, []Contender{good, {"down", down, server.PID()}})
	if err == nil || len(s.Of[0]) != 0 || len(s.Failed) != 3 {
		t.Errorf("%d samples, failed %v, %v", len(s.Of[0]), s.Failed, err)
	}
}
