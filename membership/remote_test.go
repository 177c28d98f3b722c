package membership_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/internal/netlab"
	"cacherouter/membership"
	"cacherouter/membership/damping"
	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/view"
)

// long makes partitions so long that the routers forget each other, and repeats more.
var long = flag.Bool("long", false, "let the tests in network namespaces take minutes")

// remote is a process on a host of a lab.
type remote struct {
	t    *testing.T
	host *netlab.Host
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	log  memcachedtest.Output
	done chan struct{} // closed when the process has ended

	mu    sync.Mutex
	last  report      // guarded by mu
	moves []placement // guarded by mu
	doubt bool        // guarded by mu: it has abstained since trusting was called
}

// placement is one that a router has changed to.
type placement struct {
	at     time.Time
	digest uint64
}

// launch starts this test binary in a role on a host. It is killed when the test ends.
func launch(t *testing.T, h *netlab.Host, role string, o orders) *remote {
	t.Helper()
	r := &remote{t: t, host: h, name: o.Router, done: make(chan struct{})}
	r.cmd = h.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	r.cmd.Stderr = &r.log
	in, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.in = in
	go r.read(out)
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", r.name, r.log.String())
		}
	})
	r.tell(o)
	return r
}

// read takes in reports until the process ends.
func (r *remote) read(out io.Reader) {
	defer close(r.done)
	lines := bufio.NewReader(out)
	for {
		var next report
		if decodeLine(lines, &next) != nil {
			break
		}
		r.take(next)
	}
	r.cmd.Wait() // most are killed
}

func (r *remote) take(next report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.State != nil && r.last.State.Digest != next.State.Digest {
		r.moves = append(r.moves, placement{next.At, next.State.Digest})
	}
	r.last = next
	r.doubt = r.doubt || next.Stats.View.Abstains
}

// trusting begins to watch whether the router trusts itself.
func (r *remote) trusting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = false
}

// doubted reports whether it has not since then: its process did not run when it was to.
func (r *remote) doubted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubt
}

// tell sends orders, or an order.
func (r *remote) tell(o any) {
	r.t.Helper()
	b, err := json.Marshal(o)
	if err == nil {
		_, err = r.in.Write(append(b, '\n'))
	}
	if err != nil {
		r.t.Fatalf("cannot tell %s: %v", r.name, err)
	}
}

// kill ends the process as a crash does.
func (r *remote) kill() {
	r.cmd.Process.Kill()
	<-r.done
}

// leave ends it in order.
func (r *remote) leave() {
	r.in.Close()
	<-r.done
}

// report returns the last one; its State is nil before there was any.
func (r *remote) report() report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *remote) ready() bool { return r.report().State != nil }

// moved returns when and to what the placement has changed since the start.
func (r *remote) moved() []placement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.moves)
}

// server returns a server as the router sees it; the zero value if it is not listed.
func (r *remote) server(name string) membership.Server {
	s, _ := r.report().State.Find(name)
	return s
}

func (r *remote) logged(text string) bool { return strings.Contains(r.log.String(), text) }

// labFleet is routers r0, r1, … and memcached servers m0, m1, …, each on a host of its own.
type labFleet struct {
	t *testing.T
	*netlab.Lab
	routers  []*remote
	servers  []*memcachedtest.Server
	machines []*netlab.Host // of the servers
	list     []discover.Server
	orders   orders // of a router that starts now
}

var gossipKey = slices.Repeat([]byte{7}, 32)

// gossipPort is the same on all hosts.
const gossipPort = "11313"

func gossipAddress(h *netlab.Host) string { return net.JoinHostPort(h.IP(), gossipPort) }

