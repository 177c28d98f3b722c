package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/membership"
	"cacherouter/membership/view"
	"cacherouter/router"
)

// composed returns the pool p of a configuration, and a state in which all servers are in.
func composed(t *testing.T, text string) (*placer, *membership.State) {
	t.Helper()
	c, err := loadConfig(writeConfig(t, text))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := c.one("p")
	if err != nil {
		pool, err = c.one("")
	}
	if err != nil {
		t.Fatal(err)
	}
	s := new(membership.State)
	for _, server := range pool.all() {
		s.Servers = append(s.Servers, membership.Server{Name: server.Name, Address: server.Address, Weight: server.Weight, Reads: true})
	}
	slices.SortFunc(s.Servers, func(a, b membership.Server) int { return strings.Compare(a.Name, b.Name) })
	p := new(placer)
	p.use(pool)
	return p, s
}

// candidates returns the names of a key's n candidates, and checks that they are the same
// whoever asks for fewer, and all different.
func candidates(t *testing.T, servers []router.Server, p router.Picker, hash uint64, n int) (names []string) {
	t.Helper()
	var before []int
	for k := 1; k <= n; k++ {
		picks := p.Pick([]int{99}, hash, k)
		if picks[0] != 99 || len(picks)-1 > k || !slices.Equal(picks[1:len(before)+1], before) {
			t.Fatalf("%d candidates are %v, after %v", k, picks[1:], before)
		}
		before = picks[1:]
	}
	for i, at := range before {
		if slices.Contains(before[:i], at) {
			t.Fatalf("%v has a server twice", before)
		}
		names = append(names, servers[at].Name)
	}
	return names
}

const hashes = 500

// hashed returns a hash that is like those of keys.
func hashed(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }

const parted = `pools:
  p: {servers: [m1=h:1, m2=h:2, m3=h:3], %s}
  other: {servers: [o1=h:4, o2=h:5]}
routes: [{pool: p, split: {pool: other, percent: 0}}]
`

// Spare servers come behind the home, and behind its copies, before the others of the pool.
func TestFailoverComesNext(t *testing.T) {
	for copies := 1; copies < 3; copies++ {
		p, s := composed(t, fmt.Sprintf(parted, fmt.Sprintf("failover: other, copies: {number: %d}", copies)))
		tab := mustTable(t, p, s)
		plain, _ := composed(t, fmt.Sprintf(parted, "timeout: 1s"))
		alone := mustTable(t, plain, &membership.State{Servers: plain.pool.own(s.Servers)[:3]})
		for i := range hashes {
			got := candidates(t, tab.Servers, tab.Picker, hashed(i), 5)
			home := candidates(t, alone.Servers, alone.Picker, hashed(i), copies)
			if len(got) != 5 || !slices.Equal(got[:copies], home) || got[copies][0] != 'o' || got[copies+1][0] != 'o' || got[copies+2][0] != 'm' {
				t.Fatalf("%d copies: candidates %v, home %v", copies, got, home)
			}
		}
		if tab.Copies != copies || tab.Before.Picker != nil {
			t.Errorf("%d copies, before %v", tab.Copies, tab.Before)
		}
		if shares := tab.Shares(); len(shares) > 3 && shares[3] != 0 {
			t.Errorf("shares %v", shares)
		}
	}
}

// The pool that is warmed up from is the placement before, beside a change of the pool's own.
func TestWarmUpIsThePlacementBefore(t *testing.T) {
	p, s := composed(t, fmt.Sprintf(parted, "warm_up: other"))
	tab := mustTable(t, p, s)
	if left := time.Until(tab.Until); left < warmUpFor/2 || tab.After != nil || tab.fades(time.Now()) || !tab.fades(time.Now().Add(warmUpFor)) {
		t.Errorf("it lasts for %v, after %v", left, tab.After)
	}
	for i := range hashes {
		if got := candidates(t, tab.Servers, tab.Before, hashed(i), 2); got[0][0] != 'o' || got[1][0] != 'o' {
			t.Fatalf("before: %v", got)
		}
		if got := candidates(t, tab.Servers, tab.Picker, hashed(i), 3); got[0][0] != 'm' || got[2][0] != 'm' {
			t.Fatalf("now: %v", got)
		}
	}
	changed := *s
	changed.Before, changed.Until = p.pool.own(s.Servers)[:2], time.Now().Add(time.Minute)
	if tab = mustTable(t, p, &changed); time.Until(tab.Until) > time.Minute {
		t.Error("the pool's own change is not handed over")
	}
	for i := range hashes {
		if got := candidates(t, tab.Servers, tab.Before, hashed(i), 1); got[0][0] != 'm' {
			t.Fatalf("before: %v", got)
		}
		if got := candidates(t, tab.Servers, tab.After[0], hashed(i), 1); got[0][0] != 'o' {
			t.Fatalf("writes do not clean the old pool but %v", got)
		}
	}
	changed.After = p.pool.own(s.Servers)[1:]
	tab = mustTable(t, p, &changed)
	for i := range hashes {
		at := tab.After[1].Pick(tab.After[0].Pick(nil, hashed(i), 1), hashed(i), 1)
		if len(tab.After) != 2 || tab.Servers[at[0]].Name[0] != 'm' || tab.Servers[at[1]].Name[0] != 'o' {
			t.Fatalf("writes clean %v", at)
		}
	}
	away := *s
	away.Servers = slices.Clone(s.Servers)
	for i := range away.Servers { // the whole old pool is gone
		if away.Servers[i].Name[0] == 'o' {
			away.Servers[i].Status = view.Out
		}
	}
	if tab = mustTable(t, p, &away); tab.Before.Picker != nil {
		t.Error("servers that are out are asked")
	}
}

