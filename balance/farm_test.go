package balance

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A farm is servers and balancers in virtual time: requests arrive whatever becomes of earlier
// ones, each at one of the balancers, and every server may get any of them.
type farm struct {
	servers   []machine
	balancers []*Balancer
	rand      *rand.Rand
	gap       func() time.Duration // from one arrival to the next

	now     time.Duration
	ends    ends
	took    []time.Duration // by request, from arrival to end
	failed  int
	sent    []int           // by server
	present []time.Duration // by server: requests there, times how long
}

// machine is a server that works on some requests at a time; the others wait.
type machine struct {
	slots int // 0 means any number
	serve func(now time.Duration) (took time.Duration, failed bool)

	busy, inside int
	waiting      []request
}

type request struct {
	id, server int
	by         *Balancer
	arrived    time.Duration
	end        time.Duration
	failed     bool
}

type ends []request

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].end < e[j].end }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(request)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// newFarm returns a farm with balancers of one policy. Arrivals are the caller's to say.
func newFarm(t testing.TB, policy string, balancers int, servers ...machine) *farm {
	t.Helper()
	f := &farm{servers: servers, rand: rand.New(rand.NewPCG(7, 7)), sent: make([]int, len(servers)), present: make([]time.Duration, len(servers))}
	c := Default(slices.Repeat([]int{1}, len(servers)))
	c.Policy = policy
	for i := range balancers {
		c.Seed = uint64(i + 1)
		c.Now = func() time.Time { return time.Unix(0, 0).Add(f.now) }
		f.balancers = append(f.balancers, must(t, c))
	}
	return f
}

func must(t testing.TB, c Config) *Balancer {
	t.Helper()
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run lets n requests arrive and end.
func (f *farm) run(n int) {
	all := upTo(len(f.servers))
	f.took = make([]time.Duration, n)
	arrival := time.Duration(0)
	for id := range n {
		arrival += f.gap()
		f.passTo(arrival)
		b := f.balancers[f.rand.IntN(len(f.balancers))]
		server := b.Pick(all)
		b.Started(server)
		f.sent[server]++
		f.servers[server].inside++
		f.arrive(request{id: id, server: server, by: b, arrived: arrival})
	}
	f.passTo(math.MaxInt64)
}

func (f *farm) arrive(r request) {
	m := &f.servers[r.server]
	if m.slots > 0 && m.busy == m.slots {
		m.waiting = append(m.waiting, r)
		return
	}
	m.busy++
	took, failed := m.serve(f.now)
	r.end, r.failed = f.now+took, failed
	heap.Push(&f.ends, r)
}

// passTo lets time pass, and requests end in it.
func (f *farm) passTo(t time.Duration) {
	for len(f.ends) > 0 && f.ends[0].end <= t {
		r := heap.Pop(&f.ends).(request)
		f.pass(r.end)
		f.end(r)
	}
	if t < math.MaxInt64 {
		f.pass(t)
	}
}

func (f *farm) pass(t time.Duration) {
	for i := range f.servers {
		f.present[i] += time.Duration(f.servers[i].inside) * (t - f.now)
	}
	f.now = t
}

func (f *farm) end(r request) {
	m := &f.servers[r.server]
	m.busy--
	m.inside--
	f.took[r.id] = f.now - r.arrived
	if r.failed {
		f.failed++
	}
	r.by.Done(r.server, f.took[r.id], r.failed)
	if len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = m.waiting[1:]
		f.arrive(next)
	}
}

// percentile returns the time that a share of all requests did not exceed.
func (f *farm) percentile(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(f.took))
	return sorted[int(math.Ceil(share*float64(len(sorted))))-1]
}

// inside returns the mean number of requests at a server.
func (f *farm) inside(server int) float64 { return float64(f.present[server]) / float64(f.now) }

// share returns a server's share of all requests.
func (f *farm) share(server int) float64 { return float64(f.sent[server]) / float64(len(f.took)) }

// poisson makes requests arrive at random, so many a second.
func (f *farm) poisson(rate float64) {
	f.gap = func() time.Duration { return time.Duration(f.rand.ExpFloat64() * 1e9 / rate) }
}

// evenly makes them arrive at equal distances.
func (f *farm) evenly(rate int) {
	f.gap = func() time.Duration { return time.Second / time.Duration(rate) }
}

// oneByOne is a server that does so many requests a second on average, one at a time.
func oneByOne(rate float64, seed uint64) machine {
	r := rand.New(rand.NewPCG(seed, 1))
	return machine{slots: 1, serve: func(time.Duration) (time.Duration, bool) {
		return time.Duration(r.ExpFloat64() * 1e9 / rate), false
	}}
}

// constant is a server that takes so long for each request.
func constant(slots int, took time.Duration) machine {
	return machine{slots: slots, serve: func(time.Duration) (time.Duration, bool) { return took, false }}
}

func machines(n int, m func(i int) machine) []machine {
	all := make([]machine, n)
	for i := range all {
		all[i] = m(i)
	}
	return all
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s %.3f, want %.3f +- %.3f", what, got, want, tolerance)
	}
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s %v, want %v to %v", what, got, low, high)
	}
}