// newLabFleet starts a fleet whose routers settle sooner than usual, and waits until all
// have a vote.
func newLabFleet(t *testing.T, routers, servers int, change func(o *orders)) *labFleet {
	t.Helper()
	f := &labFleet{t: t, Lab: netlab.New(t)}
	for i, h := range f.Hosts("m", servers) {
		f.machines = append(f.machines, h)
		f.servers = append(f.servers, memcachedtest.StartAt(t, h))
		f.list = append(f.list, discover.Server{Name: fmt.Sprint("m", i), Address: f.servers[i].Addr(), Weight: 1})
	}
	f.orders = orders{
		Servers: f.list,
		Gossip:  gossip.Config{Keys: [][]byte{gossipKey}, Rejoin: 5 * time.Second},
		View:    view.Config{Settle: time.Second, Steady: time.Second, Damping: damping.Config{Hold: time.Second}},
	}
	if *long {
		f.orders.Gossip.Rejoin = 0
	}
	if change != nil {
		change(&f.orders)
	}
	for i, h := range f.Hosts("r", routers) {
		f.start(h)
		if i == 0 {
			f.orders.Gossip.Join = []string{gossipAddress(h)}
			soon(t, patience, "the first router runs", f.routers[0].ready)
		}
	}
	soon(t, patience, "all routers vote", f.all(func(r *remote) bool {
		return r.ready() && r.report().Stats.View.Voters == routers
	}))
	for _, r := range f.routers {
		r.trusting()
	}
	return f
}

// start starts one more router.
func (f *labFleet) start(h *netlab.Host) *remote {
	f.t.Helper()
	o := f.orders
	o.Router, o.Gossip.Bind = h.Name(), gossipAddress(h)
	r := launch(f.t, h, "router", o)
	f.routers = append(f.routers, r)
	return r
}

// all returns a condition that holds when another one does at some routers, all by default.
func (f *labFleet) all(cond func(r *remote) bool, some ...*remote) func() bool {
	if some == nil {
		some = f.routers
	}
	return func() bool {
		return !slices.ContainsFunc(some, func(r *remote) bool { return !cond(r) })
	}
}

// status is a condition for all.
func status(server string, want view.Status) func(r *remote) bool {
	return func(r *remote) bool { return r.server(server).Status == want }
}

// agreed reports whether all routers have one view.
func (f *labFleet) agreed() bool {
	first := f.routers[0].report().State
	return f.all(func(r *remote) bool {
		s := r.report().State
		return s.Digest == first.Digest && s.Version == first.Version
	})()
}

// still fails if any of some routers has changed its placement.
func (f *labFleet) still(what string, some ...*remote) {
	f.t.Helper()
	if some == nil {
		some = f.routers
	}
	for _, r := range some {
		if m := r.moved(); len(m) > 0 {
			f.t.Errorf("%s: %s changed its placement %d times", what, r.name, len(m))
		}
	}
}

// together fails if the routers were further apart than a second with their first change of
// placement, and returns how far they were. Where one has noticed that its process does not
// run when it is to, on a machine that is too busy, nothing is said about that.
func (f *labFleet) together() time.Duration {
	f.t.Helper()
	var first, last time.Time
	for i, r := range f.routers {
		m := r.moved()
		if len(m) == 0 {
			f.t.Fatalf("%s has not changed its placement", r.name)
		}
		if at := m[0].at; i == 0 || at.Before(first) {
			first = at
		}
		if at := m[0].at; at.After(last) {
			last = at
		}
	}
	spread := last.Sub(first)
	if spread > time.Second && f.all(func(r *remote) bool { return !r.doubted() })() {
		f.t.Errorf("the routers switched %v apart", spread)
	}
	return spread
}

func (f *labFleet) hosts(some ...*remote) []*netlab.Host {
	var all []*netlab.Host
	for _, r := range some {
		all = append(all, r.host)
	}
	return all
}

// patience is for what has no limit of its own to keep: the machine may be busy.
const patience = 2 * time.Minute

// soon waits for a condition, and returns how long that took.
func soon(t *testing.T, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

// throughout fails if a condition ceases to hold before the time is over.
func throughout(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		if !cond() {
			t.Fatalf("ended early: %s", what)
		}
	}
}

// longer returns the first duration, or with -long the second.
func longer(short, lengthy time.Duration) time.Duration {
	if *long {
		return lengthy
	}
	return short
}