const byZones = `zone: b
pool:
  copies: {zones: true}
  servers:
    - {name: b1, address: "h:1", zone: b}
    - {name: a1, address: "h:2", zone: a}
    - {name: b2, address: "h:3", zone: b}
    - {name: a2, address: "h:4", zone: a, weight: 2}
    - {name: c1, address: "h:5", zone: c}
`

// Candidates come from the zones in turns, in the order of their names.
func TestZonesTakeTurns(t *testing.T) {
	p, s := composed(t, byZones)
	tab := mustTable(t, p, s)
	if tab.Copies != 3 {
		t.Fatalf("%d copies", tab.Copies)
	}
	heavy := 0
	for i := range hashes {
		got := candidates(t, tab.Servers, tab.Picker, hashed(i), 6)
		zones := ""
		for _, name := range got {
			zones += name[:1]
		}
		if zones != "abcab" {
			t.Fatalf("candidates %v", got)
		}
		if got[0] == "a2" {
			heavy++
		}
	}
	if heavy < hashes/2 || heavy > hashes*5/6 {
		t.Errorf("a server of weight 2 in 3 is the home of %d in %d", heavy, hashes)
	}
	for i, server := range tab.Servers {
		if tab.Near[i] != (server.Name[0] == 'b') {
			t.Errorf("%s is near: %v", server.Name, tab.Near[i])
		}
	}
	sum := 0.0
	for i, share := range tab.Shares() {
		if sum += share; share > 0 != (tab.Servers[i].Name[0] == 'a') {
			t.Errorf("%s is home to %v", tab.Servers[i].Name, share)
		}
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("the shares are %v in all", sum)
	}
	without := &membership.State{Servers: slices.DeleteFunc(slices.Clone(s.Servers), func(s membership.Server) bool { return s.Name == "c1" })}
	if tab = mustTable(t, p, without); tab.Copies != 2 {
		t.Errorf("%d copies without a zone", tab.Copies)
	}
}

// The pool that one is warmed up from may hash keys as another program does, and be of the
// same servers: each key is looked for where that pool has it.
func TestWarmUpFromAnotherHash(t *testing.T) {
	for _, ways := range [][2]string{{"rendezvous", "twemproxy-ketama"}, {"twemproxy-modula", "ring"}, {"rendezvous", `maglev, hash_tag: "{}"`}} {
		const text = `pools:
  p: {servers: [m1=h:1, m2=h:2, m3=h:3], warm_up: other, distribution: %s}
  other: {servers: [m1=h:1, m2=h:2, m3=h:3, m4=h:4], distribution: %s}
`
		p, s := composed(t, fmt.Sprintf(text, ways[0], ways[1])+"routes: [{pool: p}]\n")
		tab := mustTable(t, p, s)
		alone := p.pool.parts.warmUp.table
		others := 0
		for i := range hashes {
			key := fmt.Appendf(nil, "{user%d}:%d", i%90, i)
			got := tab.Before.Order(nil, key, tab.KeyHash(key), 1)[0]
			want := alone.Picker.Pick(nil, alone.KeyHash(key), 1)[0]
			if tab.Servers[got].Name != alone.Servers[want].Name {
				t.Fatalf("%v: %s was on %s, not %s", ways, key, alone.Servers[want].Name, tab.Servers[got].Name)
			}
			if home := tab.Picker.Pick(nil, tab.KeyHash(key), 1)[0]; tab.Servers[home].Name != alone.Servers[want].Name {
				others++
			}
		}
		if len(tab.Servers) != 4 || others < hashes/2 {
			t.Errorf("%v: %d servers, and %d keys of %d have another home", ways, len(tab.Servers), others, hashes)
		}
	}
}

