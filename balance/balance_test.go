package balance

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// started returns a balancer as it is before any pick.
func started(t testing.TB, policy string, weights ...int) *Balancer {
	t.Helper()
	c := Default(weights)
	c.Policy, c.Seed = policy, 1
	b := must(t, c)
	for i := range b.servers {
		b.servers[i] = server{weight: int64(weights[i])}
	}
	return b
}

// picks returns the names of n picks among all servers.
func picks(b *Balancer, n int) string {
	var names strings.Builder
	for range n {
		names.WriteByte(byte('a' + b.Pick(upTo(len(b.servers)))))
	}
	return names.String()
}

func TestSmoothWeightedRoundRobinTrace(t *testing.T) {
	b := started(t, WeightedRoundRobin, 5, 1, 1)
	var trace [][3]int64
	for range 7 {
		s := b.servers
		trace = append(trace, [3]int64{s[0].current + 5, s[1].current + 1, s[2].current + 1})
		b.Pick([]int{0, 1, 2})
	}
	want := [][3]int64{{5, 1, 1}, {3, 2, 2}, {1, 3, 3}, {6, -3, 4}, {4, -2, 5}, {9, -1, -1}, {7, 0, 0}}
	if diff := cmp.Diff(want, trace); diff != "" {
		t.Errorf("what is owed before each pick (-want +got):\n%s", diff)
	}
	for i, s := range b.servers {
		if s.current != 0 {
			t.Errorf("server %d is owed %d after a cycle", i, s.current)
		}
	}
}

func TestPicksInTurn(t *testing.T) {
	f := func(policy, want string, weights ...int) {
		t.Helper()
		b := started(t, policy, weights...)
		if got := picks(b, len(want)); got != want {
			t.Errorf("%s picks %s, want %s", policy, got, want)
		}
	}
	f(RoundRobin, "abcabcabc", 1, 1, 1)
	f(WeightedRoundRobin, "aabacaaaabacaa", 5, 1, 1)
	f(EDF, "aaabcaaaaabcaa", 5, 1, 1)
	f(EDF, "abcabc", 1, 1, 1)
	f(EDF, "abaaba", 2, 1) // a at 1/4 and 3/4, b at 1/2
	f(LeastRequest, "abcabc", 1, 1, 1)
}

// In each cycle each server has its weight, in both weighted forms, and is never picked often
// in a row when others wait.
func TestSharesOfEachCycle(t *testing.T) {
	for _, policy := range []string{WeightedRoundRobin, EDF} {
		rapid.Check(t, func(t *rapid.T) {
			weights := rapid.SliceOfN(rapid.IntRange(1, 20), 2, 8).Draw(t, "weights")
			c := Default(weights)
			c.Policy, c.Seed = policy, 1
			b, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for i, w := range weights {
				b.servers[i] = server{weight: int64(w)}
				sum += w
			}
			for cycle := range 3 {
				names := picks(b, sum)
				for i, w := range weights {
					if got := strings.Count(names, string(rune('a'+i))); got != w {
						t.Fatalf("%s, cycle %d: server %d picked %d times in %s, want %d", policy, cycle, i, got, names, w)
					}
				}
			}
		})
	}
}

func TestRoundRobinHitsEachOnce(t *testing.T) {
	b := must(t, withPolicy(RoundRobin, 10))
	names := picks(b, 200)
	for i := range len(names) - 10 {
		window := []byte(names[i : i+10])
		slices.Sort(window)
		if string(window) != "abcdefghij" {
			t.Fatalf("window %d is %s", i, names[i:i+10])
		}
	}
}

func withPolicy(policy string, servers int) Config {
	c := Default(slices.Repeat([]int{1}, servers))
	c.Policy, c.Seed = policy, 1
	return c
}

// Sets of candidates that overlap do not lock step with the order of requests.
func TestRoundRobinOverOverlappingSets(t *testing.T) {
	b := must(t, withPolicy(RoundRobin, 4))
	sets := [][]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}
	count := make([]int, 4)
	for n := range 4000 {
		set := sets[n%4]
		count[set[b.Pick(set)]]++
	}
	for i, n := range count {
		near(t, "picks of server "+string(rune('0'+i)), float64(n), 1000, 2)
	}
}

