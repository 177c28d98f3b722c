package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"

	"cacherouter/bounded"
)

// closed is a closed system: routers with bounds of their own place requests for keys drawn by Zipf's
// law on servers that all end them in random order, a constant number in flight.
type closed struct {
	zipf    float64
	hot     float64        // share of the first key, besides what it has by the law
	load    float64        // requests in flight per server
	routers int            // 0 means 1
	bound   bounded.Config // without weights; PerMille 0 means no bound
}

const (
	closedServers  = 20
	closedKeys     = 20_000
	closedRequests = 60_000
)

// measured is what a closed system showed.
type measured struct {
	peak, p999 float64 // fullest server by the mean: the highest, and the 99.9th percentile
	spilled    float64 // share of requests not placed at home
	copies     float64 // servers that a requested key came to, mean
	above      int     // requests that a bound admitted above it
}

type closedRun struct {
	closed
	rand     *rand.Rand
	law      []uint64
	orders   [][]int
	bounds   []*bounded.Bound
	jobs     []job
	inFlight [closedServers]int
	visited  []uint32 // by key, a bit for each server
	fullest  []int    // how often the fullest had so many
	spilled  int
	above    int
}

// job is a request in flight.
type job struct{ router, server int }

func (c closed) run() (measured, error) {
	orders, err := closedOrders()
	if err != nil {
		return measured{}, err
	}
	r := &closedRun{closed: c, rand: rand.New(rand.NewPCG(1, 20)), law: closedLaw(c.zipf, c.hot), orders: orders, visited: make([]uint32, closedKeys)}
	bound := c.bound
	if bound.PerMille == 0 {
		bound = bounded.Config{PerMille: 1000, Floor: math.MaxInt32}
	}
	bound.Weights = ones(closedServers)
	for range max(1, c.routers) {
		b, err := bounded.New(bound)
		if err != nil {
			return measured{}, err
		}
		r.bounds = append(r.bounds, b)
	}
	for range closedRequests / 10 {
		r.step()
	}
	r.fullest = make([]int, int(c.load*closedServers)+2)
	r.spilled, r.above = 0, 0
	clear(r.visited)
	for range closedRequests {
		r.step()
		r.fullest[slices.Max(r.inFlight[:])]++
	}
	return r.summary(), nil
}

// step places one request and, when more are in flight than the system has, ends one.
func (r *closedRun) step() {
	u := r.rand.Uint64N(r.law[len(r.law)-1])
	r.place(sort.Search(len(r.law), func(i int) bool { return r.law[i] > u }), r.rand.IntN(len(r.bounds)))
	if len(r.jobs) <= int(r.load*closedServers) {
		return
	}
	i := r.rand.IntN(len(r.jobs))
	done := r.jobs[i]
	r.jobs[i] = r.jobs[len(r.jobs)-1]
	r.jobs = r.jobs[:len(r.jobs)-1]
	r.bounds[done.router].Release(done.server, 1)
	r.inFlight[done.server]--
}

func (r *closedRun) place(key, router int) {
	b := r.bounds[router]
	rank, within := b.Take(r.orders[key], 0, 1)
	server := r.orders[key][rank]
	r.jobs = append(r.jobs, job{router, server})
	r.inFlight[server]++
	r.visited[key] |= 1 << server
	if rank > 0 {
		r.spilled++
	}
	// The cap for one more is no less than the one it was admitted by.
	if within && b.InFlight(server) > b.Cap(server) {
		r.above++
	}
}

func (r *closedRun) summary() measured {
	mean := math.Floor(r.load*closedServers) / closedServers
	m := measured{spilled: float64(r.spilled) / closedRequests, above: r.above}
	seen := 0
	for n, times := range r.fullest {
		if times > 0 && seen < closedRequests-closedRequests/1000 {
			m.p999 = float64(n) / mean
		}
		if times > 0 {
			m.peak = float64(n) / mean
		}
		seen += times
	}
	keys, copies := 0, 0
	for _, v := range r.visited {
		if v != 0 {
			keys++
		}
		for ; v != 0; v &= v - 1 {
			copies++
		}
	}
	m.copies = float64(copies) / float64(keys)
	return m
}

// runAll runs systems side by side.
func runAll(systems []closed) ([]measured, error) {
	out, errs := make([]measured, len(systems)), make([]error, len(systems))
	each(len(systems), func(i int) { out[i], errs[i] = systems[i].run() })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// closedLaw returns the sums of the keys' popularity, in whole numbers.
func closedLaw(zipf, hot float64) []uint64 {
	law, sum := make([]uint64, closedKeys), uint64(0)
	if hot > 0 {
		rest := closedLaw(zipf, 0)
		sum = uint64(hot / (1 - hot) * float64(rest[closedKeys-1]))
	}
	for i := range law {
		sum += uint64((1 << 36) * math.Pow(float64(i+1), -zipf))
		law[i] = sum
	}
	return law
}

// closedOrders are the keys' servers in rendezvous order.
var closedOrders = sync.OnceValues(func() ([][]int, error) {
	p, err := smallTableOf(names(closedServers))
	if err != nil {
		return nil, fmt.Errorf("cannot place keys: %w", err)
	}
	orders := make([][]int, 0, closedKeys)
	for _, h := range randomHashes(closedKeys) {
		orders = append(orders, p.Pick(nil, h, closedServers))
	}
	return orders, nil
})
