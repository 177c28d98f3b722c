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
	plan    plan
	configs []string // of each router: its file
	grown   int      // per cent of the keys that a split has moved
	unlist  int      // the server that the configurations leave out; -1 for none
	renewed int      // how often the pool has begun anew
	routers []*router
	past    map[string]float64 // what routers had counted that have ended since
	addrs   []string           // of each router, also while it is down
	cohort  *cohort
	gossip  []string      // addresses for it, if the routers talk
	events  []string      // the faults that happened, with times as in the history
	over    chan struct{} // closed when the cohort does no more
}

// plan says what world to make and what to do in it.
type plan struct {
	name     string
	routers  int
	binary   func() (string, error) // of the routers; nil means raceBinary
	config   string                 // lines for the routers, after those of the pool
	pools    string                 // in place of all that: a whole configuration, see world.fill; empty for one pool
	uses     []string               // what routers count of the features in use, which must have had work to do
	makes    []string               // what they count of the work that the long faults make, which there must be
	simple   bool                   // whether clients only get, set and delete
	reads    int                    // per cent of the requests that are gets before chance decides
	ttl      int                    // seconds that what is stored lives; 0 means for ever
	faults   []string               // which ones; none if empty
	long     []string               // faults that last too long for the short form
	onlyLong bool                   // whether the short form leaves it all out
	gossip   bool                   // between the routers
	lie      *forger                // of what servers are asked; nil for none
	contract history.Contract
}

const (
	coherenceServers  = 4
	coherenceCounters = 2    // of the eight keys
	coherenceBulk     = 1500 // bytes of a large value
	tokensApart       = 20_000
)

// newWorld starts the servers and the routers, and makes a cohort for them that has yet to run.
func newWorld(tb testing.TB, p plan, seed uint64) *world {
	tb.Helper()
	w := &world{
		tb:      tb,
		rng:     rand.New(rand.NewPCG(seed, 1<<32)),
		servers: memcachedtest.StartN(tb, coherenceServers),
		plan:    p,
		unlist:  -1,
		past:    make(map[string]float64),
	}
	if w.plan.binary == nil {
		w.plan.binary = raceBinary
	}
	for n := range w.servers {
		w.count(n)
	}
	for range p.routers {
		w.gossip = append(w.gossip, memcachedtest.Reserve(tb))
	}
	for range p.routers {
		w.addRouter()
	}
	keys := w.keys()
	values := len(keys) - coherenceCounters
	if p.simple {
		values = len(keys)
	}
	w.cohort = newCohort(w.addrs, keys[:values], keys[values:], seed)
	for _, c := range w.cohort.callers {
		c.simple, c.reads, c.ttl = p.simple, p.reads, p.ttl
	}
	if p.lie != nil {
		p.lie.atWork.Store(true)
	}
	return w
}

// count has the cas tokens of a server that was started go on far from those of the others. Where a key has another home
// for a while, each counts its own, and the same number would say nothing.
func (w *world) count(n int) {
	w.tb.Helper()
	c := connect(w.tb, w.servers[n].Addr())
	defer c.conn.Close()
	c.mustSet(w.tb, "token", "0")
	const packet = 1000
	counts := strings.Repeat("incr token 1 noreply\r\n", packet) + "mn\r\n"
	for range n * int(max(tokensApart, *coherenceOps/coherenceServers)) / packet {
		if reply, err := c.do(counts); err != nil || reply != "MN" {
			w.tb.Fatalf("counting tokens gives %q, %v", reply, err)
		}
	}
}

func (w *world) addRouter() {
	w.tb.Helper()
	var links []*link
	for _, server := range w.servers {
		links = append(links, startLink(w.tb, server.Addr(), w.plan.lie))
	}
	w.links = append(w.links, links)
	w.configs = append(w.configs, filepath.Join(w.tb.TempDir(), "cacherouter.yaml"))
	w.addrs = append(w.addrs, memcachedtest.Reserve(w.tb))
	w.routers = append(w.routers, nil)
	n := len(w.routers) - 1
	w.configure(n)
	w.startRouter(n)
}