// Routers do not all begin with the same server.
func TestStartsDiffer(t *testing.T) {
	for _, policy := range []string{RoundRobin, WeightedRoundRobin, EDF, LeastRequest, WeightedLeastRequest, Reported} {
		count := make([]int, 10)
		for seed := range uint64(1000) {
			c := withPolicy(policy, 10)
			c.Seed = seed + 1
			count[must(t, c).Pick(upTo(10))]++
		}
		for i, n := range count {
			near(t, policy+" begins with server "+string(rune('0'+i)), float64(n), 100, 40)
		}
	}
}

// 100 random picks over 10 servers: 10 each, with a standard deviation of 3.
func TestSpreadOfRandom(t *testing.T) {
	b := must(t, withPolicy(Random, 10))
	sum, squares := 0.0, 0.0
	const rounds = 2000
	for range rounds {
		n := float64(strings.Count(picks(b, 100), "a"))
		sum += n
		squares += n * n
	}
	mean := sum / rounds
	near(t, "mean", mean, 10, 0.2)
	near(t, "standard deviation", math.Sqrt(squares/rounds-mean*mean), 3, 0.15)
}

// As many requests as servers, none of which ends: the fullest of 10,000 has 7 when they
// are thrown at random, and 3 or 4 by two choices.
func TestFullestOfTenThousand(t *testing.T) {
	const n = 10_000
	fullest := func(policy string, seed uint64) (most int64) {
		c := withPolicy(policy, n)
		c.Seed = seed
		b := must(t, c)
		all := upTo(n)
		for range n {
			i := b.Pick(all)
			b.Started(i)
			most = max(most, b.servers[i].active)
		}
		return most
	}
	for seed := range uint64(10) {
		if got := fullest(Random, seed+1); got < 6 || got > 9 {
			t.Errorf("at random the fullest has %d, want about 7", got)
		}
		if got := fullest(P2C, seed+1); got < 3 || got > 4 {
			t.Errorf("by two choices the fullest has %d, want about 3", got)
		}
	}
}

// Weighted least request is weight/(active+1)^bias.
func TestWeightedLeastRequest(t *testing.T) {
	f := func(bias float64, active int, want float64, weights ...int) {
		t.Helper()
		b := started(t, WeightedLeastRequest, weights...)
		b.config.Bias = bias
		for range active {
			b.Started(0)
		}
		names := picks(b, 20_000)
		near(t, "share of the first", float64(strings.Count(names, "a"))/20_000, want, 0.001)
	}
	f(1, 0, 1.0/2, 1, 1)
	f(1, 1, 1.0/3, 1, 1)  // 1/2 : 1
	f(2, 1, 1.0/5, 1, 1)  // 1/4 : 1
	f(1, 4, 1.0/2, 5, 1)  // 5/5 : 1
	f(0, 99, 1.0/2, 1, 1) // blind to requests in flight

	b := started(t, WeightedLeastRequest, 5, 1, 1)
	b.config.Bias = 0
	b.Started(0)
	if got, want := picks(b, 14), "aabacaaaabacaa"; got != want {
		t.Errorf("with bias 0 picks are %s, want those of weighted round robin, %s", got, want)
	}
}

// Least request minds weights: (active+1)/weight.
func TestLeastRequestByWeight(t *testing.T) {
	for _, policy := range []string{LeastRequest, P2C} {
		b := started(t, policy, 3, 1)
		for range 80 {
			b.Started(b.Pick([]int{0, 1}))
		}
		near(t, policy+", in flight at weight 3 of 4", float64(b.servers[0].active), 60, 1)
	}
}

// A newcomer with nothing in flight draws everything by least request; two choices cap its share
// at 2/N.
func TestNewcomer(t *testing.T) {
	newcomer := func(policy string) float64 {
		b := must(t, withPolicy(policy, 10))
		for i := range 9 {
			for range 1_000_000 {
				b.Started(i)
			}
		}
		for range 20_000 {
			b.Started(b.Pick(upTo(10)))
		}
		return float64(b.servers[9].active) / 20_000
	}
	near(t, "least request", newcomer(LeastRequest), 1, 0)
	near(t, "two choices", newcomer(P2C), 2.0/10, 0.01)
}

