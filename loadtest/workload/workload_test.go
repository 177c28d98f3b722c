package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestZipfHasTheSharesOfItsClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]float64{0, 0.3, 0.735, 0.99, 1, 1.01, 1.2, 2, 4}).Draw(t, "s")
		n := rapid.IntRange(1, 2000).Draw(t, "n")
		z, rng := NewZipf(s, n), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		const draws = 20_000
		seen, sum := make([]int, n+1), 0.0
		for range draws {
			seen[z.Draw(rng)]++
		}
		for i := 1; i <= n; i++ {
			sum += math.Pow(float64(i), -s)
		}
		upTo := 0.0 // the distance of Kolmogorov and Smirnov, which is under 2.2/sqrt(draws) but for once in 10,000
		got, worst := 0, 0.0
		for i := 1; i <= n; i++ {
			upTo += math.Pow(float64(i), -s) / sum
			got += seen[i]
			worst = max(worst, math.Abs(upTo-float64(got)/draws))
		}
		if worst > 3/math.Sqrt(draws) {
			t.Fatalf("zipf:%v of %d is off by %.4f", s, n, worst)
		}
	})
}

func choose(t *testing.T, c Choice, n, draws int, at time.Duration) []int {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	next, seen := c.Chooser(n, rand.New(rand.NewPCG(1, 2)), 0, 1), make([]int, n)
	for range draws {
		seen[next(at)]++
	}
	return seen
}

func TestChoicesKeepTheirShares(t *testing.T) {
	near := func(what string, got int, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 6*math.Sqrt(want)+1 {
			t.Errorf("%s: %d draws, want about %.0f", what, got, want)
		}
	}
	for _, c := range []Choice{"", "uniform"} {
		for _, got := range choose(t, c, 10, 100_000, 0) {
			near(string(c), got, 10_000)
		}
	}
	if seen := choose(t, "sequential", 10, 25, 0); slices.Min(seen) != 2 || slices.Max(seen) != 3 {
		t.Errorf("sequential: %v", seen)
	}
	// Two keys of ten get half, and their part of the other half.
	for at, first := range map[time.Duration]int{0: 0, 4999 * time.Millisecond: 0, 5 * time.Second: 2, 24 * time.Second: 8, 25 * time.Second: 0} {
		for i, got := range choose(t, "hotspot:0.5:2:5", 10, 100_000, at) {
			want := 5000.0
			if i == first || i == first+1 {
				want += 25_000
			}
			near("hotspot after "+at.String(), got, want)
		}
	}
}

func TestSequentialPartsVisitEachKeyInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts, rounds := rapid.IntRange(1, 5).Draw(t, "parts"), 3
		n := parts * rapid.IntRange(1, 20).Draw(t, "keys of a part")
		seen := make([]int, n)
		for part := range parts {
			next := Choice("sequential").Chooser(n, nil, part, parts)
			for range rounds * n / parts {
				seen[next(0)]++
			}
		}
		if slices.Min(seen) != rounds || slices.Max(seen) != rounds {
			t.Fatalf("%v", seen)
		}
	})
}

// The means and medians are the closed forms of the distributions.
func TestSizesHaveTheMeanAndTheMedianOfTheirClosedForm(t *testing.T) {
	const n = 400_000
	f := func(s Sizes, mean, median, sigmaOfMean float64) {
		t.Helper()
		all, sum := s.Lay(n, 0, math.MaxInt32), 0.0
		for _, size := range all {
			sum += float64(size) + 0.5 // what rounding down takes away
		}
		slices.Sort(all)
		if got := sum / n; math.Abs(got-mean) > 5*sigmaOfMean/math.Sqrt(n)+0.01 {
			t.Errorf("%s: the mean is %.2f, want %.2f", s, got, mean)
		}
		if got := float64(all[n/2]); math.Abs(got-median) > 0.02*median+1 {
			t.Errorf("%s: the median is %.0f, want %.1f", s, got, median)
		}
	}
	const k, gevShape = 0.2, 0.078688
	f("uniform:10:109", 60, 60, 29)
	f("exponential:300", 300, 300*math.Ln2, 300)
	f("pareto:5:200:0.2", 5+200/(1-k), 5+200*(math.Pow(2, k)-1)/k, 330)
	f("pareto:5:200:0", 205, 5+200*math.Ln2, 200)
	f("gev:30.7984:8.20449:0.078688", 30.7984+8.20449*(math.Gamma(1-gevShape)-1)/gevShape,
		30.7984+8.20449*(math.Pow(math.Ln2, -gevShape)-1)/gevShape, 12)
	f("gev:30:8:0", 30+8*0.577215664901532, 30-8*math.Log(math.Ln2), 11)
}

