package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cacherouter/membership"

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

// maxPoolName is the longest name of a pool, in bytes.
const maxPoolName = 64

func checkPoolName(name string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	}
	if name == "" || len(name) > maxPoolName || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%.80q is no name of a pool: want 1 to 64 of letters, digits, dots, dashes and underscores", name)
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

// served returns the pools that are served: all but those that only are parts of others.
func (c *config) served() []*poolConfig {
	parts, used := make(map[*poolConfig]bool), c.routed()
	for _, p := range c.each() {
		parts[p.parts.failover], parts[p.parts.warmUp] = true, true
	}
	return slices.DeleteFunc(c.each(), func(p *poolConfig) bool { return parts[p] && !used[p.name] })
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
	if err := c.compose(); err != nil {
		return err
	}
	for _, p := range c.each() {
		p.zone = c.Zone
		if err := p.validate(); err != nil {
			return c.within(p, err)
		}
	}
	doorless := slices.ContainsFunc(c.Listen, func(l listenerConfig) bool { return len(l.Routes) == 0 })
	if len(c.served()) > 1 && len(c.Routes) == 0 && doorless {
		return badField(errors.New("there are several: want routes to them, or by each listener"), "pools")
	}
	if err := c.checkClients(); err != nil {
		return err
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
