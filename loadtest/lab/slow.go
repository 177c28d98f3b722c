package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"cacherouter/balance"
	"cacherouter/loadtest/lab/farm"
	"cacherouter/loadtest/lab/plot"
)

// generation is what became of 9,000 requests a second to nine servers that do 1,000 and three that do 600.
type generation struct {
	young, old  float64 // requests a second at one of each
	queue       float64 // at an old one
	description string
}

func unequal(policy string, balancers int, weights []int) (g generation, err error) {
	machines := farm.Machines(12, func(i int) farm.Machine {
		if i < 9 {
			return farm.OneByOne(1000, uint64(i))
		}
		return farm.OneByOne(600, uint64(i))
	})
	o, err := farm.Run(farm.Config{Policy: policy, Balancers: balancers, Weights: weights, Machines: machines, Requests: 90_000, Gap: farm.Poisson(9000)})
	if err != nil {
		return g, err
	}
	for i := range machines {
		if i < 9 {
			g.young += o.Share(i) * 9000 / 9
		} else {
			g.old += o.Share(i) * 9000 / 3
			g.queue += o.Inside[i] / 3
		}
	}
	g.description = fmt.Sprintf("%.0f and %.0f", g.young, g.old)
	return g, nil
}

func unequalServers(r *report) error {
	fiveToThree := []int{5, 5, 5, 5, 5, 5, 5, 5, 5, 3, 3, 3}
	turns, err1 := unequal(balance.RoundRobin, 1, nil)
	weighted, err2 := unequal(balance.WeightedRoundRobin, 1, fiveToThree)
	least, err3 := unequal(balance.LeastRequest, 1, nil)
	many, err4 := unequal(balance.LeastRequest, 20, nil)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return err
		}
	}
	r.compare()
	r.exact("round robin: requests a second at a new and at an old server", turns.description, "750 and 750")
	r.exact("weights 5:3", weighted.description, "833 and 500")
	r.near("least request, new", "%.0f", least.young, 833, 25)
	r.near("least request, old", "%.0f", least.old, 500, 75)
	r.shape("least request through 20 balancers, old", fmt.Sprintf("%.0f", many.old), "towards 750", many.old > least.old+20)
	r.shape("waiting at an old one: round robin, one balancer, twenty", fmt.Sprintf("%.0f, %.1f, %.1f", turns.queue, least.queue, many.queue), "collapse, none, many",
		turns.queue > 500 && many.queue > 3*least.queue)
	r.bars("Requests a second; old servers do 600 at most", "requests a second", false, []string{"round robin", "weights 5:3", "least", "least of 20"},
		plot.Series{Name: "new server", Y: []float64{turns.young, weighted.young, least.young, many.young}},
		plot.Series{Name: "old server", Y: []float64{turns.old, weighted.old, least.old, many.old}})
	return nil
}

func slowForAWhile(r *report) error {
	r.compare()
	shares := []float64{0.5, 0.9, 0.95, 0.99, 0.999}
	groups := []string{"p50", "p90", "p95", "p99", "p99.9"}
	var series []plot.Series
	for _, x := range []struct {
		policy    string
		good, bad float64 // percentiles below 1 s, and above
		said      string
	}{
		{balance.RoundRobin, 0.95, 0.99, "bad past p95"},
		{balance.LeastRequest, 0.99, 0.999, "good to p99"},
		{balance.PeakEWMA, 0.999, 1, "good to p99.9"},
	} {
		o, err := farm.Run(farm.Config{Policy: x.policy, Machines: farm.Machines(11, slowly), Requests: 90_000, Gap: farm.Poisson(1000)})
		if err != nil {
			return err
		}
		late := o.Above(time.Second)
		r.shape(x.policy+": replies that took above 1 s", fmt.Sprintf("%.2f %%", 100*late), x.said, late <= 1-x.good && late >= 1-x.bad)
		s := plot.Series{Name: x.policy}
		for _, share := range shares {
			s.Y = append(s.Y, o.Percentile(share).Seconds()*1000)
		}
		series = append(series, s)
	}
	r.bars("One of eleven servers slow for 30 s of 90", "ms", false, groups, series...)
	return nil
}

// slowly is a machine with a median of 167 ms, of which the fourth takes 2 s for half a minute.
func slowly(i int) farm.Machine {
	r := rand.New(rand.NewPCG(uint64(i), 9))
	return farm.Machine{Serve: func(now time.Duration) (time.Duration, bool) {
		if i == 3 && now >= 30*time.Second && now < time.Minute {
			return 2 * time.Second, false
		}
		return time.Duration(167e6 * math.Exp(0.3*r.NormFloat64())), false
	}}
}