func TestQuantilesInvertTheDistributionFunctions(t *testing.T) {
	quantile := func(s Sizes) func(float64) float64 {
		q, err := s.Quantiles()
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	pareto, gev := quantile("pareto:15:214.476:0.348238"), quantile("gev:30.7984:8.20449:0.078688")
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Float64Range(0.001, 0.999).Draw(t, "u")
		if got := 1 - math.Pow(1+0.348238*(pareto(u)-15)/214.476, -1/0.348238); math.Abs(got-u) > 1e-9 {
			t.Errorf("pareto: %v comes back as %v", u, got)
		}
		if got := math.Exp(-math.Pow(1+0.078688*(gev(u)-30.7984)/8.20449, -1/0.078688)); math.Abs(got-u) > 1e-9 {
			t.Errorf("gev: %v comes back as %v", u, got)
		}
	})
}

func TestValuesOfETCFollowTheTableAndThePareto(t *testing.T) {
	const n = 400_000
	all, short := Sizes("etc").Lay(n, 0, 1<<20), [15]int{}
	long := 0
	for _, size := range all {
		if size < 15 {
			short[size]++
		} else if size >= 15+500 {
			long++
		}
	}
	sum := 0.0
	for size, share := range etcShort {
		sum += share
		if got := float64(short[size]) / n; math.Abs(got-share) > 0.003 {
			t.Errorf("%.4f of the values have %d bytes, want %.4f", got, size, share)
		}
	}
	want := (1 - sum) * math.Pow(1+etcShape*500/etcScale, -1/etcShape)
	if got := float64(long) / n; math.Abs(got-want) > 0.003 {
		t.Errorf("%.4f have 515 bytes or more, want %.4f", got, want)
	}
}

func TestSizesStayWithinTheirBounds(t *testing.T) {
	for _, s := range []Sizes{"7", "pareto:0:100:3", "gev:0:100:2", "exponential:1e9", "uniform:0:5"} {
		for _, size := range s.Lay(10_000, 11, 250) {
			if size < 11 || size > 250 {
				t.Fatalf("%s: %d", s, size)
			}
		}
	}
}

func TestLivesKeepTheirShares(t *testing.T) {
	next, seen := Lives("60s:1,1h:3").Chooser(rand.New(rand.NewPCG(1, 2))), map[uint32]int{}
	for range 100_000 {
		seen[next()]++
	}
	if len(seen) != 2 || math.Abs(float64(seen[60])-25_000) > 1000 {
		t.Errorf("%v", seen)
	}
	for lives, want := range map[Lives]uint32{"": 0, "0s": 0, "90s": 90, "2h": 7200} {
		if got := lives.Chooser(nil)(); got != want {
			t.Errorf("%q is %d seconds, want %d", lives, got, want)
		}
	}
}

func TestWordsThatMeanNothing(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	for _, c := range []Choice{"zipf", "zipf:x", "zipf:-1", "zipf:11", "zipf:NaN", "zipf:1:2", "often", "hotspot:2:1:1", "hotspot:0.5:0:1", "hotspot:0.5:1:0", "sequential:1"} {
		f(c.Validate(), `"`+string(c))
	}
	for _, s := range []Sizes{"", "-1", "big", "gev:1:2", "pareto:0:0:1", "uniform:5:1", "uniform:-1:1", "etc:1"} {
		f(s.Validate(), `"`+string(s)+`"`)
	}
	for _, l := range []Lives{"1", "1500ms", "-1s", "721h", "1h:x", "1h:0", "1h,"} {
		if l == "1h," { // for an hour, or for ever
			if l.Validate() != nil {
				t.Error(l.Validate())
			}
			continue
		}
		f(l.Validate(), string(l))
	}
	var r Ratio
	for _, text := range []string{"1to10", "0:0", "1", "1:-1", "1:2:3:4", "a:b"} {
		f(r.UnmarshalText([]byte(text)), `"`+text+`"`)
	}
	_, err := Find("nosuch")
	f(err, "etc, twitter4")
}

func TestPublishedMixesAreUsable(t *testing.T) {
	for _, m := range Mixes() {
		for _, err := range []error{m.Key.Validate(), m.Value.Validate(), m.Choice.Validate(), m.Lives.Validate()} {
			if err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
		if found, err := Find(m.Name); err != nil || found.About != m.About || m.Ratio.Gets == 0 || m.Missing == "" {
			t.Errorf("%s: %+v, %v", m.Name, found, err)
		}
		text, _ := m.Ratio.MarshalText()
		var again Ratio
		if err := again.UnmarshalText(text); err != nil || again != m.Ratio {
			t.Errorf("%s: %s comes back as %v, %v", m.Name, text, again, err)
		}
	}
}
