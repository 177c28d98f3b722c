package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	gossip  []string      // addresses for it, if the routers talk
	events  []string      // the faults that happened, with times as in the history
	over    chan struct{} // closed when the cohort does no more
}

// plan says what world to make and what to do in it.
type plan struct {
	name     string
	routers  int
	config   string   // lines for the routers, after those of the pool
	faults   []string // which ones; none if empty
	long     []string // faults that last too long for the short form
	onlyLong bool     // whether the short form leaves it all out
	gossip   bool     // between the routers
	lie      *forger  // of what servers are asked; nil for none
	contract history.Contract
}

const (
	coherenceServers = 4
	coherenceBulk    = 1500 // bytes of a large value
)

// newWorld starts the servers and the routers, and makes a cohort for them that has yet to run.
func newWorld(tb testing.TB, p plan, seed uint64) *world {
	tb.Helper()
	w := &world{
		tb:      tb,
		rng:     rand.New(rand.NewPCG(seed, 1<<32)),
		servers: memcachedtest.StartN(tb, coherenceServers),
		over:    make(chan struct{}),
	}
	for range p.routers {
		w.gossip = append(w.gossip, memcachedtest.Reserve(tb))
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
	w.configs = append(w.configs, w.config(p, backends))
	w.addrs = append(w.addrs, memcachedtest.Reserve(w.tb))
	w.routers = append(w.routers, nil)
	w.startRouter(len(w.routers) - 1)
}

// config writes the configuration of the next router. Large values begin early, so that they travel on the other
// connection to a server.
func (w *world) config(p plan, backends []string) string {
	w.tb.Helper()
	text := fmt.Sprintf("pool:\n  servers: [%s]\n  bulk_size: 1024\n%s", strings.Join(backends, ", "), p.config)
	if p.gossip {
		text += fmt.Sprintf("gossip:\n  bind: %s\n  join: [%s]\n", w.gossip[len(w.configs)], strings.Join(w.gossip, ", "))
	}
	path := filepath.Join(w.tb.TempDir(), "cacherouter.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.tb.Fatal(err)
	}
	return path
}

func (w *world) startRouter(n int) {
	w.tb.Helper()
	w.routers[n] = startServe(w.tb, raceBinary, "--listen", w.addrs[n], "--loops", "2", "--config", w.configs[n])
}

// keys returns eight keys, two of each server, the homes in turn.
func (w *world) keys() []string {
	w.tb.Helper()
	path, err := raceBinary()
	if err != nil {
		w.tb.Fatal(err)
	}
	args := []string{"where", "--config", w.configs[0]}
	for i := range 100 {
		args = append(args, fmt.Sprintf("key%d", i))
	}
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		w.tb.Fatalf("cannot ask where keys live: %v", err)
	}
	byHome := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		words := strings.Split(line, "\t")
		home, _, _ := strings.Cut(words[1], "=")
		byHome[home] = append(byHome[home], words[0])
	}
	return inTurn(byHome)
}

// inTurn returns the first key of each server, and then the second of each.
func inTurn(byHome map[string][]string) []string {
	var keys []string
	for n := range 2 {
		for _, home := range slices.Sorted(maps.Keys(byHome)) {
			keys = append(keys, byHome[home][n])
		}
	}
	return keys
}

// homes tells where each key lives when all is well.
func (w *world) homes() string {
	var b strings.Builder
	for i, cell := range w.cohort.callers[0].cells {
		fmt.Fprintf(&b, "%s lives on server %d\n", cell.key, i%len(w.servers))
	}
	return b.String()
}

// run has the cohort send n operations, and more until each of the faults has happened, one at a time and in random
// order. They go on happening as long as it takes to send n. It returns all operations.
func (w *world) run(n int64, faults []string) []history.Op {
	w.tb.Helper()
	var err error
	go func() {
		defer close(w.over)
		err = w.cohort.run(n)
	}()
	for round := 0; len(faults) > 0 && (round == 0 || w.cohort.done.Load() < n); round++ {
		for _, i := range w.rng.Perm(len(faults)) {
			w.mishap(faults[i])
			if !w.lasts(time.Duration(20+w.rng.IntN(200)) * time.Millisecond) {
				w.tb.Fatal(err)
			}
		}
	}
	w.cohort.enough.Store(true)
	<-w.over
	if err != nil {
		w.tb.Fatal(err)
	}
	return w.cohort.rec.Ops()
}

// lasts waits for a while, and tells whether the cohort is still at work. It is not if something was wrong.
func (w *world) lasts(d time.Duration) bool {
	select {
	case <-w.over:
		return false
	case <-time.After(d):
		return true
	}
}
