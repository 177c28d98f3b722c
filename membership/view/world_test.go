package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cacherouter/membership/health"
)

// world simulates routers and servers in virtual time, in steps of 20 ms: each router
// sends a request to each server every 100 ms, probes as configured, and talks to the
// other routers over a network that delays, loses and cuts.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	now     time.Time
	start   time.Time
	routers []*router
	servers map[string]*server
	mail    []letter
	loss    float64
	changes []change        // of any router's placement
	lost    map[[2]int]bool // pairs that have given each other up
}

// server is up, killed (refuses at once) or stopped (does not answer).
type server struct{ killed, stopped bool }

type router struct {
	w         *world
	i         int
	node      *Node
	pool      *health.Pool
	paused    bool
	starved   bool // its loops' turns are long
	clock     time.Duration
	group     int             // of a partition
	deaf      map[string]bool // servers that it cannot reach
	nextTick  time.Time
	probeAt   map[string]time.Time
	nextProbe time.Time // the earliest of those
	results   []result
	rejoin    time.Time
	noClean   bool
	flushes   []string
	digest    uint64
}

type result struct {
	server       string
	ok           bool
	started, due time.Time
}

type letter struct {
	from, to int
	due      time.Time
	bytes    []byte
}

type change struct {
	router int
	at     time.Duration
	digest uint64
}

const step = 20 * time.Millisecond

func names(n int) []Server {
	var l []Server
	for i := range n {
		l = append(l, Server{Name: fmt.Sprintf("s%02d", i), Address: fmt.Sprint("10.0.0.", i), Weight: 1})
	}
	return l
}

func newWorld(t *testing.T, seed uint64, routers, servers int, c Config) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), servers: map[string]*server{}}
	w.start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.now = w.start
	for _, s := range names(servers) {
		w.servers[s.Name] = &server{}
	}
	for i := range routers {
		w.routers = append(w.routers, &router{w: w, i: i, deaf: map[string]bool{}})
		w.boot(i, c, servers)
	}
	w.run(10 * time.Second)
	w.changes, w.start = nil, w.now
	return w
}

// boot starts a router, again if it ran before.
func (w *world) boot(i int, c Config, servers int) {
	r := w.routers[i]
	c.Router, c.Boot, c.Alone = fmt.Sprint("r", i), uint64(w.now.UnixMilli()), len(w.routers) == 1 && i == 0
	r.pool = health.NewPool(health.Config{}, r.time())
	r.probeAt, r.results, r.nextProbe = map[string]time.Time{}, nil, time.Time{}
	for _, s := range names(servers) {
		r.pool.Add(s.Name, true, r.time())
		r.probeAt[s.Name] = w.now.Add(w.jitter(time.Second))
	}
	r.node = New(c, r.pool, names(servers), r.time())
	r.nextTick = w.now.Add(w.jitter(100 * time.Millisecond))
	r.digest = r.node.View().Digest
}

func (r *router) time() time.Time { return r.w.now.Add(r.clock) }

func (w *world) jitter(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(d)))
}

func (w *world) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(step)
		w.deliver()
		for _, r := range w.routers {
			if !r.paused {
				r.step()
			}
		}
	}
}

// until runs until a condition holds, and fails when it does not within the limit.
func (w *world) until(limit time.Duration, what string, cond func() bool) time.Duration {
	w.t.Helper()
	began := w.now
	for !cond() {
		if w.now.Sub(began) > limit {
			w.t.Fatalf("not within %v: %s", limit, what)
		}
		w.run(step)
	}
	return w.now.Sub(began)
}

func (w *world) deliver() {
	w.mail = slices.DeleteFunc(w.mail, func(l letter) bool {
		to := w.routers[l.to]
		if w.now.Before(l.due) || to.paused {
			return false
		}
		if to.group == w.routers[l.from].group {
			m, err := Decode(l.bytes)
			if err != nil {
				w.t.Fatal(err)
			}
			to.node.Step(m, to.time())
		}
		return true
	})
}

// heal ends a partition. Routers that were parted had given each other up, and talk again
// when one of them rejoins.
func (w *world) heal() {
	w.lost = map[[2]int]bool{}
	for i, a := range w.routers {
		for j, b := range w.routers {
			if a.group != b.group {
				w.lost[[2]int{i, j}] = true
			}
		}
	}
	for _, r := range w.routers {
		r.group = 0
		r.rejoin = w.now.Add(w.jitter(45 * time.Second))
	}
}

