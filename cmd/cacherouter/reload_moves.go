package main

import (
	"fmt"
	"slices"

	"cacherouter/router"
)

// moves tells which keys a configuration places on other servers than the one before it. It goes
// by samples: keys that begin with what a route says, and are counted on from there.
type moves struct {
	before, after *config
	old, next     map[string]*table // by pool; nil where nobody knows its servers
}

// maxSamples and minSamples are how many keys are looked at for each route. All together look at
// about a quarter of a million at most, or it would be felt.
const maxSamples, minSamples, allSamples = 4096, 256, 1 << 18

// newMoves compares two configurations. Where servers are found while the router runs they are
// those that are placed now.
func newMoves(before, after *config, inForce func(pool string) *table) (*moves, error) {
	m := &moves{before: before, after: after}
	var err error
	if m.old, err = before.placements(inForce); err == nil {
		m.next, err = after.placements(inForce)
	}
	return m, err
}

// placements returns the tables of all pools that are served.
func (c *config) placements(inForce func(pool string) *table) (map[string]*table, error) {
	all := make(map[string]*table)
	for _, p := range c.served() {
		if p.dynamic() == "" {
			all[p.name] = p.table
			continue
		}
		now := inForce(p.name)
		if now == nil {
			continue
		}
		placed := *p
		placed.Servers = now.pool.Servers
		t, err := buildTable(&placed)
		if err != nil {
			return nil, c.within(p, err)
		}
		all[p.name] = t
	}
	return all, nil
}

// home is where a key lives.
type home struct{ pool, known, server, address string }

// homeOf returns where a key of a pool lives, as servers call it.
func homeOf(t *table, pool, known string) home {
	h := home{pool: pool, known: known}
	if t != nil {
		var picked [1]int
		s := t.Servers[t.Picker.Pick(picked[:0], t.KeyHash([]byte(known)), 1)[0]]
		h.server, h.address = s.Name, s.Address
	}
	return h
}

// moved reports whether a key is no longer found where it was. A server that goes by the same
// name in its pool is the same wherever it is.
func (h home) moved(next home) bool {
	switch {
	case h.pool == "":
		return false // there was nothing
	case h.known != next.known || h.pool != next.pool && h.address == "":
		return true
	case h.pool == next.pool && h.server == next.server:
		return false
	}
	return h.address != next.address
}

// ofPool returns the share of a pool's keys that move within it.
func (m *moves) ofPool(name string) float64 {
	old, next := m.old[name], m.next[name]
	if old == nil || next == nil {
		return 0
	}
	n := 0
	for i := range maxSamples {
		key := fmt.Sprint(i)
		if homeOf(old, name, key).moved(homeOf(next, name, key)) {
			n++
		}
	}
	return float64(n) / maxSamples
}

// ofRoutes returns the share of the keys that move, of each prefix that one of two tables of
// routes has: of those keys that have no longer one.
func (m *moves) ofRoutes(before, after []routeConfig) map[string]float64 {
	shares := make(map[string]float64)
	from, err := m.before.targets(before)
	to, err2 := m.after.targets(after)
	if err != nil || err2 != nil { // which were checked
		return shares
	}
	prefixes := prefixesOf(before, after)
	for _, prefix := range prefixes {
		shares[prefix] = m.share(prefix, from, to, prefixes)
	}
	return shares
}

// share returns the share of the keys of a prefix that move.
func (m *moves) share(prefix string, from, to *router.Routes, prefixes []string) float64 {
	samples := min(maxSamples, max(minSamples, allSamples/len(prefixes)))
	n, all := 0, 0
	for i := range samples {
		key := fmt.Sprint(prefix, i)
		f, t := from.Target(key), to.Target(key)
		if max(len(f.Prefix), len(t.Prefix)) > len(prefix) {
			continue // of another route
		}
		all++
		if homeOf(m.old[f.Pool], f.Pool, f.Known).moved(homeOf(m.next[t.Pool], t.Pool, t.Known)) {
			n++
		}
	}
	return float64(n) / float64(max(1, all))
}

// prefixesOf returns the prefixes that one of two tables of routes has, and that of the rest.
func prefixesOf(before, after []routeConfig) []string {
	all := []string{""}
	for _, table := range [][]routeConfig{before, after} {
		for _, r := range table {
			all = append(all, r.Prefix)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
