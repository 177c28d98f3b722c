// Package mcrouter reads configurations of mcrouter. It knows by mcrouter's own rules on which servers a key is ([Config.Home]), and
// says which pools and routes of ours come closest ([Config.Plan]): the two have nothing in common but the reading, so that each can be
// held against the other.
//
// What is read is JSON with comments. Macros are not: mcrouter itself prints what they come to, for "get __mcrouter__.preprocessed_config".
package mcrouter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cacherouter/compat"
)

// DefaultRoute is the routing prefix of keys that have none, unless mcrouter's --route-prefix says another.
const DefaultRoute = "/././"

// Config is a configuration of mcrouter. It is not for several goroutines at once.
type Config struct {
	root      *value
	named     map[string]*value // route handles
	resolved  map[string][]handle
	pools     map[string]*pool // those that were read
	selectors []selector
	prefixed  bool // whether keys are expected with routing prefixes

	placements map[string]*compat.Placement // by pool and hash; nil for those that are not known here
}

// selector says which route handle keys have that begin with one of some routing prefixes.
type selector struct {
	aliases  []string // /region/cluster/ each
	usual    bool     // it is also for keys without a routing prefix
	policies []policy // sorted by prefix
	wildcard *value   // nil if there is none
}

type policy struct {
	prefix string
	handle *value
}

// Read reads a configuration. Keys without a routing prefix are taken to have the one that is given, as mcrouter's --route-prefix says;
// empty means DefaultRoute. The error names the line, and where in the file.
func Read(text []byte, routePrefix string) (*Config, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	if root.kind != object {
		return nil, root.fault("the configuration is %s, want an object", root.kind)
	}
	c := &Config{root: root, named: make(map[string]*value), resolved: make(map[string][]handle), pools: make(map[string]*pool), placements: make(map[string]*compat.Placement)}
	if root.get("macros") != nil || root.get("consts") != nil {
		return nil, errors.New(`it has macros: import what mcrouter makes of them, which it prints for "get __mcrouter__.preprocessed_config"`)
	}
	if err := c.findNamed(); err != nil {
		return nil, err
	}
	usual, err := asRoutingPrefix(cmp.Or(routePrefix, DefaultRoute))
	if err != nil {
		return nil, err
	}
	c.prefixed = routePrefix != "" || root.get("routes") != nil
	if err := c.findSelectors(usual); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.selectors, func(s selector) bool { return s.usual }) {
		return nil, root.get("routes").fault("no route is for %s, the routing prefix of keys without one: say what mcrouter's --route-prefix says", usual)
	}
	return c, nil
}

// findNamed finds all route handles with names.
func (c *Config) findNamed() error {
	named := c.root.get("named_handles")
	if named.is(object) {
		for _, f := range named.fields {
			c.named[f.name] = f.value
		}
	}
	var walk func(v *value)
	walk = func(v *value) {
		for _, item := range v.items {
			walk(item)
		}
		for _, f := range v.fields {
			walk(f.value)
		}
		if name := v.get("name"); v.get("type").is(text) && name.is(text) && c.named[name.text] == nil {
			c.named[name.text] = v
		}
	}
	walk(c.root)
	switch {
	case named == nil || named.kind == object || named.kind == list:
		named.see()
		return nil
	default:
		return named.fault("is %s, want a list or an object", named.kind)
	}
}

// findSelectors reads route or routes.
func (c *Config) findSelectors(usual string) error {
	route, routes := c.root.take("route"), c.root.take("routes")
	switch {
	case route != nil && routes != nil:
		return routes.fault("route is there, too")
	case route != nil:
		return c.addSelector([]string{usual}, route, usual)
	case routes.is(list):
		return c.addListed(routes, usual)
	case routes.is(object):
		for _, f := range routes.fields {
			alias, err := asRoutingPrefix(f.name)
			if err != nil {
				return f.value.fault("%w", err)
			}
			if err := c.addSelector([]string{alias}, f.value, usual); err != nil {
				return err
			}
		}
		return nil
	case routes != nil:
		return routes.fault("is %s, want a list or an object", routes.kind)
	}
	return c.root.fault("neither route nor routes is there")
}

