package lab

import (
	"fmt"
	"time"

	"cacherouter/balance"
	"cacherouter/loadtest/lab/farm"
	"cacherouter/loadtest/lab/plot"
)

// twoSpeeds are the machines of one generation of 1,000 requests a second, and of one of 600.
func twoSpeeds(i int) farm.Machine {
	if i < 9 {
		return farm.OneByOne(1000, uint64(i))
	}
	return farm.OneByOne(600, uint64(i))
}

func reportedLoad(r *report) error {
	const rate, second = 6300, time.Second // 58 % of what all can do
	all := make([]*farm.Outcome, 3)
	errs := make([]error, len(all))
	each(len(all), func(i int) {
		c := farm.Config{Policy: balance.Reported, Balancers: 20, Reports: second, Requests: 60 * rate, Gap: farm.Poisson(rate), Machines: farm.Machines(12, twoSpeeds)}
		switch i {
		case 0:
			c.Policy = balance.LeastRequest
		case 2:
			c.Machines[4] = farm.Machine{Slots: 1, Serve: func(time.Duration) (time.Duration, bool) { return 10 * time.Microsecond, true }}
		}
		all[i], errs[i] = farm.Run(c)
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	old := func(o *farm.Outcome) float64 { return (o.Share(9) + o.Share(10) + o.Share(11)) / 3 * rate }
	r.compare()
	r.shape("20 balancers: requests/s at an old server, least request", fmt.Sprintf("%.0f", old(all[0])), "towards 525", old(all[0]) > 400)
	r.near("the same by what servers report", "%.0f", old(all[1]), 350, 50)
	r.shape("requests at an old server, least request and reported", fmt.Sprintf("%.1f, %.1f", all[0].Inside[9], all[1].Inside[9]), "fewer", all[1].Inside[9] < all[0].Inside[9])
	r.shape("share of a server that fails at once and reports no load", percent(all[2].Share(4)), "errors must count", all[2].Share(4) < 0.2)
	r.note("The first 10 s go by turns, as reports are not believed yet. 525 is everybody's part, 350 an even share of what all can do.")
	r.bars("Requests a second at one of three servers that do 600", "requests a second", false, []string{"least request", "reported"}, plot.Series{Name: "old server", Y: []float64{old(all[0]), old(all[1])}})
	return nil
}

// slowHalf is 200 balancers before 20 servers, and 20 more that are slow.
func slowHalf(r *report) error {
	policies := []string{balance.RoundRobin, balance.P2C, balance.PeakEWMA}
	all, errs := make([]*farm.Outcome, len(policies)), make([]error, len(policies))
	each(len(policies), func(i int) {
		all[i], errs[i] = farm.Run(farm.Config{Policy: policies[i], Balancers: 200, Requests: 200_000, Gap: farm.Poisson(4000), Machines: farm.Machines(40, func(i int) farm.Machine {
			took := 20 * time.Millisecond
			if i >= 20 {
				took = 200 * time.Millisecond
			}
			return farm.Constant(16, took)
		})})
	})
	share := plot.Series{Name: "share of the slow half, %"}
	tail := plot.Series{Name: "p99, ms"}
	mean := make([]float64, len(policies))
	for i, o := range all {
		if errs[i] != nil {
			return errs[i]
		}
		slow := 0
		for _, n := range o.Sent[20:] {
			slow += n
		}
		var total time.Duration
		for _, took := range o.Took {
			total += took
		}
		mean[i] = total.Seconds() * 1000 / float64(len(o.Took))
		share.Y, tail.Y = append(share.Y, 100*float64(slow)/float64(len(o.Took))), append(tail.Y, o.Percentile(.99).Seconds()*1000)
	}
	r.compare()
	r.near("requests to the slow half by round robin, %", "%.0f", share.Y[0], 50, 1)
	r.row("by peak EWMA, two choices on time and requests in flight", fmt.Sprintf("%.0f %%", share.Y[2]), "about 15 %", "not filtered")
	r.shape("by two choices on a balancer's own requests in flight alone", fmt.Sprintf("%.0f %%", share.Y[1]), "one factor is not enough", share.Y[1] > share.Y[2])
	r.shape("mean latency, of round robin's", fmt.Sprintf("1/%.1f", mean[0]/mean[2]), "1/3", mean[0] > 2.5*mean[2])
	r.claim("two choices send the slow half hardly more than where both are slow", share.Y[2] < 26)
	r.note("Two choices alone cannot go below 24 %%, where both are slow; the source filters candidates besides.")
	r.note("p99 is %.0f, %.0f and %.0f ms. 200 balancers, 20 servers of 20 ms and 20 of 200 ms, 16 requests at a time each, 4,000 requests a second.", tail.Y[0], tail.Y[1], tail.Y[2])
	r.bars("Half of the servers are slow", "", false, policies, share, tail)
	return nil
}

// hotKey is one key with a share of all requests, and what it does to its server.
func hotKey(r *report) error {
	shares := []float64{0.05, 0.1, 0.2, 0.5}
	var systems []closed
	for _, share := range shares {
		systems = append(systems, closed{zipf: 0, hot: share, load: 8}, closed{zipf: 0, hot: share, load: 8, bound: paper(1250)})
	}
	all, err := runAll(systems)
	if err != nil {
		return err
	}
	r.begin("20 servers, one key's share", "fullest without a bound", "with c = 1.25", "left home", "")
	without, with := plot.Series{Name: "no bound", X: shares}, plot.Series{Name: "c = 1.25", X: shares}
	grows, held := true, true
	for i, share := range shares {
		a, b := all[2*i], all[2*i+1]
		r.row(percent(share), fmt.Sprintf("%.2f", a.p999), fmt.Sprintf("%.2f", b.p999), percent(b.spilled), "")
		grows, held = grows && a.p999 > closedServers*share*0.9, held && b.peak <= 1.376
		without.Y, with.Y = append(without.Y, a.p999), append(with.Y, b.p999)
	}
	r.claim("without a bound the key's server has the key's share of all requests while the mean is fine", grows)
	r.claim("with a bound no server has more than 1.375 times the mean", held)
	r.note("Fullest by the mean, in 99.9 %% of all moments. Near caches and copies, which take the key from its server, are measured on real servers: scenarios hot and stampede.")
	r.lines("Fullest of 20 servers by the mean", "share of the hot key", "times the mean", without, with)
	return nil
}
