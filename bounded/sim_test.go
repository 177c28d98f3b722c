package bounded

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"
)

const (
	simServers = 20
	simKeys    = 20_000
)

// A lab is a closed system: routers with bounds of their own place requests for keys drawn by
// Zipf's law on servers that all finish in random order, a constant number in flight.
type lab struct {
	zipf    float64
	load    float64 // requests in flight per server
	routers int     // 0 means 1
	bound   Config  // PerMille 0 means no bound
	servers int     // 0 means simServers
	seed    uint64
}

// outcome is what a lab measures, after a tenth of the requests has passed.
type outcome struct {
	peak, p999 float64 // fullest server by the mean: the highest, and the 99.9th percentile
	spilled    float64 // share of requests not placed at home
	forced     float64 // share placed at a full home
	copies     float64 // servers that a requested key was placed on, mean
	violations int     // requests placed above the bound
}

// job is a request in flight.
type job struct{ router, server int }

type simulation struct {
	lab
	rand     *rand.Rand
	law      []float64
	orders   [][]int // by key, the servers from home on
	bounds   []*Bound
	inFlight []int
	jobs     []job
	visited  []uint32 // by key, a bit for each server
	out      outcome
	fullest  []int // how often the fullest server had so many
}

func (l lab) run(t testing.TB, requests int) outcome {
	t.Helper()
	if l.servers == 0 {
		l.servers = simServers
	}
	s := &simulation{lab: l, rand: rand.New(rand.NewPCG(l.seed, 20)), law: zipfLaw(l.zipf), orders: orders(l.servers), inFlight: make([]int, l.servers), visited: make([]uint32, simKeys)}
	for range max(1, l.routers) {
		s.bounds = append(s.bounds, must(t, l.config()))
	}
	for range requests / 10 {
		s.step()
	}
	s.out, s.fullest = outcome{}, make([]int, 10*int(l.load*float64(l.servers))+10)
	clear(s.visited)
	for range requests {
		s.step()
		s.fullest[slices.Max(s.inFlight)]++
	}
	return s.summary(requests)
}

func (l lab) config() Config {
	c := l.bound
	if c.PerMille == 0 {
		c = Config{PerMille: maxFactor, Floor: 1 << 40}
	}
	c.Weights = equal(l.servers)
	return c
}

// step places one request and, when more are in flight than the lab has, finishes one.
func (s *simulation) step() {
	key := sort.SearchFloat64s(s.law, s.rand.Float64())
	router := s.rand.IntN(len(s.bounds))
	s.place(key, router)
	if len(s.jobs) <= int(s.load*float64(s.servers)) {
		return
	}
	i := s.rand.IntN(len(s.jobs))
	done := s.jobs[i]
	s.jobs[i] = s.jobs[len(s.jobs)-1]
	s.jobs = s.jobs[:len(s.jobs)-1]
	s.bounds[done.router].Release(done.server, 1)
	s.inFlight[done.server]--
}

func (s *simulation) place(key, router int) {
	candidates := s.orders[key]
	b := s.bounds[router]
	rank, within := b.Take(candidates, 0, 1)
	server := candidates[rank]
	s.jobs = append(s.jobs, job{router, server})
	s.inFlight[server]++
	s.visited[key] |= 1 << server
	if rank > 0 {
		s.out.spilled++
	}
	if !within {
		s.out.forced++
	} else if n := b.InFlight(server); n > int(b.floor) && (n-1)*1000*s.servers >= s.bound.PerMille*b.Total() {
		s.out.violations++
	}
}

func (s *simulation) summary(requests int) outcome {
	mean := math.Floor(s.load*float64(s.servers)) / float64(s.servers)
	seen := 0
	for n, times := range s.fullest {
		if times > 0 && seen < requests-requests/1000 {
			s.out.p999 = float64(n) / mean
		}
		if times > 0 {
			s.out.peak = float64(n) / mean
		}
		seen += times
	}
	keys, copies := 0, 0
	for _, v := range s.visited {
		if v != 0 {
			keys++
		}
		for ; v != 0; v &= v - 1 {
			copies++
		}
	}
	s.out.copies = float64(copies) / float64(keys)
	s.out.spilled /= float64(requests)
	s.out.forced /= float64(requests)
	return s.out
}

// zipfLaw returns the sums of the probabilities of keys whose frequency falls as rank^-s.
func zipfLaw(s float64) []float64 {
	law := make([]float64, simKeys)
	sum := 0.0
	for i := range law {
		sum += math.Pow(float64(i+1), -s)
		law[i] = sum
	}
	for i := range law {
		law[i] /= sum
	}
	return law
}

var (
	ordersMu sync.Mutex // guards ordersBy
	ordersBy = map[int][][]int{}
)

// orders returns each key's servers in a random order of its own, as rendezvous has it.
func orders(servers int) [][]int {
	ordersMu.Lock()
	defer ordersMu.Unlock()
	if o := ordersBy[servers]; o != nil {
		return o
	}
	r := rand.New(rand.NewPCG(1, uint64(servers)))
	o := make([][]int, simKeys)
	for key := range o {
		o[key] = r.Perm(servers)
	}
	ordersBy[servers] = o
	return o
}
