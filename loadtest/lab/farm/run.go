package farm

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"cacherouter/balance"
)

// run is a farm at work.
type run struct {
	Config
	now       time.Duration
	balancers []*balance.Balancer
	servers   []server
	ends      ends
	reported  time.Duration // when the machines reported last
	out       Outcome
}

type server struct {
	Machine
	busy, inside int
	waiting      []request
	present      time.Duration // requests inside, times how long
	worked       time.Duration // slots at work, times how long, since the last report
	done, failed int           // since then
}

type request struct {
	server       int
	by           *balance.Balancer
	arrived, end time.Duration
	failed       bool
	seq          int // of two that end at one time the one that began first ends first
}

type ends []request

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].end < e[j].end || e[i].end == e[j].end && e[i].seq < e[j].seq
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(request)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Run lets all requests arrive and end.
func Run(c Config) (*Outcome, error) {
	f := &run{Config: c, servers: make([]server, len(c.Machines))}
	for i, m := range c.Machines {
		f.servers[i].Machine = m
	}
	f.out.Sent = make([]int, len(c.Machines))
	if err := f.addBalancers(); err != nil {
		return nil, err
	}
	all := make([]int, len(c.Machines))
	for i := range all {
		all[i] = i
	}
	r := rand.New(rand.NewPCG(7, 7))
	arrival := time.Duration(0)
	for n := range c.Requests {
		arrival += c.Gap(r)
		for c.Reports > 0 && f.reported+c.Reports <= arrival {
			f.passTo(f.reported + c.Reports)
			f.report()
		}
		f.passTo(arrival)
		b := f.balancers[r.IntN(len(f.balancers))]
		i := b.Pick(all)
		b.Started(i)
		f.out.Sent[i]++
		f.servers[i].inside++
		f.begin(request{server: i, by: b, arrived: arrival, seq: n})
	}
	f.passTo(math.MaxInt64)
	return f.outcome(), nil
}

func (f *run) addBalancers() error {
	c := balance.Default(f.Weights)
	if f.Weights == nil {
		c.Weights = slices.Repeat([]int{1}, len(f.Machines))
	}
	c.Policy = f.Policy
	c.Now = func() time.Time { return time.Unix(0, 0).Add(f.now) }
	for i := range max(1, f.Balancers) {
		c.Seed = uint64(i + 1)
		b, err := balance.New(c)
		if err != nil {
			return err
		}
		f.balancers = append(f.balancers, b)
	}
	return nil
}

func (f *run) begin(r request) {
	s := &f.servers[r.server]
	if s.Slots > 0 && s.busy == s.Slots {
		s.waiting = append(s.waiting, r)
		return
	}
	s.busy++
	took, failed := s.Serve(f.now)
	r.end, r.failed = f.now+took, failed
	heap.Push(&f.ends, r)
}

// passTo lets time pass, and requests end in it.
func (f *run) passTo(t time.Duration) {
	for len(f.ends) > 0 && f.ends[0].end <= t {
		r := heap.Pop(&f.ends).(request)
		f.pass(r.end)
		f.end(r)
	}
	if t < math.MaxInt64 {
		f.pass(t)
	}
}

func (f *run) pass(t time.Duration) {
	for i := range f.servers {
		f.servers[i].present += time.Duration(f.servers[i].inside) * (t - f.now)
		f.servers[i].worked += time.Duration(f.servers[i].busy) * (t - f.now)
	}
	f.now = t
}

func (f *run) end(r request) {
	s := &f.servers[r.server]
	s.busy--
	s.inside--
	took := f.now - r.arrived
	f.out.Took = append(f.out.Took, took)
	s.done++
	if r.failed {
		f.out.Failed++
		s.failed++
	}
	r.by.Done(r.server, took, r.failed)
	if len(s.waiting) > 0 {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		f.begin(next)
	}
}

// report has every machine tell what it did since it did so last.
func (f *run) report() {
	f.reported = f.now
	period := f.Reports.Seconds()
	for i := range f.servers {
		s := &f.servers[i]
		told := balance.Report{QPS: float64(s.done) / period, EPS: float64(s.failed) / period,
			Utilization: s.worked.Seconds() / period / float64(max(s.Slots, 1))}
		for _, b := range f.balancers {
			b.Report(i, told)
		}
		s.worked, s.done, s.failed = 0, 0, 0
	}
}

func (f *run) outcome() *Outcome {
	slices.Sort(f.out.Took)
	for i := range f.servers {
		f.out.Inside = append(f.out.Inside, float64(f.servers[i].present)/float64(f.now))
	}
	return &f.out
}
