package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"cacherouter/balance"
	"cacherouter/loadtest/lab/plot"
)

// balancer returns a balancer of one policy.
func balancer(policy string, seed uint64, weights ...int) (*balance.Balancer, error) {
	c := balance.Default(weights)
	c.Policy, c.Seed = policy, seed
	return balance.New(c)
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// picks returns the servers of n picks among all as letters.
func picks(b *balance.Balancer, servers, n int) string {
	all := upTo(servers)
	var names strings.Builder
	for range n {
		names.WriteByte(byte('a' + b.Pick(all)))
	}
	return names.String()
}

// cycle returns the picks of a cycle that begins as want does, if there is one: balancers begin
// anywhere in it.
func cycle(b *balance.Balancer, servers int, want string) string {
	n := len(want)
	names := picks(b, servers, 2*n)
	if i := strings.Index(names, want); i >= 0 {
		return names[i : i+n]
	}
	return names[:n]
}

func weightedTurns(r *report) error {
	r.compare()
	for _, x := range []struct{ policy, want string }{
		{balance.WeightedRoundRobin, "aabacaa"},
		{balance.EDF, "aaabcaa"},
	} {
		b, err := balancer(x.policy, 1, 5, 1, 1)
		if err != nil {
			return err
		}
		r.exact("a cycle of "+x.policy+" with weights 5, 1, 1", cycle(b, 3, x.want), x.want)
		names := picks(b, 3, 7000)
		counts := []float64{0, 0, 0}
		for i := range counts {
			counts[i] = float64(strings.Count(names, string(rune('a'+i))))
		}
		r.exact("picks of each in 1,000 cycles", fmt.Sprint(counts), "[5000 1000 1000]")
		r.bars(x.policy, "picks", false, []string{"a: 5", "b: 1", "c: 1"}, plot.Series{Name: "1,000 cycles", Y: counts})
	}
	r.note("The source has no order for deadlines, only the shares; the order is ours.")
	return nil
}

func roundRobin(r *report) error {
	turns, err := balancer(balance.RoundRobin, 1, ones(10)...)
	if err != nil {
		return err
	}
	r.compare()
	names := picks(turns, 10, 1000)
	whole := 0
	for i := range len(names) - 9 {
		window := []byte(names[i : i+10])
		slices.Sort(window)
		if string(window) == "abcdefghij" {
			whole++
		}
	}
	r.exact("windows of 10 picks that hit each server once, of 991", fmt.Sprint(whole), "991")
	random, err := balancer(balance.Random, 1, ones(10)...)
	if err != nil {
		return err
	}
	const rounds = 2000
	sum, squares := 0.0, 0.0
	for range rounds {
		n := float64(strings.Count(picks(random, 10, 100), "a"))
		sum, squares = sum+n, squares+float64(n*n)
	}
	mean := sum / rounds
	r.near("standard deviation of a server's share of 100 random picks", "%.2f", math.Sqrt(squares/rounds-float64(mean*mean)), 3, 0.15)
	return startsOf(r)
}

// startsOf counts where a thousand routers begin.
func startsOf(r *report) error {
	first := make([]float64, 10)
	for seed := range uint64(1000) {
		b, err := balancer(balance.RoundRobin, seed+1, ones(10)...)
		if err != nil {
			return err
		}
		first[picks(b, 10, 1)[0]-'a']++
	}
	r.shape("routers of 1,000 that begin with the most popular server", fmt.Sprint(slices.Max(first)), "about 100", slices.Max(first) < 140)
	r.bars("Where 1,000 routers begin", "routers", false, strings.Split("abcdefghij", ""), plot.Series{Name: "first pick", Y: first})
	return nil
}

func weightedLeast(r *report) error {
	r.compare()
	var ours []float64
	var groups []string
	for _, x := range []struct {
		bias          float64
		weight, first int // of the first server, and its requests in flight
		want          float64
	}{{1, 1, 0, 1. / 2}, {1, 1, 1, 1. / 3}, {2, 1, 1, 1. / 5}, {1, 5, 4, 1. / 2}, {0, 1, 99, 1. / 2}, {0, 5, 99, 5. / 6}} {
		c := balance.Default([]int{x.weight, 1})
		c.Policy, c.Bias, c.Seed = balance.WeightedLeastRequest, x.bias, 1
		b, err := balance.New(c)
		if err != nil {
			return err
		}
		for range x.first {
			b.Started(0)
		}
		share := float64(strings.Count(picks(b, 2, 20_000), "a")) / 20_000
		what := fmt.Sprintf("bias %v, weight %d with %d in flight, against 1 with 0", x.bias, x.weight, x.first)
		r.near(what, "%.3f", share, x.want, 0.001)
		ours, groups = append(ours, share), append(groups, fmt.Sprintf("%v, %d, %d", x.bias, x.weight, x.first))
	}
	r.note("The source gives the formula, weight/(active+1)^bias.")
	r.bars("Share of the first of two servers", "share", false, groups, plot.Series{Name: "ours", Y: ours})
	return nil
}

func reportedWeight(r *report) error {
	r.compare()
	f := func(qps, eps, utilization, penalty, want float64) {
		what := fmt.Sprintf("%v requests and %v errors a second at %v, penalty %v", qps, eps, utilization, penalty)
		r.exact(what, fmt.Sprintf("%.2f", balance.Report{QPS: qps, EPS: eps, Utilization: utilization}.Weight(penalty)), fmt.Sprintf("%.2f", want))
	}
	f(1000, 0, 0.5, 1, 2000)
	f(1000, 100, 0.5, 1, 1666.67)
	f(1000, 1000, 0.5, 1, 666.67)
	f(0, 0, 0.5, 1, 0)
	now := time.Unix(0, 0)
	c := balance.Default(ones(4))
	c.Policy, c.Seed, c.Now = balance.Reported, 1, func() time.Time { return now }
	b, err := balance.New(c)
	if err != nil {
		return err
	}
	for server, utilization := range []float64{0.1, 0.2, 0.4} {
		b.Report(server, balance.Report{QPS: 100, Utilization: utilization})
	}
	at := func(s int, want string) {
		now = time.Unix(int64(s), 0)
		names := picks(b, 4, 9000)
		got := make([]float64, 4)
		for i := range got {
			got[i] = math.Round(float64(strings.Count(names, string(rune('a'+i)))) / 100)
		}
		r.exact(fmt.Sprintf("hundreds of 9,000 picks, %d s after the only reports", s), fmt.Sprint(got), want)
	}
	at(9, "[23 23 23 23]")
	at(10, "[40 20 10 20]")
	at(180, "[40 20 10 20]")
	at(182, "[23 23 23 23]")
	r.note("Blackout is 10 s, expiry 3 min, and the fourth, which reports nothing, has the median of the others.")
	r.bars("Picks of servers that report 10 %, 20 %, 40 %, nothing", "of 9", false, []string{"10 %", "20 %", "40 %", "nothing"}, plot.Series{Name: "picks", Y: []float64{4, 2, 1, 2}})
	return nil
}