// With reply times, what never replied gets one request and no second until it has.
func TestPeakEWMATriesNewcomerOnce(t *testing.T) {
	b := started(t, PeakEWMA, 1, 1)
	b.Started(0)
	b.Done(0, time.Millisecond, false)
	for n := range 20 {
		p := b.Pick([]int{0, 1})
		if (p == 1) != (n == 0) {
			t.Fatalf("pick %d is server %d", n, p)
		}
		b.Started(p)
	}
}

func TestPeakEWMARisesAtOnceAndDecays(t *testing.T) {
	now := time.Unix(0, 0)
	c := withPolicy(PeakEWMA, 2)
	c.Now = func() time.Time { return now }
	b := must(t, c)
	reply := func(took time.Duration, failed bool, want float64) {
		t.Helper()
		b.Started(0)
		b.Done(0, took, failed)
		near(t, "average in ms", b.servers[0].ewma/1e6, want, 0.01)
	}
	reply(10*time.Millisecond, false, 10)
	reply(time.Second, false, 1000)
	reply(10*time.Millisecond, false, 1000)
	now = now.Add(10 * time.Second)
	reply(10*time.Millisecond, false, 10+990/math.E)
	reply(time.Microsecond, true, 1000)
	reply(3*time.Second, true, 3000)

	now = now.Add(20 * time.Second)
	near(t, "cost of an idle server, ms", b.cost(0, b.now())/1e6, 3000/math.E/math.E, 0.01)
	b.Started(0)
	before := b.cost(0, b.now())
	now = now.Add(time.Hour)
	if after := b.cost(0, b.now()); after != before {
		t.Errorf("a server that owes a reply costs %.0f after an hour, before %.0f", after, before)
	}
}

func TestEqualSeedsPickAlike(t *testing.T) {
	for _, policy := range Policies() {
		if a, b := picks(must(t, withPolicy(policy, 9)), 500), picks(must(t, withPolicy(policy, 9)), 500); a != b {
			t.Errorf("%s differs between two balancers with seed 1", policy)
		}
	}
}

// Every policy picks a candidate, whatever the candidates are and whatever happened.
func TestPicksAreCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Default(rapid.SliceOfN(rapid.IntRange(1, MaxWeight), 1, 10).Draw(t, "weights"))
		c.Policy, c.Seed = rapid.SampledFrom(Policies()).Draw(t, "policy"), rapid.Uint64().Draw(t, "seed")
		b, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 50).Draw(t, "picks") {
			order := rapid.Permutation(upTo(len(c.Weights))).Draw(t, "order")
			candidates := order[:rapid.IntRange(1, len(order)).Draw(t, "n")]
			p := b.Pick(candidates)
			if p < 0 || p >= len(candidates) {
				t.Fatalf("%s picked %d of %d", c.Policy, p, len(candidates))
			}
			b.Started(candidates[p])
			if rapid.Bool().Draw(t, "done") {
				b.Done(candidates[p], time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "took")), rapid.Bool().Draw(t, "failed"))
			}
			b.Report(order[0], Report{rapid.Float64().Draw(t, "qps"), rapid.Float64().Draw(t, "eps"), rapid.Float64().Draw(t, "utilization")})
		}
	})
}

func TestRefusedConfigs(t *testing.T) {
	f := func(reason string, change func(c *Config)) {
		t.Helper()
		c := Default([]int{1, 2, 3})
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("New(%+v) = %v, want an error with %q", c, err, reason)
		}
	}
	f("policies are edf, least_request, p2c,", func(c *Config) { c.Policy = "fastest" })
	f(`by ""`, func(c *Config) { c.Policy = "" })
	f("no servers", func(c *Config) { c.Weights = nil })
	f("server 1 with weight 0", func(c *Config) { c.Weights[1] = 0 })
	f("server 2 with weight 65536", func(c *Config) { c.Weights[2] = 65536 })
	f("bias -1", func(c *Config) { c.Bias = -1 })
	f("bias NaN", func(c *Config) { c.Bias = math.NaN() })
	f("error penalty -1", func(c *Config) { c.ErrorPenalty = -1 })
	f("decay 0s", func(c *Config) { c.Decay = 0 })
	f("error time 0s", func(c *Config) { c.ErrorTime = 0 })
	f("expiry 0s", func(c *Config) { c.Expiry = 0 })
	f("update 0s", func(c *Config) { c.Update = 0 })
	f("blackout -1s", func(c *Config) { c.Blackout = -time.Second })
}
