package membership_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"cacherouter/membership"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// The tests here run routers and real memcached on hosts of their own, in network
// namespaces. With -long they take minutes.

// TestLabPartition: two of five routers are cut off. They change nothing while the three
// go on and move a killed server's keys, and after healing there is one view.
func TestLabPartition(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 5, 5, nil)
	minority, majority := f.routers[:2], f.routers[2:]
	f.Partition(f.hosts(minority...), f.hosts(majority...))
	soon(t, patience, "the minority is frozen", f.all(func(r *remote) bool { return r.report().Stats.View.Frozen }, minority...))
	f.servers[0].Stop()
	moved := soon(t, patience, "moved by the majority", f.all(status("m0", view.Out), majority...))
	alone := func(r *remote) bool {
		s := r.server("m0")
		return s.Status == view.In && !s.Reads && s.Writes == membership.Refuse
	}
	soon(t, patience, "the minority reads elsewhere and refuses writes", f.all(alone, minority...))
	// Members are forgotten half a minute after they were given up.
	throughout(t, longer(time.Second, 2*time.Minute), "the minority stays as it is", f.all(alone, minority...))
	f.still("the minority", minority...)
	f.Heal()
	healed := soon(t, 45*time.Second, "one view after healing", f.agreed)
	t.Logf("moved by the majority after %v, one view %v after healing", moved, healed)
	for _, r := range f.routers {
		if m := r.moved(); len(m) != 1 {
			t.Errorf("%s changed its placement %d times, want once", r.name, len(m))
		}
	}
}

// TestLabBadObserver: one router cannot reach one server. Nothing is moved; its reads go
// elsewhere, its writes are refused, and that is over when it can.
func TestLabBadObserver(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 3, 4, nil)
	bad := f.routers[1]
	f.Cut(bad.host, f.machines[2])
	soon(t, patience, "it is down for the one router", func() bool {
		s := bad.server("m2")
		return s.Health == health.Down && !s.Reads && s.Writes == membership.Refuse
	})
	throughout(t, longer(8*time.Second, time.Minute), "it is in at all", f.all(status("m2", view.In)))
	for _, r := range []*remote{f.routers[0], f.routers[2]} {
		if s := r.server("m2"); !s.Reads || s.Writes != membership.Home {
			t.Errorf("at %s: %+v", r.name, s)
		}
	}
	f.Heal()
	soon(t, patience, "used again", func() bool {
		s := bad.server("m2")
		return s.Reads && s.Writes == membership.Home
	})
	f.still("one bad observer")
}

// TestLabStoppedRouter: one of three routers is stopped for 10 s. Nothing is moved, neither
// meanwhile nor when it goes on and finds all of its requests overdue.
func TestLabStoppedRouter(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 3, 4, nil)
	r := f.routers[2]
	signal := func(s os.Signal) {
		t.Helper()
		if err := r.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	soon(t, patience, "the others miss it", f.all(func(r *remote) bool { return r.report().Stats.View.Present == 2 }, f.routers[:2]...))
	throughout(t, longer(5*time.Second, time.Minute), "the others decide", f.all(func(r *remote) bool { return !r.report().Stats.View.Frozen }, f.routers[:2]...))
	signal(syscall.SIGCONT)
	soon(t, patience, "all vote again", f.all(func(r *remote) bool { return r.report().Stats.View.Voters == 3 }))
	throughout(t, 2*time.Second, "all servers are in", f.all(func(r *remote) bool {
		for _, s := range r.report().State.Servers {
			if s.Status != view.In {
				return false
			}
		}
		return true
	}))
	f.still("a stopped router")
}

// TestLabLoss: a fifth of all packets between routers is lost. They agree all the same.
func TestLabLoss(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 3, 4, nil)
	f.Lose(0.2, f.hosts(f.routers...)...)
	throughout(t, longer(3*time.Second, 3*time.Minute), "the routers hear each other", f.all(func(r *remote) bool {
		return r.report().Stats.View.Present == 3
	}))
	f.still("loss between routers")
	f.servers[1].Stop()
	moved := soon(t, patience, "moved", f.all(status("m1", view.Out)))
	soon(t, patience, "one view", f.agreed)
	t.Logf("moved after %v, routers %v apart", moved, f.together())
}

// TestLabDeadServers: a server whose process was killed refuses, one whose cable is out is
// silent. The keys of both are moved, and come back.
func TestLabDeadServers(t *testing.T) {
	f := func(what string, empty bool, end, mend func(f *labFleet)) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newLabFleet(t, 3, 4, nil)
			soon(t, patience, "all know the servers' processes", f.all(func(r *remote) bool { return r.report().Stats.Identified == 4 }))
			end(f)
			away := soon(t, patience, "failed over", f.all(status("m0", view.Away)))
			moved := away + soon(t, patience, "moved", f.all(status("m0", view.Out)))
			t.Logf("without any traffic: failed over after %v, moved after %v, routers %v apart", away, moved, f.together())
			mend(f)
			soon(t, patience, "back", f.all(status("m0", view.In)))
			if n := f.servers[0].Stat("cmd_flush"); (n == 0) != empty {
				t.Errorf("emptied %d times; it came back empty: %v", n, empty)
			}
		})
	}
	f("killed", true, func(f *labFleet) { f.servers[0].Stop() }, func(f *labFleet) { f.servers[0].Restart() })
	f("unplugged", false, func(f *labFleet) { f.machines[0].Unplug() }, func(f *labFleet) { f.machines[0].Plug() })
}
