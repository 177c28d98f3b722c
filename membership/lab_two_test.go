package membership_test

import (
	"testing"
	"time"

	"cacherouter/membership"
	"cacherouter/membership/view"
)

// TestLabOneOfTwoCrashes: one of two routers is killed. Its machine refuses connections,
// so this is no partition, and the other soon decides alone.
func TestLabOneOfTwoCrashes(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 2, 4, nil)
	left, killed := f.routers[0], f.routers[1]
	killed.kill()
	frozen := soon(t, patience, "the other is frozen", func() bool { return left.report().Stats.View.Frozen })
	thawed := frozen + soon(t, patience, "it decides alone", func() bool { return left.report().Stats.View.Known == 1 })
	f.servers[3].Stop()
	soon(t, patience, "keys moved", func() bool { return left.server("m3").Status == view.Out })
	t.Logf("frozen %v after the crash, decides alone after %v", frozen, thawed)
	if !left.logged("router has crashed") {
		t.Error("nothing is logged")
	}
	f.routers = f.routers[:1]
	f.start(killed.host)
	soon(t, patience, "both vote", f.all(func(r *remote) bool { return r.ready() && r.report().Stats.View.Voters == 2 }))
	soon(t, patience, "one view", f.agreed)
}

// TestLabOneOfTwoIsCutOff: two routers cannot hear each other, and each has servers that
// only it can reach. Neither moves a key: both hold the other's servers to be down.
func TestLabOneOfTwoIsCutOff(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 2, 6, nil)
	f.Partition(append(f.hosts(f.routers[0]), f.machines[:3]...), append(f.hosts(f.routers[1]), f.machines[3:]...))
	soon(t, patience, "both are frozen", f.all(func(r *remote) bool { return r.report().Stats.View.Frozen }))
	throughout(t, longer(6*time.Second, 4*time.Minute), "both stay frozen", f.all(func(r *remote) bool { return r.report().Stats.View.Frozen }))
	for i, far := range []string{"m5", "m0"} {
		if s := f.routers[i].server(far); s.Status != view.In || s.Writes == membership.Failover {
			t.Errorf("at %s: %+v", f.routers[i].name, s)
		}
	}
	f.Heal()
	healed := soon(t, 45*time.Second, "both decide again", f.all(func(r *remote) bool { return r.report().Stats.View.Voters == 2 }))
	t.Logf("both decide %v after healing", healed)
	f.still("an even partition")
}

// TestLabRouterUnplugged: the machine of one of two routers loses its cable. That is
// silence, and silence is no proof.
func TestLabRouterUnplugged(t *testing.T) {
	t.Parallel()
	f := newLabFleet(t, 2, 4, nil)
	left := f.routers[0]
	f.routers[1].host.Unplug()
	soon(t, patience, "the other is frozen", func() bool { return left.report().Stats.View.Frozen })
	f.servers[3].Stop()
	soon(t, patience, "its reads go elsewhere", func() bool { s := left.server("m3"); return !s.Reads && s.Writes == membership.Refuse })
	throughout(t, longer(6*time.Second, 4*time.Minute), "it stays frozen", func() bool { return left.report().Stats.View.Frozen })
	f.still("a router that cannot be heard")
}
