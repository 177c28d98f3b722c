package lab

import (
	"fmt"
	"math"
	"slices"

	"cacherouter/balance"
	"cacherouter/loadtest/lab/farm"
	"cacherouter/loadtest/lab/plot"
)

func queueLength(r *report) error {
	r.compare()
	policies := []string{balance.Random, balance.P2C, balance.LeastRequest}
	inside := make([]float64, len(policies))
	for i, policy := range policies {
		o, err := farm.Run(farm.Config{Policy: policy, Machines: farm.Machines(12, func(i int) farm.Machine { return farm.OneByOne(1000, uint64(i)) }),
			Requests: 150_000, Gap: farm.Poisson(0.83 * 12_000)})
		if err != nil {
			return err
		}
		for _, n := range o.Inside {
			inside[i] += n / 12
		}
	}
	r.near("requests at a server, by random choice: rho/(1-rho)", "%.2f", inside[0], 0.83/0.17, 0.5)
	r.shape("by two choices", fmt.Sprintf("%.2f", inside[1]), "fewer", inside[1] < inside[0]/2)
	r.shape("by least request", fmt.Sprintf("%.2f", inside[2]), "fewest", inside[2] < inside[1])
	r.bars("Requests at a server at 83 %", "requests", false, policies, plot.Series{Name: "ours", Y: inside})
	return nil
}

func fullestServer(r *report) error {
	r.compare()
	sizes := []float64{10, 100, 1000, 10_000}
	lines := []plot.Series{{Name: "random", X: sizes}, {Name: "two choices", X: sizes}}
	for i, policy := range []string{balance.Random, balance.P2C} {
		for _, n := range sizes {
			most, err := meanFullest(policy, int(n))
			if err != nil {
				return err
			}
			lines[i].Y = append(lines[i].Y, most)
		}
	}
	last := len(sizes) - 1
	r.near("fullest of 10,000, at random", "%.1f", lines[0].Y[last], 7, 1)
	r.near("fullest of 10,000, by two choices", "%.1f", lines[1].Y[last], 3, 1)
	ln := math.Log(10_000)
	r.note("Mean of 10 repeats. The formulas, which leave out a constant: %.1f and %.1f.", ln/math.Log(ln), math.Log(ln)/math.Ln2)
	r.lines("Fullest of n servers after n requests", "servers", "requests", lines...)
	return nil
}

func meanFullest(policy string, servers int) (float64, error) {
	const repeats = 10
	all, sum := upTo(servers), 0
	for seed := range uint64(repeats) {
		b, err := balancer(policy, seed+1, ones(servers)...)
		if err != nil {
			return 0, err
		}
		inFlight := make([]int, servers)
		for range servers {
			i := b.Pick(all)
			b.Started(i)
			inFlight[i]++
		}
		sum += slices.Max(inFlight)
	}
	return float64(sum) / repeats, nil
}
