package balance

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Two hundred balancers before twenty servers and twenty that are six times slower, at a
// load that the slow half cannot carry its share of. What a balancer sees of a server itself
// is little. When it is told how busy the server is, as Netflix' edge servers tell with each
// response, the slow half's share falls from a half to about 15 % by least request, and
// latencies to less than a third. Of two random choices both are slow ones for 24 % of the
// requests, so choosing of two alone does not get below that.
func TestSlowHalfBeforeManyBalancers(t *testing.T) {
	run := func(policy string, told bool) (share float64, mean, p99 time.Duration) {
		f := newFarm(t, policy, 200, machines(40, func(i int) machine {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			took := 10 * time.Millisecond
			if i >= 20 {
				took *= 6
			}
			return machine{slots: 8, serve: func(time.Duration) (time.Duration, bool) {
				return time.Duration(float64(took) * math.Exp(0.3*r.NormFloat64())), false
			}}
		})...)
		for _, b := range f.balancers {
			if told {
				b.config.InFlight = func(server int) int { return f.servers[server].inside }
			}
		}
		f.poisson(5600) // 140 a server in turn; a slow one does 8/60 ms = 127 at most
		f.run(120_000)
		slow, sum := 0, time.Duration(0)
		for i := range 20 {
			slow += f.sent[20+i]
		}
		for _, took := range f.took {
			sum += took
		}
		share, mean, p99 = float64(slow)/120_000, sum/120_000, f.percentile(.99)
		t.Logf("%-13s told %-5v %4.1f %% to the slow half, mean %v, p99 %v", policy, told, 100*share, mean, p99)
		return share, mean, p99
	}
	turns, meanInTurn, lateInTurn := run(RoundRobin, false)
	near(t, "round robin, share of the slow half", turns, 0.5, 0.01)
	unaware, _, _ := run(P2C, false)
	two, _, _ := run(P2C, true)
	least, mean, late := run(LeastRequest, true)
	near(t, "least request, share of the slow half", least, 0.15, 0.05)
	if floor := 20.0 * 19 / (40 * 39); two < floor-0.01 || two > floor+0.06 || unaware < two+0.1 {
		t.Errorf("two choices: %.3f of the requests go to the slow half when told how busy it is, %.3f when not; want hardly more than %.3f, and far more", two, unaware, floor)
	}
	if meanInTurn < 3*mean || lateInTurn < 3*late {
		t.Errorf("mean %v and p99 %v in turn, %v and %v when told: want a third at most", meanInTurn, lateInTurn, mean, late)
	}
}