// Spare servers that hash keys otherwise are all made use of.
func TestFailoverToAnotherHash(t *testing.T) {
	for _, ways := range [][2]string{{"rendezvous", "twemproxy-ketama"}, {"twemproxy-ketama, hash: crc32", "rendezvous"}, {"mcrouter-ch3", "twemproxy-modula"}} {
		p, s := composed(t, fmt.Sprintf("pools:\n  p: {servers: [m1=h:1, m2=h:2], failover: other, distribution: %s}\n"+
			"  other: {servers: [o1=h:3, o2=h:4], distribution: %s}\nroutes: [{pool: p}]\n", ways[0], ways[1]))
		tab := mustTable(t, p, s)
		first := 0
		for i := range hashes {
			names := candidates(t, tab.Servers, tab.Picker, tab.KeyHash(fmt.Appendf(nil, "key%d", i)), 4)
			if names[0][0] != 'm' || names[1][0] != 'o' || names[2][0] != 'o' || names[3][0] != 'm' {
				t.Fatalf("%v: candidates %v", ways, names)
			}
			if names[1] == "o1" {
				first++
			}
		}
		if first < hashes/4 || first > hashes*3/4 {
			t.Errorf("%v: %d keys of %d fail over to o1", ways, first, hashes)
		}
	}
}

func TestBadPartsSayWhereAndWhat(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		refuses(t, text, want...)
	}
	const two = "pools:\n  a:\n    servers: [x=h:1]\n    %s\n  b:\n    servers: [y=h:2]\n    %s\nroutes: [{pool: a}]\n"
	pair := func(a, b string) string { return fmt.Sprintf(two, a, b) }
	f(pair("failover: c", ""), "line 4", "pools: a: failover", `no pool "c"`)
	f(pair("failover: a", ""), "line 4", "circle")
	f(pair("failover: b", "warm_up: a"), "line 4", "composed itself", "circle")
	same := strings.Replace(pair("warm_up: b", "distribution: twemproxy-ketama"), "y=h:2", "x=h:1@2", 1)
	f(same, "line 4", "pools: a: warm_up", "server x is in pool b, too", "weight")
	f(strings.Replace(same, "warm_up", "failover", 1), "line 2", "server x is in two")
	f(pair("failover: b", "")+"membership: {enabled: false}\n", "line 4", "wants membership")
	f(strings.Replace(pair("failover: b", ""), "y=", "x=", 1), "line 2", "pools: a", "server x is in two")
	f(pair("failover: b", "srv: [x.example]"), "line 4", "cannot be composed")
	f("pool: {servers: [h:1], failover: x}\n", "line 1", "want pools")
	f(strings.Replace(byZones, ", zone: c", "", 1), "line 9", "server c1", "no zone")
	f(strings.Replace(byZones, "zones: true", "zones: true, number: 2", 1), "line 3", "zones", "instead of a number")
	f("pool:\n  copies: {zones: true}\n  servers: [{name: x, address: \"h:1\", zone: a}]\n", "line 2", "1 zones")
	f(strings.Replace(byZones, "  copies", "  distribution: twemproxy-ketama\n  copies", 1), "of our own")
	f(strings.Replace(byZones, "zone: c", "zoen: c", 1), "line 9", "zoen", "zone")
	f(twoPools+"routes:\n  - {pool: users, split: {pool: none, percent: 1}}\n", "line 10", "split", "no pool none")
	f(twoPools+"routes:\n  - {pool: users, split: {pool: pages, percent: 101}}\n", "line 10", "split", "101")
	f(twoPools+"routes:\n  - {pool: users, split: {percent: 1}}\n", "line 10", "split", "no pool")
	f(twoPools+"routes:\n  - {pool: users, shadow: {pool: none, percent: 1}}\n", "line 10", "shadow", "no pool none")
	f(twoPools+"routes:\n  - {pool: users, shadow: {pool: users, percent: 1}}\n", "line 10", "shadow", "the route itself")
	f(twoPools+"routes:\n  - {pool: users, split: {pool: users, percent: 1}}\n", "line 10", "split", "the route itself")
	f(twoPools+"routes:\n  - {pool: users, shadow: {compare: true}}\n", "line 10", "shadow", "no pool to compare")
	f(twoPools+"routes:\n  - {pool: users, split: {pool: pages, compare: true}}\n", "line 10", "compare")
	f(twoPools+"routes:\n  - {pool: users, shadow: {pool: pages, percent: -1}}\n", "line 10", "shadow", "-1")
}
