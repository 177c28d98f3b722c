package router_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/backend"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// witness is a membership that notes what it is told and decides nothing.
type witness struct {
	mu        sync.Mutex
	missed    []string // server and key
	missedAll []string // servers
	admits    bool
	asked     int // to admit
	failures  map[string]int
	lags      int
}

func (w *witness) Observe(server string, o backend.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failures == nil {
		w.failures = make(map[string]int)
	}
	for _, n := range o.Failures {
		w.failures[server] += n
	}
}

func (w *witness) Admit(string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return w.admits
}

func (w *witness) Missed(server string, _ uint64, key []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = append(w.missed, server+" "+string(key))
}

func (w *witness) MissedAll(server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missedAll = append(w.missedAll, server)
}

func (w *witness) Lag(time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lags++
}

// heard returns what the witness was told that servers missed.
func (w *witness) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.missed)
}

// order is a placement that gives every key the same candidates.
type order []int

// before and after say that keys lived, and will live, as some picker says.
func before(p router.Picker) router.Placement { return router.Placement{Picker: p} }

func after(p router.Picker) []router.Placement { return []router.Placement{before(p)} }

func (o order) Pick(dst []int, _ uint64, n int) []int { return append(dst, o[:min(n, len(o))]...) }

// shortTimeout is how long servers may take that are to take too long.
const shortTimeout = time.Second

// rig is a router of two loops with a membership, in front of servers whose replies can be
// held up. Its tables give every key the servers 0, 1, 2, ... in that order.
type rig struct {
	*running
	witness *witness
	servers []*memcachedtest.Server
	proxies []*memcachedtest.FaultProxy
	addrs   []string
}

func newRig(t testing.TB, n int, cfg config) *rig {
	t.Helper()
	g := &rig{witness: new(witness)}
	g.servers = memcachedtest.StartN(t, n, memcachedtest.Steady...)
	for _, s := range g.servers {
		p := memcachedtest.Proxy(t, s.Addr())
		g.proxies = append(g.proxies, p)
		g.addrs = append(g.addrs, p.Addr())
	}
	cfg.Loops, cfg.Pool.JoinGets = 2, true
	if cfg.Pool.Membership == nil {
		cfg.Pool.Membership = g.witness
	}
	g.running = start(t, cfg, g.addrs...)
	g.use(g.well())
	return g
}

// well returns a table of servers in good health.
func (g *rig) well() *router.Table {
	t := table(g.addrs...)
	o := make(order, len(g.addrs))
	for i := range o {
		o[i] = i
	}
	t.Picker = o
	return t
}

// with returns a table whose first server is used in some way.
func (g *rig) with(how router.Server) *router.Table {
	t := g.well()
	how.Name, how.Address = t.Servers[0].Name, t.Servers[0].Address
	t.Servers[0] = how
	return t
}

// moved returns a table for some time after keys have moved from server 1 to server 0.
func (g *rig) moved(lasts time.Duration) *router.Table {
	t := g.well()
	t.Before, t.Until = before(order{1}), time.Now().Add(lasts)
	return t
}

// use sets a table and returns when all loops have it.
func (g *rig) use(t *router.Table) {
	g.t.Helper()
	g.SetTable(t)
	g.total()
}

// clients returns a client of each loop.
func (g *rig) clients() (a, b *client) { return dial(g.t, g.addr), dial(g.t, g.addr) }

// at returns a connection that leads to a server directly.
func (g *rig) at(i int) *client { return dial(g.t, g.servers[i].Addr()) }

// calls returns how many requests were sent to a server.
func (g *rig) calls(i int) uint64 { return g.total().Servers[g.addrs[i]].Calls }

// line reads one line.
func (c *client) line() string {
	c.t.Helper()
	s, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v after %q", err, s)
	}
	return strings.TrimSuffix(s, "\r\n")
}

// tell sends a request and returns the line that answers it.
func (c *client) tell(request string) string {
	c.t.Helper()
	c.send(request)
	return c.line()
}

// none wants a key not to be there.
func (c *client) none(key string) {
	c.t.Helper()
	if got := c.tell("mg " + key + "\r\n"); got != "EN" {
		c.t.Fatalf("%s is there: %s", key, got)
	}
}

// ttl returns the seconds that a key's item has left, -1 for ever.
func (c *client) ttl(key string) int {
	c.t.Helper()
	got := c.tell("mg " + key + " t\r\n")
	left, _, _ := strings.Cut(strings.TrimPrefix(got, "HD t"), " ")
	n, err := strconv.Atoi(left)
	if err != nil {
		c.t.Fatalf("the time that %s has left is %q", key, got)
	}
	return n
}

// gains waits until a key is there.
func (c *client) gains(key string) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); c.tell("mg "+key+"\r\n") == "EN"; {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s never comes", key)
		}
	}
}

// value is the VALUE block of an item with flags.
func value(key string, flags int, data string) string {
	return fmt.Sprintf("VALUE %s %d %d\r\n%s\r\n", key, flags, len(data), data)
}

// anyWrites are requests that change an item k whose value is 4, and the lines that answer
// them. CAS stands for the item's.
var anyWrites = []struct{ request, reply string }{
	{"set k 0 0 1\r\n5\r\n", "STORED"},
	{"replace k 0 0 1\r\n5\r\n", "STORED"},
	{"append k 0 0 1\r\n5\r\n", "STORED"},
	{"prepend k 0 0 1\r\n5\r\n", "STORED"},
	{"cas k 0 0 1 CAS\r\n5\r\n", "STORED"},
	{"incr k 1\r\n", "5"},
	{"decr k 1\r\n", "3"},
	{"touch k 100\r\n", "TOUCHED"},
	{"mg k T100\r\n", "HD"},
	{"ms k 1\r\n5\r\n", "HD"},
	{"ms k 1 MA\r\n5\r\n", "HD"},
	{"ma k\r\n", "HD"},
	{"md k\r\n", "HD"},
	{"delete k\r\n", "DELETED"},
}