func fastFailures(r *report) error {
	r.compare()
	policies := []string{balance.RoundRobin, balance.LeastRequest, balance.P2C, balance.PeakEWMA}
	rates := []float64{2000, 16_000, 2000, 2000}
	shares := make([]float64, len(policies))
	for i, policy := range policies {
		o, err := farm.Run(farm.Config{Policy: policy, Requests: 40_000, Gap: farm.Poisson(rates[i]), Machines: farm.Machines(10, func(i int) farm.Machine {
			if i == 4 {
				return farm.Machine{Serve: func(time.Duration) (time.Duration, bool) { return time.Millisecond, true }}
			}
			return farm.Constant(0, 50*time.Millisecond)
		})})
		if err != nil {
			return err
		}
		shares[i] = o.Share(4)
	}
	r.near("round robin: share of the server that fails", "%.3f", shares[0], 0.1, 0.001)
	r.shape("least request", percent(shares[1]), "nearly all", shares[1] > 0.8)
	r.near("two choices: 1 - 0.9^2", "%.3f", shares[2], 0.19, 0.012)
	r.shape("peak EWMA with errors that count as slow", percent(shares[3]), "cured", shares[3] < 0.01)
	r.bars("Share of the server that fails in 1 ms", "share", false, policies, plot.Series{Name: "ours", Y: shares})
	return nil
}

func newcomer(r *report) error {
	r.compare()
	policies := []string{balance.LeastRequest, balance.P2C}
	shares := make([]float64, len(policies))
	for i, policy := range policies {
		b, err := balancer(policy, 1, ones(10)...)
		if err != nil {
			return err
		}
		all, got := upTo(10), 0
		for s := range 9 {
			for range 30_000 {
				b.Started(s)
			}
		}
		for range 20_000 {
			p := b.Pick(all)
			b.Started(p)
			if p == 9 {
				got++
			}
		}
		shares[i] = float64(got) / 20_000
	}
	r.near("least request: share of the tenth server", "%.3f", shares[0], 1, 0)
	r.near("two choices: 2/N", "%.3f", shares[1], 0.2, 0.01)
	r.bars("Share of a server that has just come", "share", false, policies, plot.Series{Name: "ours", Y: shares})
	return nil
}

func slowServer(r *report) error {
	r.begin("", "ours", "p50", "p99", "source", "p50", "p99", "")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }
	series := plot.Series{Name: "ours"}
	groups := []string{balance.RoundRobin, balance.LeastRequest, balance.P2C, balance.PeakEWMA}
	var p99 []time.Duration
	for i, policy := range groups {
		o, err := farm.Run(farm.Config{Policy: policy, Requests: 600, Gap: farm.Evenly(200),
			Machines: []farm.Machine{farm.Constant(8, 20*time.Millisecond), farm.Constant(8, 20*time.Millisecond), farm.Constant(8, 300*time.Millisecond)}})
		if err != nil {
			return err
		}
		said := [][]string{{"200/200/200", "21 ms", "4652 ms"}, {"249/319/32", "", "303 ms"}, {"282/283/35", "", "301 ms"}, {"", "", ""}}[i]
		r.row(policy, fmt.Sprintf("%d/%d/%d", o.Sent[0], o.Sent[1], o.Sent[2]), ms(o.Percentile(.5)), ms(o.Percentile(.99)), said[0], said[1], said[2], "")
		p99 = append(p99, o.Percentile(.99))
		series.Y = append(series.Y, p99[i].Seconds()*1000)
		switch {
		case i == 0:
			r.claim("round robin sends a third to the slow server", o.Sent[2] == 200)
		case i < 3:
			r.claim(policy+" sends it a twentieth", o.Sent[2] > 10 && o.Sent[2] <= 60)
		}
	}
	r.claim("p99 by round robin is seconds, by the others what one request takes there", p99[0] > 4*time.Second && max(p99[1], p99[2]) < 330*time.Millisecond)
	r.bars("One of three servers takes 300 ms instead of 20", "p99, ms", true, groups, series)
	return nil
}

func deadServer(r *report) error {
	r.compare()
	groups := []string{balance.RoundRobin, balance.P2C, balance.PeakEWMA}
	errors := make([]float64, len(groups))
	for i, policy := range groups {
		o, err := farm.Run(farm.Config{Policy: policy, Requests: 600, Gap: farm.Evenly(200), Machines: farm.Machines(3, func(i int) farm.Machine {
			return farm.Machine{Slots: 8, Serve: func(now time.Duration) (time.Duration, bool) {
				return 20 * time.Millisecond, i == 1 && now > time.Second
			}}
		})})
		if err != nil {
			return err
		}
		errors[i] = float64(o.Failed)
	}
	r.near("round robin: errors after request 200 of 600", "%.0f", errors[0], 133, 1)
	r.shape("peak EWMA, to which an error is a slow reply", fmt.Sprintf("%.0f", errors[2]), "35 with a check", errors[2] < 35)
	r.bars("One of three servers dies at request 200 of 600", "errors", false, groups, plot.Series{Name: "ours", Y: errors})
	return nil
}
