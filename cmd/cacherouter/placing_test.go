package main

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"cacherouter/backend"
	"cacherouter/membership"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
	"cacherouter/router"

	"github.com/google/go-cmp/cmp"
)

// atHome is a server in good health.
func atHome(name string) membership.Server {
	return membership.Server{Name: name, Address: name + ":1", Weight: 1, Reads: true}
}

func servers(names ...string) (all []membership.Server) {
	for _, n := range names {
		all = append(all, atHome(n))
	}
	return all
}

func newPlacer(t *testing.T, distribution string, static ...string) *placer {
	t.Helper()
	pool := defaultConfig().Pool
	pool.Distribution = distribution
	for _, n := range static {
		pool.Servers = append(pool.Servers, serverConfig{Name: n, Address: n + ":1", Weight: 1})
	}
	p := new(placer)
	p.use(&pool)
	return p
}

func mustTable(t *testing.T, p *placer, s *membership.State) *table {
	t.Helper()
	tab, err := p.table(s)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestHowServersAreUsed(t *testing.T) {
	f := func(s membership.Server, want router.Server) {
		t.Helper()
		s.Name, s.Address, want.Name, want.Address = "a", "a:1", "a", "a:1"
		if diff := cmp.Diff(want, asRouted(s)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", s, diff)
		}
	}
	f(membership.Server{Reads: true}, router.Server{})
	f(membership.Server{Reads: true, Moved: true, Health: health.SlowStart}, router.Server{Moved: true})
	f(membership.Server{Reads: true, Probation: true}, router.Server{Reads: router.ReadOne})
	f(membership.Server{Writes: membership.Refuse}, router.Server{Reads: router.ReadNext, Writes: router.WriteNowhere})
	f(membership.Server{Writes: membership.Failover, Status: view.Away}, router.Server{Reads: router.ReadNext, Writes: router.WriteNext})
	f(membership.Server{Writes: membership.Failover, Status: view.Away, Clean: true}, router.Server{Reads: router.ReadNext, Writes: router.WriteNext, Clean: true})
	f(membership.Server{Writes: membership.Failover, Status: view.Draining, Reads: true, Probation: true}, router.Server{Writes: router.WriteNext})
}

// A change of how servers are used makes no new placement.
func TestPlacementsAreMadeOnce(t *testing.T) {
	p := newPlacer(t, "maglev", "a", "b", "c")
	s := &membership.State{Servers: servers("a", "b", "c")}
	first := mustTable(t, p, s)
	var err error
	if p.pool.table, err = buildTable(first.pool); err != nil {
		t.Fatal(err)
	}
	pool := p.pool
	pool.Servers = first.pool.Servers
	p.use(&pool)
	if checked := mustTable(t, p, s); checked.placed != pool.table.placed {
		t.Error("what the configuration was checked with was made again")
	}
	first = mustTable(t, p, s)
	ill := &membership.State{Servers: servers("a", "b", "c")}
	ill.Servers[1].Reads, ill.Servers[1].Writes, ill.Servers[1].Status = false, membership.Failover, view.Away
	second := mustTable(t, p, ill)
	if second.placed != first.placed || second.Servers[1].Writes != router.WriteNext {
		t.Errorf("the placement was made again, or %+v", second.Servers[1])
	}
	out := &membership.State{Servers: ill.Servers, Before: ill.Servers, Until: time.Now()}
	out.Servers[1].Status = view.Out
	third := mustTable(t, p, out)
	if third.placed == first.placed || third.Before.Picker.(elsewhere).Picker != first.Picker {
		t.Error("the placement is the old one, or the one before was made again")
	}
}

// The placements before and to come name the same servers as if each stood alone, though
// their indexes are those of one table.
func TestOtherPlacementsUseTheTablesIndexes(t *testing.T) {
	for _, d := range []string{"rendezvous", "maglev", "ring", "twemproxy-ketama", "twemproxy-modula"} {
		p := newPlacer(t, d, "d", "b", "a", "c")
		now := servers("a", "b", "c", "d")
		now[1].Status = view.Out
		s := &membership.State{Servers: now, Before: servers("a", "b", "d", "gone"), After: servers("a", "c", "coming", "d"), Until: time.Unix(9, 0)}
		tab := mustTable(t, p, s)
		if !tab.Until.Equal(s.Until) || len(tab.Servers) != 6 {
			t.Errorf("%s: %d servers until %v", d, len(tab.Servers), tab.Until)
		}
		alone := func(list []membership.Server) *table { return mustTable(t, p, &membership.State{Servers: list}) }
		for _, c := range []struct {
			picker router.Picker
			alone  *table
		}{
			{tab.Picker, alone(servers("a", "c", "d"))},
			{tab.Before, alone(s.Before)},
			{tab.After[0], alone(s.After)},
		} {
			for i := range 200 {
				hash := tab.KeyHash(fmt.Appendf(nil, "key%d", i))
				got := tab.Servers[c.picker.Pick(nil, hash, 1)[0]].Name
				if want := c.alone.Servers[c.alone.Picker.Pick(nil, hash, 1)[0]].Name; got != want {
					t.Fatalf("%s: key%d lives on %s, want %s", d, i, got, want)
				}
			}
		}
	}
}

// Where the order of servers is part of the placement the configuration's counts, and a
// router that watches its servers places keys as where says.
func TestOrderOfTheConfiguration(t *testing.T) {
	p := newPlacer(t, "twemproxy-modula", "d", "b", "a", "c")
	tab := mustTable(t, p, &membership.State{Servers: servers("a", "b", "c", "d", "e")})
	var names []string
	for _, s := range tab.Servers {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"d", "b", "a", "c", "e"}, names); diff != "" {
		t.Error(diff)
	}
	static := mustTable(t, p, &membership.State{Servers: servers("a", "b", "c", "d")})
	alone, err := buildTable(&p.pool)
	if err != nil {
		t.Fatal(err)
	}
	if static.digest() != alone.digest() {
		t.Errorf("digest %s, where says %s", static.digest(), alone.digest())
	}
}