// configure writes the configuration of a router. Large values begin early, so that they travel on the other
// connection to a server.
func (w *world) configure(n int) {
	w.tb.Helper()
	var servers []string
	for i, l := range w.links[n] {
		if i != w.unlist {
			servers = append(servers, fmt.Sprintf("server%d=%s", i, l.addr))
		}
	}
	text := fmt.Sprintf("pool:\n  servers: [%s]\n  bulk_size: 1024\n  max_value: %d\n%s", strings.Join(servers, ", "), 1<<20+w.renewed, w.plan.config)
	if w.plan.pools != "" {
		text = w.fill(n)
	}
	if w.plan.gossip {
		text += fmt.Sprintf("gossip:\n  bind: %s\n  join: [%s]\n", w.gossip[n], strings.Join(w.gossip, ", "))
	}
	if err := os.WriteFile(w.configs[n], []byte(text), 0o644); err != nil {
		w.tb.Fatal(err)
	}
}

// fill returns the plan's own configuration for a router, with the addresses of its servers in the places of A0, A1 and so
// on, the share of a split that grows in that of PERCENT, and what makes faults short in that of IMPATIENT.
func (w *world) fill(n int) string {
	pairs := []string{"PERCENT", fmt.Sprint(w.grown), "IMPATIENT", "timeout: 500ms, connect_timeout: 500ms, bulk_size: 1024"}
	for i, l := range w.links[n] {
		pairs = append(pairs, fmt.Sprint("A", i), l.addr)
	}
	return strings.NewReplacer(pairs...).Replace(w.plan.pools)
}

func (w *world) startRouter(n int) {
	w.tb.Helper()
	cmd := prepare(w.tb, w.plan.binary, slices.Concat(serveArgs, []string{"--listen", w.addrs[n], "--loops", "2", "--config", w.configs[n]})...)
	if canCut() {
		inGroup(cmd, n)
	}
	w.routers[n] = serve(w.tb, cmd)
}

// keys returns eight keys: of one pool, two of each server, the homes in turn.
func (w *world) keys() []string {
	w.tb.Helper()
	if w.plan.pools != "" {
		return []string{"key0", "key1", "key2", "key3", "key4", "key5", "key6", "key7"}
	}
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("key%d", i))
	}
	byHome := make(map[string][]string)
	homes := w.where(keys)
	for _, key := range keys {
		byHome[homes[key]] = append(byHome[homes[key]], key)
	}
	return inTurn(byHome)
}

// where returns the names of the servers that keys live on when all is well.
func (w *world) where(keys []string) map[string]string {
	w.tb.Helper()
	path, err := w.plan.binary()
	if err != nil {
		w.tb.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"where", "--config", w.configs[0]}, keys...)...).Output()
	if err != nil {
		w.tb.Fatalf("cannot ask where keys live: %v", err)
	}
	homes := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		words := strings.Split(line, "\t")
		homes[words[0]], _, _ = strings.Cut(words[1], "=")
	}
	return homes
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
	if w.plan.pools != "" {
		return w.fill(0)
	}
	for i, cell := range w.cohort.callers[0].cells {
		fmt.Fprintf(&b, "%s lives on server %d\n", cell.key, i%len(w.servers))
	}
	return b.String()
}

// run has the cohort send n operations, and more until all features in use have had work to do and each of the faults
// has happened, one at a time and in random order. Faults go on happening as long as it takes to send n, each when the
// features are at work again if they are soon, and if it is patient. It returns all operations so far.
func (w *world) run(n int64, faults []string, patient bool) []history.Op {
	w.tb.Helper()
	var err error
	w.over = make(chan struct{})
	w.cohort.enough.Store(false)
	go func() {
		defer close(w.over)
		err = w.cohort.run(n)
	}()
	going := w.begins()
	for round := 0; going && len(faults) > 0 && (round == 0 || w.cohort.done.Load() < n); round++ {
		for _, i := range w.rng.Perm(len(faults)) {
			w.mishap(faults[i])
			if patient {
				w.working(recovered)
			}
			if going = w.rests(); !going {
				break
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

// rests waits for a while between two faults, and tells whether the cohort is still at work.
func (w *world) rests() bool { return w.lasts(time.Duration(20+w.rng.IntN(200)) * time.Millisecond) }

// lasts waits for a while, and tells whether the cohort is still at work. It is not if something was wrong.
func (w *world) lasts(d time.Duration) bool {
	select {
	case <-w.over:
		return false
	case <-time.After(d):
		return true
	}
}