// addListed reads a list of routes with their aliases.
func (c *Config) addListed(routes *value, usual string) error {
	for _, r := range routes.items {
		r.see()
		route, aliases := r.take("route"), r.take("aliases")
		if route == nil || !aliases.is(list) {
			return r.fault("want route, and a list of aliases")
		}
		var all []string
		for _, a := range aliases.items {
			a.see()
			s, err := a.string("")
			if err != nil {
				return err
			}
			alias, err := asRoutingPrefix(s)
			if err != nil {
				return a.fault("%w", err)
			}
			all = append(all, alias)
		}
		if err := c.addSelector(all, route, usual); err != nil {
			return err
		}
	}
	return nil
}

// addSelector reads what chooses a handle by the prefix of keys.
func (c *Config) addSelector(aliases []string, v *value, usual string) error {
	for _, s := range c.selectors {
		for _, a := range aliases {
			if slices.Contains(s.aliases, a) {
				return v.fault("the routing prefix %s is there twice", a)
			}
		}
	}
	s := selector{aliases: aliases, usual: slices.Contains(aliases, usual), wildcard: v}
	v.see()
	if kind := v.get("type"); kind.is(text) && kind.text == "PrefixSelectorRoute" {
		kind.see()
		policies := v.take("policies")
		if s.wildcard = v.take("wildcard"); s.wildcard == nil && policies == nil {
			return v.fault("PrefixSelectorRoute without policies and wildcard")
		}
		if policies != nil && policies.kind != object {
			return policies.fault("is %s, want an object", policies.kind)
		}
		if policies != nil {
			for _, f := range policies.fields {
				s.policies = append(s.policies, policy{f.name, f.value})
			}
		}
		slices.SortFunc(s.policies, func(a, b policy) int { return cmp.Compare(a.prefix, b.prefix) })
		if len(s.policies) > 0 && s.policies[0].prefix == "" { // which is before the wildcard
			s.wildcard, s.policies = s.policies[0].handle, s.policies[1:]
		}
	}
	c.selectors = append(c.selectors, s)
	return nil
}

// longest returns the longest of the prefixes that a key begins with, and its handle; nil if it has none.
func (s *selector) longest(key string) (prefix string, handle *value) {
	handle = s.wildcard
	for _, p := range s.policies {
		if strings.HasPrefix(key, p.prefix) {
			prefix, handle = p.prefix, p.handle // they are sorted: a later one is longer
		}
	}
	return prefix, handle
}

// asRoutingPrefix checks a routing prefix, and adds the slashes at its ends.
func asRoutingPrefix(s string) (string, error) {
	parts := strings.Split(strings.Trim(s, "/"), "/")
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return "", fmt.Errorf("%q is no routing prefix: want /region/cluster/", s)
	}
	return "/" + parts[0] + "/" + parts[1] + "/", nil
}

// splitKey takes the routing prefix off a key; it is empty if the key has none.
func splitKey(key string) (routing, rest string) {
	if !strings.HasPrefix(key, "/") {
		return "", key
	}
	region := strings.IndexByte(key[1:], '/') + 1
	if region == 0 {
		return "", key
	}
	cluster := strings.IndexByte(key[region+1:], '/')
	if cluster < 0 {
		return "", key
	}
	end := region + cluster + 2
	return key[:end], key[end:]
}

// Prefixes returns what keys begin with that have routes of their own, routing prefixes included where they are expected; each once.
func (c *Config) Prefixes() (all []string) {
	for i := range c.selectors {
		s := &c.selectors[i]
		var before []string
		if s.usual {
			before = append(before, "")
		}
		if c.prefixed {
			before = append(before, s.aliases...)
		}
		for _, b := range before {
			all = append(all, b)
			for _, p := range s.policies {
				all = append(all, b+p.prefix)
			}
		}
	}
	return all
}