// With a hash tag keys live together whose tags are the same, whatever the distribution.
func TestHashTag(t *testing.T) {
	for _, d := range []string{"rendezvous", "maglev", "ring", "twemproxy-ketama"} {
		p := newPlacer(t, d, "a", "b", "c")
		p.pool.HashTag = "{}"
		tab := mustTable(t, p, &membership.State{Servers: servers("a", "b", "c")})
		if one, two := tab.KeyHash([]byte("x{tag}1")), tab.KeyHash([]byte("{tag}y")); one != two || one == tab.KeyHash([]byte("x{tags}1")) {
			t.Errorf("%s: hashes %x, %x", d, one, two)
		}
		if tab.KeyHash([]byte("{}a")) == tab.KeyHash([]byte("{}b")) || tab.KeyHash([]byte("{a")) == tab.KeyHash([]byte("{b")) {
			t.Errorf("%s: keys without a tag are hashed alike", d)
		}
		if p.pool.HashTag = "{"; func() error { _, err := buildTable(&p.pool); return err }() == nil {
			t.Errorf("%s: one character is taken for a tag", d)
		}
	}
}

// Parameters tell apart what places keys otherwise.
func TestParameters(t *testing.T) {
	seen := make(map[string]string)
	f := func(what string, change func(*poolConfig)) {
		t.Helper()
		p := newPlacer(t, "twemproxy-ketama", "a", "b").pool
		change(&p)
		s := p.parameters()
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s have the parameters %q", what, other, s)
		}
		seen[s] = what
	}
	f("nothing", func(*poolConfig) {})
	f("distribution", func(p *poolConfig) { p.Distribution = "ring" })
	f("hash", func(p *poolConfig) { p.Hash = "md5" })
	f("tag", func(p *poolConfig) { p.HashTag = "{}" })
	f("ch3", func(p *poolConfig) { p.Distribution = "mcrouter-ch3" })
	f("order", func(p *poolConfig) { p.Distribution = "mcrouter-ch3"; slices.Reverse(p.Servers) })
	f("points", func(p *poolConfig) { p.Distribution, p.Points = "ring", 100 })
	for _, d := range []string{"ring", "twemproxy-ketama", "twemproxy-modula"} {
		a, b := newPlacer(t, d, "a", "b", "c").pool, newPlacer(t, d, "b", "a").pool
		if a.parameters() != b.parameters() {
			t.Errorf("%s: the servers and their order count where they make no difference", d)
		}
	}
}

func TestWhatCountsAgainstAServer(t *testing.T) {
	f := func(seen backend.Observation, want health.Observation) {
		t.Helper()
		if diff := cmp.Diff(want, healthOf(seen)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", seen, diff)
		}
	}
	var all [backend.NumFailures]int
	for i := range all {
		all[i] = i
	}
	f(backend.Observation{OK: 3, Latency: time.Second, Failures: all, Streak: 100},
		health.Observation{OK: 3, Latency: time.Second, Refused: 1, Lost: 2, TimedOut: 3, BadReply: 4, Streak: 10})
	f(backend.Observation{Failures: [backend.NumFailures]int{backend.Busy: 5, backend.Denied: 5}, Streak: 10}, health.Observation{})
}

// The shares of the keys are what placing keys finds, and those of servers that hold no keys
// are left out.
func TestShares(t *testing.T) {
	for _, d := range distributions() {
		p := newPlacer(t, d, "a", "b", "c")
		state := &membership.State{Servers: servers("a", "b", "c", "d")}
		_, own := ours[d] // others have no weights, or hashes that are not even
		if own {
			state.Servers[1].Weight = 2
		}
		state.Servers[3].Status = view.Out
		tab := mustTable(t, p, state)
		got, sum := tab.Shares(), 0.0
		seen := make([]float64, 3)
		const samples = 1 << 14
		for i := range uint64(samples) {
			key := fmt.Appendf(nil, "key-%d", i)
			seen[tab.Picker.Pick(nil, tab.KeyHash(key), 1)[0]] += 1.0 / samples
		}
		for i, s := range got {
			if sum += s; own && math.Abs(s-seen[i]) > 0.02 {
				t.Errorf("%s: the share of %s is %.4f, and of samples %.4f", d, tab.Servers[i].Name, s, seen[i])
			}
		}
		if len(got) != 3 || math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: the shares are %v", d, got)
		}
	}
}
