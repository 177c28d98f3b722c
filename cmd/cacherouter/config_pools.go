package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cacherouter/membership"
	"cacherouter/memproto"
	"cacherouter/router"

	"go.yaml.in/yaml/v3"
)

// poolsConfig are several pools by name.
type poolsConfig map[string]*poolConfig

// UnmarshalYAML reads a mapping of names to pools. One that is like another has what that
// one has where it says nothing itself.
func (ps *poolsConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: pools: want a mapping of names to pools", n.Line)
	}
	*ps = make(poolsConfig)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if err := checkPoolName(name); err != nil {
			return fmt.Errorf("line %d: pools: %w", n.Content[i].Line, err)
		}
		if (*ps)[name] != nil {
			return fmt.Errorf("line %d: pools: %s is there twice", n.Content[i].Line, name)
		}
		p, err := readPool(n, name, nil)
		if err != nil {
			return err
		}
		(*ps)[name] = p
	}
	return nil
}

func checkPoolName(name string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	}
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%.80q is no name of a pool: want 1 to 64 letters, digits, -, _ or .", name)
	}
	return nil
}

// readPool reads one pool of the mapping, after those that it is like; above are those that
// are like it.
func readPool(pools *yaml.Node, name string, above []string) (*poolConfig, error) {
	key, value := lookUp(pools, name)
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	p := defaultPool()
	if _, like := lookUp(value, "like"); like != nil {
		above = append(above, name)
		other, _ := lookUp(pools, like.Value)
		switch {
		case other == nil:
			return nil, fmt.Errorf("line %d: pools: %s: like: no pool %q", like.Line, name, like.Value)
		case slices.Contains(above, like.Value):
			return nil, fmt.Errorf("line %d: pools: %s: like: goes round in a circle: %s", like.Line, name, strings.Join(append(above, like.Value), " -> "))
		}
		base, err := readPool(pools, like.Value, above)
		if err != nil {
			return nil, err
		}
		p = *base
	}
	p.name = name
	if err := strictly(value, &p); err != nil {
		return nil, fmt.Errorf("pools: %s (line %d): %w", name, key.Line, err)
	}
	return &p, nil
}

// routeConfig is a line of the table of routes.
type routeConfig struct {
	Prefix string `yaml:"prefix" doc:"What the keys begin with; empty means all that no other route has. The longest prefix that fits decides, in whatever order they stand."`
	Pool   string `yaml:"pool" doc:"The name of their pool."`

	line int // in its file
}

// UnmarshalYAML reads a route and notes where it stands.
func (r *routeConfig) UnmarshalYAML(n *yaml.Node) error {
	r.line = n.Line
	type plain routeConfig // without this method
	return strictly(n, (*plain)(r))
}

// text is the route's prefix for people.
func (r *routeConfig) text() string {
	if r.Prefix == "" {
		return "all other keys"
	}
	return fmt.Sprintf("%q", r.Prefix)
}

// each returns the pools by name: those of the file, or the only one.
func (c *config) each() []*poolConfig {
	if len(c.Pools) == 0 {
		c.Pool.name = membership.DefaultPool
		return []*poolConfig{&c.Pool}
	}
	var all []*poolConfig
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		all = append(all, c.Pools[name])
	}
	return all
}

// one returns a pool by name, which need not be said if there is only one.
func (c *config) one(name string) (*poolConfig, error) {
	all := c.each()
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	var names []string
	for _, p := range all {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	if name == "" {
		return nil, fmt.Errorf("the file has several pools, choose one with --pool: %s", strings.Join(names, " "))
	}
	return nil, fmt.Errorf("no pool %s: there is %s", name, strings.Join(names, " "))
}

// validatePools checks the pools and the routes to them.
func (c *config) validatePools() error {
	for _, p := range c.each() {
		if err := p.validate(); err != nil {
			return c.within(p, err)
		}
	}
	if len(c.Pools) > 1 && len(c.Routes) == 0 {
		return badField(errors.New("there are several: want routes to them"), "pools")
	}
	if err := c.checkRoutes(c.Routes, "routes"); err != nil {
		return err
	}
	for i := range c.Listen {
		if err := c.checkRoutes(c.Listen[i].Routes, "listen"); err != nil {
			return err
		}
	}
	return nil
}

// within says of a fault of a pool which one it is, where they have names.
func (c *config) within(p *poolConfig, err error) error {
	var fe *fieldError
	if p != &c.Pool && errors.As(err, &fe) && fe.path[0] == "pool" {
		return &fieldError{append([]string{"pools", p.name}, fe.path[1:]...), fe.err}
	}
	return err
}

// checkRoutes checks a table of routes.
func (c *config) checkRoutes(routes []routeConfig, field string) error {
	lines := make(map[string]int)
	for i := range routes {
		r := &routes[i]
		var err error
		_, poolErr := c.one(r.Pool)
		switch first, twice := lines[r.Prefix]; {
		case twice:
			err = fmt.Errorf("the route for %s is there twice, first in line %d", r.text(), first)
		case len(r.Prefix) > memproto.MaxKey:
			err = fmt.Errorf("the prefix has %d bytes, more than a key may have", len(r.Prefix))
		case r.Pool == "" && len(c.Pools) > 1:
			err = fmt.Errorf("the route for %s says no pool", r.text())
		case poolErr != nil:
			err = fmt.Errorf("the route for %s: %w", r.text(), poolErr)
		}
		if err != nil {
			return badField(&serverError{r.line, err}, field)
		}
		lines[r.Prefix] = r.line
	}
	return nil
}

// routes returns a table of routes as the router wants it.
func (c *config) routes(table []routeConfig) (all []router.Route) {
	for _, r := range table {
		p, _ := c.one(r.Pool) // checked
		all = append(all, router.Route{Prefix: r.Prefix, Pool: p.name})
	}
	return all
}

// doubts returns what is no fault of the routes, but most probably not meant.
func (c *config) doubts() (all []string) {
	used := make(map[string]bool)
	tables := [][]routeConfig{c.Routes}
	for _, l := range c.Listen {
		tables = append(tables, l.Routes)
	}
	for i, table := range tables {
		rest := len(table) == 0
		for _, r := range table {
			p, _ := c.one(r.Pool)
			used[p.name] = true
			rest = rest || r.Prefix == ""
		}
		switch {
		case rest:
		case i == 0:
			all = append(all, "routes: no route for the rest of the keys, which are answered with SERVER_ERROR no route for key")
		default:
			all = append(all, fmt.Sprintf("listen: %s: no route for the rest of the keys, which are answered with SERVER_ERROR no route for key", c.Listen[i-1].Address))
		}
	}
	if len(c.Pools) > 1 {
		for _, p := range c.each() {
			if !used[p.name] {
				all = append(all, fmt.Sprintf("pools: %s: no route leads to it", p.name))
			}
		}
	}
	return all
}

// longestFirst sorts routes so that the first one that fits a key is its route.
func longestFirst(routes []routeConfig) []routeConfig {
	return slices.SortedStableFunc(slices.Values(routes), func(a, b routeConfig) int { return cmp.Compare(len(b.Prefix), len(a.Prefix)) })
}

// routeOf returns the route and the pool of a key; no pool if none has it.
func (c *config) routeOf(key string) (r routeConfig, p *poolConfig) {
	if len(c.Routes) == 0 {
		return r, c.each()[0]
	}
	for _, r := range longestFirst(c.Routes) {
		if strings.HasPrefix(key, r.Prefix) {
			p, _ = c.one(r.Pool)
			return r, p
		}
	}
	return r, nil
}
