package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/membership/subset"
)

// loads counts how many clients each server has, by the product's subsets.
func loads(clients, servers, size int) []int {
	all := make([]int, servers)
	for c := range clients {
		for _, s := range subset.Of(c, servers, size) {
			all[s]++
		}
	}
	return all
}

// randomLoads does so by a random subset for each client.
func randomLoads(clients, servers, size int) []int {
	r := rand.New(rand.NewPCG(21, 22))
	all := make([]int, servers)
	for range clients {
		for _, s := range r.Perm(servers)[:size] {
			all[s]++
		}
	}
	return all
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

// deviation is the standard deviation by the mean.
func deviation[T int | float64](all []T) float64 {
	total, squares := 0.0, 0.0
	for _, x := range all {
		total += float64(x)
	}
	mean := total / float64(len(all))
	for _, x := range all {
		squares += float64((float64(x) - mean) * (float64(x) - mean))
	}
	return math.Sqrt(squares/float64(len(all))) / mean
}

func spread(all []int) string { return fmt.Sprintf("%d to %d", slices.Min(all), slices.Max(all)) }

func connections(r *report) error {
	const callers, backends, size, proxies, every = 400, 200, 20, 4, 5
	mesh, subsets := callers*backends, sum(loads(callers, backends, size))
	r.compare()
	r.exact("connections of 400 callers to 200 servers, each to all", fmt.Sprint(mesh), "80000")
	r.exact("each to a subset of 20", fmt.Sprint(subsets), "8000")
	r.exact("four proxies to all", fmt.Sprint(proxies*backends), "800")
	r.exact("callers of a server, subsets", spread(loads(callers, backends, size)), "40 to 40")
	r.exact("probes a second, one each 5 s, each to all", fmt.Sprint(mesh/every), "16000")
	r.exact("probes a second, subsets", fmt.Sprint(subsets/every), "1600")
	r.exact("probes a second, four proxies", fmt.Sprint(proxies*backends/every), "160")
	const clients, routers, servers, loops = 10_000, 100, 1000, 8
	few := loads(clients, routers, 4)
	r.begin("1,000 servers, 100 routers of 8 loops, 10,000 clients", "connections", "")
	r.row("of clients to routers, each to all", fmt.Sprint(clients*routers), "")
	r.row("of clients to routers, each to a subset of 4", fmt.Sprint(sum(few)), "")
	r.row("of routers to servers, two of each loop", fmt.Sprint(routers*servers*loops*2), "")
	r.row("of clients to servers without routers", fmt.Sprint(clients*servers), "")
	r.row("clients of a router, subsets of 4", spread(few), "")
	odd := loads(clients, routers, 3)
	r.claim("subsets of 4, which divides 100, leave every router with the same number of clients", slices.Max(few) == slices.Min(few))
	r.claim(fmt.Sprintf("subsets of 3, which does not, with nearly the same: %s", spread(odd)), deviation(odd) < 0.02)
	r.bars("Connections of 400 callers to 200 servers", "connections", true, []string{"each to all", "subsets of 20", "four proxies"},
		plot.Series{Name: "connections", Y: []float64{float64(mesh), float64(subsets), proxies * backends}},
		plot.Series{Name: "probes/s", Y: []float64{float64(mesh / every), float64(subsets / every), proxies * backends / every}})
	return nil
}

func evenSubsets(r *report) error {
	r.compare()
	r.exact("clients of each of 12 servers, 6 clients with 4 each", spread(loads(6, 12, 4)), "2 to 2")
	worst := 0
	for clients := 1; clients <= 60; clients++ {
		all := loads(clients, 12, 4)
		worst = max(worst, slices.Max(all)-slices.Min(all))
	}
	r.exact("the most two of the 12 differ by, 1 to 60 clients", fmt.Sprint(worst), "1")
	said := []struct {
		size        int
		least, most float64
	}{{30, 50, 150}, {90, 63, 121}}
	for _, x := range said {
		all := randomLoads(300, 300, x.size)
		mean := float64(x.size)
		r.near(fmt.Sprintf("random subsets of %d, 300 by 300: least loaded, %% of the mean", x.size), "%.0f", 100*float64(slices.Min(all))/mean, x.least, 20)
		r.near(fmt.Sprintf("random subsets of %d, 300 by 300: most loaded, %% of the mean", x.size), "%.0f", 100*float64(slices.Max(all))/mean, x.most, 20)
		ours := loads(300, 300, x.size)
		if 300%x.size == 0 {
			r.exact(fmt.Sprintf("ours, of %d", x.size), spread(ours), fmt.Sprintf("%d to %d", x.size, x.size))
		} else {
			r.shape(fmt.Sprintf("ours, of %d, which does not divide 300", x.size), spread(ours), "more even", deviation(ours) < deviation(all)/1.5)
		}
	}
	r.note("Ours are deterministic: rounds of servers/size clients share a shuffled list, each takes its slice.")
	sorted := func(all []int) (y []float64) {
		slices.Sort(all)
		for _, n := range all {
			y = append(y, float64(n))
		}
		return y
	}
	x := make([]float64, 300)
	for i := range x {
		x[i] = float64(i + 1)
	}
	r.lines("Clients of each of 300 servers, subsets of 30", "server, the least loaded first", "clients",
		plot.Series{Name: "random", X: x, Y: sorted(randomLoads(300, 300, 30))}, plot.Series{Name: "ours", X: x, Y: sorted(loads(300, 300, 30))})
	return nil
}

// subsetsNeedOrder has clients agree on neither their numbers nor the order of the list.
func subsetsNeedOrder(r *report) error {
	const clients, servers, size = 300, 100, 10
	rng := rand.New(rand.NewPCG(23, 24))
	sparse, shuffled := make([]int, servers), make([]int, servers)
	for c := range clients {
		for _, s := range subset.Of(rng.IntN(1_000_000), servers, size) {
			sparse[s]++
		}
		order := rng.Perm(servers)
		for _, s := range subset.Of(c, servers, size) {
			shuffled[order[s]]++
		}
	}
	dense := loads(clients, servers, size)
	r.compare()
	r.exact("clients of a server, dense numbers and one order", spread(dense), "30 to 30")
	r.shape("with numbers drawn at random", spread(sparse), "uneven", deviation(sparse) > 0.1)
	r.shape("with an order of its own for each client", spread(shuffled), "uneven", deviation(shuffled) > 0.1)
	r.bars("Clients of a server", "clients", false, []string{"dense, one order", "random numbers", "own orders"},
		plot.Series{Name: "least", Y: []float64{float64(slices.Min(dense)), float64(slices.Min(sparse)), float64(slices.Min(shuffled))}},
		plot.Series{Name: "most", Y: []float64{float64(slices.Max(dense)), float64(slices.Max(sparse)), float64(slices.Max(shuffled))}})
	return nil
}

// aperture compares ways to give 1,000 clients 25 of 280 servers each. In the deterministic aperture clients and servers
// lie on rings at even distances, and a client uses the servers that its arc overlaps, each by how much of it does.
func aperture(r *report) error {
	const clients, servers, size = 1000, 280, 25
	ring := make([]float64, servers)
	arc := float64(size) / servers
	for c := range clients {
		from := float64(c) / clients
		first := int(from * servers)
		for i := first; float64(i)/servers < from+arc; i++ {
			overlap := min(float64(i+1)/servers, from+arc) - max(float64(i)/servers, from)
			ring[i%servers] += overlap / arc
		}
	}
	random, ours := deviation(randomLoads(clients, servers, size)), deviation(loads(clients, servers, size))
	r.compare()
	r.exact("connections, each of 1,000 clients to all of 280 servers", fmt.Sprint(clients*servers), "280000")
	r.exact("each to 25", fmt.Sprint(sum(loads(clients, servers, size))), "25000")
	r.row("deviation of servers' load by the mean, random subsets", percent(random), "", "")
	r.shape("deterministic aperture", percent(deviation(ring)), "78 % less", deviation(ring) < 0.22*random)
	r.shape("our subsets", percent(ours), "78 % less", ours < 0.22*random)
	r.note("The source measured one service before and after; here every client sends as much.")
	r.bars("Deviation of servers' load", "% of the mean", false, []string{"random", "aperture", "ours"}, plot.Series{Name: "deviation", Y: []float64{100 * random, 100 * deviation(ring), 100 * ours}})
	return nil
}
