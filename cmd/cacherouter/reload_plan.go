package main

import (
	"fmt"
	"slices"
	"strings"

	"cacherouter/reload"
)

// changes returns what a configuration has otherwise than the one before it: pools and their
// servers, and routes. What share of whose keys that moves is told by both together.
func (c *config) changes(next *config, inForce func(pool string) *table) ([]reload.Change, error) {
	if len(compared(c, next)) == 0 {
		return []reload.Change{}, nil
	}
	m, err := newMoves(c, next, inForce)
	if err != nil {
		return nil, err
	}
	all := []reload.Change{}
	for _, name := range poolNames(c, next) {
		before, after := c.find(name), next.find(name)
		for i, change := range poolChanges(before, after) {
			moved := 0.0
			if i == 0 && before != nil && after != nil {
				moved = m.ofPool(name)
			}
			all = append(all, reload.Change{Subject: "pool " + name, Change: change, Moved: moved})
		}
	}
	for _, t := range tablesOf(c, next) {
		all = append(all, t.changes(m)...)
	}
	return all, nil
}

// poolNames returns the names of the pools of two configurations.
func poolNames(a, b *config) (names []string) {
	for _, c := range []*config{a, b} {
		for _, p := range c.each() {
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// find returns a pool by name, nil if there is none.
func (c *config) find(name string) *poolConfig {
	for _, p := range c.each() {
		if p.name == name {
			return p
		}
	}
	return nil
}

// poolChanges says how a pool differs from what it was; either may be nil.
func poolChanges(before, after *poolConfig) (all []string) {
	switch {
	case before == nil && after.dynamic() != "":
		return []string{"added, its servers are found by " + after.dynamic()}
	case before == nil:
		return []string{fmt.Sprintf("added, its servers are %s", serverList(after.Servers))}
	case after == nil:
		return []string{"removed"}
	}
	all = serverChanges(before.Servers, after.Servers)
	for _, d := range compared(before, after) {
		if d.field != "servers" && d.field != "like" {
			all = append(all, d.String())
		}
	}
	return all
}

// serverList lists servers for people.
func serverList(servers []serverConfig) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.String())
	}
	return strings.Join(all, " ")
}

// serverChanges says how a list of servers differs from what it was.
func serverChanges(before, after []serverConfig) (all []string) {
	find := func(list []serverConfig, name string) *serverConfig {
		if i := slices.IndexFunc(list, func(s serverConfig) bool { return s.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for _, s := range before {
		if find(after, s.Name) == nil {
			all = append(all, fmt.Sprintf("server %v removed", s))
		}
	}
	for _, s := range after {
		was := find(before, s.Name)
		if was == nil {
			all = append(all, fmt.Sprintf("server %v added", s))
			continue
		}
		if was.Address != s.Address {
			all = append(all, fmt.Sprintf("server %s at %s, was at %s", s.Name, s.Address, was.Address))
		}
		if was.Weight != s.Weight {
			all = append(all, fmt.Sprintf("server %s of weight %d, was %d", s.Name, s.Weight, was.Weight))
		}
		if was.Zone != s.Zone {
			all = append(all, fmt.Sprintf("server %s in zone %q, was in %q", s.Name, s.Zone, was.Zone))
		}
	}
	same := slices.EqualFunc(before, after, func(a, b serverConfig) bool { return a.Name == b.Name })
	if len(all) == 0 && !same {
		all = []string{"servers in another order"}
	}
	return all
}

// routeTables are a table of routes, and the one before it.
type routeTables struct {
	listener      string // empty is the one for all
	before, after []routeConfig
}

// tablesOf returns the tables of all listeners that both configurations have.
func tablesOf(before, after *config) []routeTables {
	all := []routeTables{{"", before.Routes, after.Routes}}
	for i, l := range after.Listen { // which are the same
		if was := before.Listen[i].Routes; len(was)+len(l.Routes) > 0 {
			if len(was) == 0 {
				was = before.Routes
			}
			now := l.Routes
			if len(now) == 0 {
				now = after.Routes
			}
			all = append(all, routeTables{l.Address, was, now})
		}
	}
	return all
}

// subject names a route.
func (t *routeTables) subject(r routeConfig) string {
	if t.listener != "" {
		return fmt.Sprintf("listen %s: route for %s", t.listener, r.text())
	}
	return "route for " + r.text()
}

// changes says how the table differs from what it was, and which other routes have keys that
// move, as their pools differ.
func (t *routeTables) changes(m *moves) (all []reload.Change) {
	if len(t.before)+len(t.after) == 0 {
		return nil // there is one pool, which says it
	}
	moved := m.ofRoutes(t.before, t.after)
	find := func(list []routeConfig, prefix string) *routeConfig {
		if i := slices.IndexFunc(list, func(r routeConfig) bool { return r.Prefix == prefix }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for _, prefix := range prefixesOf(t.before, t.after) {
		was, is := find(t.before, prefix), find(t.after, prefix)
		c := reload.Change{Subject: t.subject(routeConfig{Prefix: prefix}), Moved: moved[prefix]}
		switch {
		case was == nil && is == nil:
			c.Change = "no route any more" // if they move: they had one without being mentioned
		case was == nil:
			c.Change = "added: " + is.says()
		case is == nil:
			c.Change = "removed, was " + was.says()
		default:
			c.Change = routeChange(was, is)
		}
		if c.Change == "" && c.Moved > 0 {
			c.Change = "its pool"
		}
		if c.Change != "" && (was != nil || is != nil || c.Moved > 0) {
			all = append(all, c)
		}
	}
	return all
}

// routeChange says how a route differs from what it was; empty if it does not.
func routeChange(was, is *routeConfig) string {
	var all []string
	for _, d := range compared(was, is) {
		all = append(all, d.String())
	}
	return strings.Join(all, ", ")
}