// send sends to all; what a rejoining router sends reaches those it had given up, too.
func (r *router) send(m Message, rejoin bool) {
	b := Encode(m)
	for _, to := range r.w.routers {
		if rejoin {
			delete(r.w.lost, [2]int{r.i, to.i})
			delete(r.w.lost, [2]int{to.i, r.i})
		}
		if to != r && !r.w.lost[[2]int{r.i, to.i}] && r.w.rng.Float64() >= r.w.loss {
			due := r.w.now.Add(r.w.jitter(20 * time.Millisecond))
			r.w.mail = append(r.w.mail, letter{r.i, to.i, due, b})
		}
	}
}

func (r *router) step() {
	w := r.w
	if !w.now.Before(r.nextProbe) {
		r.probes()
	}
	r.collect()
	if w.now.Before(r.nextTick) {
		return
	}
	r.nextTick = w.now.Add(100 * time.Millisecond)
	r.traffic()
	if r.starved {
		r.pool.Lag(300*time.Millisecond, r.time())
	}
	r.pool.Tick(r.time())
	r.node.Tick(r.time())
	r.clean()
	if m, ok := r.node.Beat(r.time()); ok {
		r.send(m, false)
	}
	if w.now.After(r.rejoin) { // as push/pull and rejoining do
		r.rejoin = w.now.Add(15*time.Second + w.jitter(30*time.Second))
		r.send(r.node.Full(), true)
	}
	if d := r.node.View().Digest; d != r.digest {
		r.digest = d
		w.changes = append(w.changes, change{r.i, w.now.Sub(w.start), d})
	}
}

func (r *router) reach(name string) (ok bool, after time.Duration) {
	s := r.w.servers[name]
	switch {
	case s.stopped || r.deaf[name]:
		return false, 250 * time.Millisecond
	case s.killed:
		return false, 0
	}
	return true, 0
}

// probes sends the probes that are due, and notes when the next one is.
func (r *router) probes() {
	r.nextProbe = r.w.now.Add(time.Second)
	for _, s := range r.node.View().Servers {
		if !r.w.now.Before(r.probeAt[s.Name]) {
			r.probe(s.Name)
		}
		if at := r.probeAt[s.Name]; at.Before(r.nextProbe) {
			r.nextProbe = at
		}
	}
}

func (r *router) probe(name string) {
	w := r.w
	ok, after := r.reach(name)
	if r.starved {
		after += w.jitter(400 * time.Millisecond)
		ok = ok && after <= 250*time.Millisecond
	}
	every := r.pool.ProbeEvery(name)
	r.probeAt[name] = w.now.Add(after + every*4/5 + w.jitter(every*2/5))
	r.results = append(r.results, result{name, ok, r.time(), w.now.Add(after)})
}

func (r *router) collect() {
	r.results = slices.DeleteFunc(r.results, func(x result) bool {
		if r.w.now.Before(x.due) {
			return false
		}
		r.pool.Probe(x.server, x.ok, x.started, r.time())
		return true
	})
}

func (r *router) traffic() {
	for _, s := range r.node.View().Servers {
		if s.Status != In || !r.pool.Usable(s.Name) {
			continue
		}
		if ok, after := r.reach(s.Name); ok {
			r.pool.Observe(s.Name, health.Observation{OK: 1, Latency: time.Millisecond}, r.time())
		} else if after == 0 {
			r.pool.Observe(s.Name, health.Observation{Refused: 1, Streak: 1}, r.time())
		}
	}
}

func (r *router) clean() {
	for _, ret := range r.node.Returning(r.time()) {
		if r.noClean {
			r.node.CleaningFailed(ret.Server)
			continue
		}
		if ret.Flush {
			r.flushes = append(r.flushes, ret.Server)
		}
		r.node.Cleaned(ret.Server, ret.Flush)
	}
}

// status reports whether a server has a status at all routers that run.
func (w *world) status(name string, want Status) bool {
	for _, r := range w.routers {
		if p, _ := r.node.View().Find(name); p.Status != want && !r.paused {
			return false
		}
	}
	return true
}

// agreed reports whether all routers have one view.
func (w *world) agreed() bool {
	for _, r := range w.routers {
		a, b := r.node.View(), w.routers[0].node.View()
		if a.Digest != b.Digest || a.Version != b.Version {
			return false
		}
	}
	return true
}

// moves counts the changes of placement as the first router saw them.
func (w *world) moves() int {
	n := 0
	for _, c := range w.changes {
		if c.router == 0 {
			n++
		}
	}
	return n
}

func (w *world) still(what string) {
	w.t.Helper()
	if len(w.changes) > 0 {
		w.t.Errorf("%s changed the placement: %v", what, w.changes)
	}
}
