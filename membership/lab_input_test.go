package membership_test

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/membership"
	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
)

// TestLabKeys: a router with a wrong key is refused, and that is logged. Keys are changed
// while the routers run, and none loses another.
func TestLabKeys(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 2, 3, nil)
	first, old := f.routers[0], gossipKey
	next := slices.Repeat([]byte{8}, 16)
	together := f.all(func(r *remote) bool { return r.report().Stats.View.Present == 2 }, f.routers...)
	f.orders.Gossip.Keys = [][]byte{next}
	stranger := f.start(f.Host("r8"))
	soon(t, patience, "the refusal is logged", func() bool {
		return first.logged("another gossip key") && stranger.logged("starting alone")
	})
	soon(t, patience, "the stranger serves alone", stranger.ready)
	if n := len(stranger.report().Members); n != 1 || len(first.report().Members) != 2 {
		t.Errorf("%d routers at the stranger, %d at the first", n, len(first.report().Members))
	}
	stranger.kill()
	for _, keys := range [][][]byte{{old, next}, {next, old}, {next}} {
		for _, r := range f.routers[:2] {
			r.tell(order{Keys: keys})
			throughout(t, 600*time.Millisecond, "the two hear each other", together)
		}
	}
	newcomer := f.start(f.Host("r9"))
	soon(t, patience, "one with the new key comes in", func() bool {
		return newcomer.ready() && newcomer.report().Stats.View.Voters == 3
	})
	f.still("keys", f.routers[:2]...)
}

// agent starts an agent that announces servers.
func (f *labFleet) agent(name string, servers ...discover.Server) *remote {
	f.t.Helper()
	h := f.Host(name)
	return launch(f.t, h, "agent", orders{Router: name, Servers: servers, Gossip: gossip.Config{
		Bind: gossipAddress(h), Join: f.orders.Gossip.Join, Keys: f.orders.Gossip.Keys, Rejoin: f.orders.Gossip.Rejoin,
	}})
}

// TestLabAnnouncements: an announced server is placed when it has answered as memcached
// does, so what is none never is, nor one that does not answer; and it may move to another
// address without its keys.
func TestLabAnnouncements(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 2, 2, func(o *orders) { o.Announced = true })
	host, next, liar := f.Host("a0"), f.Host("a1"), f.Host("a2")
	server := memcachedtest.StartAt(t, host)
	lies := net.JoinHostPort(liar.IP(), "11211")
	launch(t, liar, "liar", orders{Router: "liar", Listen: lies})
	agent := f.agent("g0", discover.Server{Name: "new", Address: server.Addr(), Weight: 1},
		discover.Server{Name: "liar", Address: lies, Weight: 1}, discover.Server{Name: "silent", Address: "10.77.0.200:1", Weight: 1})
	placed := soon(t, patience, "the announced server is placed", f.all(func(r *remote) bool {
		s := r.server("new")
		return s.Address == server.Addr() && s.Status.Placed()
	}))
	digest := f.routers[0].report().State.Digest
	agent.leave()
	moved := memcachedtest.StartAt(t, next)
	f.agent("g1", discover.Server{Name: "new", Address: moved.Addr(), Weight: 1})
	took := soon(t, patience, "the server is used at its new address", f.all(func(r *remote) bool {
		s := r.server("new")
		return s.Address == moved.Addr() && s.Reads
	}))
	t.Logf("placed after %v, moved after %v", placed, took)
	for _, r := range f.routers {
		if s := r.report().State; s.Digest != digest || len(s.Servers) != 3 {
			t.Errorf("%s: moving to another address moved keys, or more servers are placed: %+v", r.name, s)
		}
	}
}

// TestLabTenThousandAnnounced: ten thousand announced servers that do not exist cost a
// router little, and a real one among them is found.
func TestLabTenThousandAnnounced(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 1, 2, func(o *orders) { o.Announced = true })
	r := f.routers[0]
	server := memcachedtest.StartAt(t, f.Host("a0"))
	f.agent("g0", discover.Server{Name: "real", Address: server.Addr(), Weight: 1})
	before := r.report().Process
	var crowd []discover.Server
	for i := range 10_000 {
		s := discover.Server{Name: fmt.Sprint("s", i), Address: fmt.Sprintf("10.77.0.%d:%d", 200+i%50, 1+i), Weight: 1}
		crowd = append(crowd, s)
	}
	heard := r.report().Stats.Gossip.Received
	f.agent("g1", crowd...)
	soon(t, patience, "the router hears of the crowd", func() bool { return r.report().Stats.Gossip.Received > heard+200 })
	soon(t, patience, "the real one is placed", func() bool { return r.server("real").Status.Placed() && r.server("real").Reads })
	grown := r.report().Process - before
	t.Logf("grown by %d KiB from %d KiB", grown>>10, before>>10)
	if grown > 64<<20 {
		t.Errorf("the router has grown by %d MiB", grown>>20)
	}
	if n := len(r.report().State.Servers); n != 3 {
		t.Errorf("%d servers are listed, want 3", n)
	}
}

// TestLabNobodyAnswers: a router whose join list nobody answers starts alone within a few
// seconds, says so, decides by itself, and finds the others when they come.
func TestLabNobodyAnswers(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 1, 3, nil)
	late := f.Host("r1")
	f.orders.Gossip.Join = []string{"10.77.0.240:11313", gossipAddress(late)}
	lonely := f.start(f.Host("r2"))
	started := soon(t, patience, "started", lonely.ready)
	soon(t, patience, "it says that it is alone", func() bool { return lonely.logged("starting alone") })
	f.servers[0].Stop()
	soon(t, patience, "it fails over by itself", func() bool { return lonely.server("m0").Writes == membership.Failover })
	f.servers[0].Restart()
	f.start(late)
	found := soon(t, patience, "both vote", func() bool { return lonely.report().Stats.View.Voters == 2 })
	t.Logf("started after %v, found the other %v after it came", started, found)
}

// TestLabTwoConfigurations: two routers with different lists say so, and each serves with
// what it has.
func TestLabTwoConfigurations(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 1, 4, func(o *orders) { o.View.ListAlarm = 2 * time.Second })
	f.orders.Servers = f.list[:3]
	other := f.start(f.Host("r1"))
	soon(t, patience, "both have heard of each other", f.all(func(r *remote) bool {
		return r.ready() && r.report().Stats.View.Present == 2
	}))
	soon(t, patience, "the alarm", f.all(func(r *remote) bool {
		return r.report().Stats.View.ListsDiffer && r.logged("different lists of servers")
	}))
	throughout(t, time.Second, "both serve", f.all(func(r *remote) bool {
		for _, s := range r.report().State.Servers {
			if !s.Reads || s.Writes != membership.Home {
				return false
			}
		}
		return true
	}))
	if n, m := len(f.routers[0].report().State.Servers), len(other.report().State.Servers); n != 4 || m != 3 {
		t.Errorf("%d and %d servers", n, m)
	}
	if st := other.report().Stats.View; st.PlacementsDiffer {
		t.Errorf("differing lists are blamed on the placement: %+v", st)
	}
}
