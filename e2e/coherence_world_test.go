package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/history"
	"cacherouter/internal/memcachedtest"
)

// world is a fleet of servers and the routers in front of it, with a link between each two of them.
type world struct {
	tb      testing.TB
	rng     *rand.Rand // of the schedule of faults
	servers []*memcachedtest.Server
	links   [][]*link // of each router, to each server
	configs []string  // of each router: its file
	routers []*router
	addrs   []string // of each router, also while it is down
	cohort  *cohort
	faults  map[string]int
	over    chan struct{} // closed when the cohort is done
}

// plan says what world to make and what to do in it.
type plan struct {
	name     string
	routers  int
	pool     []string // lines of the pool's configuration
	faults   bool
	lie      *forger // of what servers are asked; nil for none
	contract history.Contract
}

const (
	coherenceServers = 4
	coherenceBulk    = 1500 // bytes of a large value
)

// coherencePool has large values begin early, so that they travel on the other connection.
var coherencePool = []string{"bulk_size: 1024"}

// newWorld starts the servers and the routers, and makes a cohort for them that has yet to run.
func newWorld(tb testing.TB, p plan, seed uint64) *world {
	tb.Helper()
	w := &world{
		tb:      tb,
		rng:     rand.New(rand.NewPCG(seed, 1<<32)),
		servers: memcachedtest.StartN(tb, coherenceServers),
		faults:  make(map[string]int),
		over:    make(chan struct{}),
	}
	for range p.routers {
		w.addRouter(p)
	}
	keys := w.keys()
	w.cohort = newCohort(w.addrs, keys[:6], keys[6:], seed)
	if p.lie != nil {
		p.lie.atWork.Store(true)
	}
	return w
}

func (w *world) addRouter(p plan) {
	w.tb.Helper()
	var links []*link
	var backends []string
	for i, server := range w.servers {
		l := startLink(w.tb, server.Addr(), p.lie)
		links = append(links, l)
		backends = append(backends, fmt.Sprintf("server%d=%s", i, l.addr))
	}
	w.links = append(w.links, links)
	w.configs = append(w.configs, configFile(w.tb, backends, append(coherencePool, p.pool...)...))
	w.addrs = append(w.addrs, memcachedtest.Reserve(w.tb))
	w.routers = append(w.routers, nil)
	w.startRouter(len(w.routers) - 1)
}

func (w *world) startRouter(n int) {
	w.tb.Helper()
	w.routers[n] = startServe(w.tb, raceBinary, "--listen", w.addrs[n], "--loops", "2", "--config", w.configs[n])
}

// keys returns eight keys that were never used, two of each server, the homes in turn.
func (w *world) keys() []string {
	w.tb.Helper()
	c := connect(w.tb, w.addrs[0])
	defer c.conn.Close()
	byHome := spread(w.tb, c, memcachedtest.Addrs(w.servers), 60)
	var keys []string
	for n := range 8 {
		keys = append(keys, byHome[n%4][n/4])
	}
	for _, key := range keys {
		if reply, err := c.do("delete " + key + "\r\n"); reply != "DELETED" {
			w.tb.Fatalf("delete %s gives %q, %v", key, reply, err)
		}
	}
	return keys
}

// run has the cohort send n operations while faults happen, and returns all operations.
func (w *world) run(n int64, faults bool) []history.Op {
	w.tb.Helper()
	var err error
	go func() {
		defer close(w.over)
		err = w.cohort.run(n)
	}()
	for faults && w.lasts(time.Duration(20+w.rng.IntN(200))*time.Millisecond) {
		w.mishap()
	}
	<-w.over
	if err != nil {
		w.tb.Fatal(err)
	}
	return w.cohort.rec.Ops()
}

// lasts waits for a while, and tells whether the cohort is still at work then.
func (w *world) lasts(d time.Duration) bool {
	select {
	case <-w.over:
		return false
	case <-time.After(d):
		return true
	}
}

// mishap has one random fault happen and end.
func (w *world) mishap() {
	w.tb.Helper()
	n, m := w.rng.IntN(len(w.servers)), w.rng.IntN(len(w.routers))
	server, link := w.servers[n], w.links[m][n]
	short, long := time.Duration(10+w.rng.IntN(100))*time.Millisecond, time.Duration(400+w.rng.IntN(800))*time.Millisecond
	var name string
	switch w.rng.IntN(8) {
	case 0:
		name = "server killed and restarted"
		server.Stop()
		w.lasts(short)
		server.Restart()
		w.cohort.life.Add(1)
	case 1:
		name = "server stopped for less than the timeout"
		w.pause(server, short)
	case 2:
		name = "server stopped for longer than the timeout"
		w.pause(server, long)
	case 3:
		name = "connections to a server reset"
		for _, links := range w.links {
			links[n].reset()
		}
	case 4:
		name = "connections of a router to a server reset"
		link.reset()
	case 5:
		name = "router cut off from a server for less than the timeout"
		w.cut(link, short)
	case 6:
		name = "router cut off from a server for longer than the timeout"
		w.cut(link, long)
	case 7:
		name = "router killed and restarted"
		w.routers[m].kill()
		w.startRouter(m)
	}
	w.faults[name]++
}

func (w *world) pause(server *memcachedtest.Server, d time.Duration) {
	w.tb.Helper()
	server.Pause()
	w.lasts(d)
	server.Resume()
}

func (w *world) cut(l *link, d time.Duration) {
	l.hole()
	w.lasts(d)
	l.heal()
}

// mishaps lists the faults that happened.
func (w *world) mishaps() string {
	var b strings.Builder
	for name, n := range w.faults {
		fmt.Fprintf(&b, "%6d x %s\n", n, name)
	}
	return b.String()
}
