package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// reloadConfig says how a changed configuration comes into force.
type reloadConfig struct {
	Watch    bool    `yaml:"watch" doc:"Whether the file is looked at each second, and taken over when it has changed and stayed so for a second; see operations.md."`
	MaxMoved float64 `yaml:"max_moved" doc:"Share of the keys of a route, 0 to 1, that a reload may give another server; one that moves more is refused unless it is forced. That of the new file counts."`
}

// defaultReload: a file that somebody edits on a machine is not taken over when it is saved, but
// when it is said to be ready. Adding a server to one, or taking one of two away, moves half, which samples
// find to be a little less or more.
func defaultReload() reloadConfig { return reloadConfig{MaxMoved: 0.6} }

func (r *reloadConfig) validate() error {
	if !(r.MaxMoved >= 0 && r.MaxMoved <= 1) {
		return badField(fmt.Errorf("%v is not between 0 and 1", r.MaxMoved), "reload", "max_moved")
	}
	return nil
}

// live are the settings beside those of pools that a reload takes over.
var live = []string{"pool", "pools", "routes", "listen", "reload"}

// What a reload does about the fields of a pool: those of sources are what its membership begins
// with; those of placed are in its tables; for the others it begins anew.
var (
	sourceFields = []string{"file", "dns", "srv", "resolver", "announced", "announce", "tls", "passwords"}
	placedFields = []string{"servers", "distribution", "hash", "hash_tag", "hash_stop", "seed", "mode", "table_size", "points",
		"bound", "copies.number", "copies.balance", "copies.zones", "failover", "warm_up", "like"}
)

// amended returns what is in force when a configuration has been taken over in place of c, and
// the settings that stay as they are in c until an upgrade.
func (c *config) amended(next *config) (*config, []string, error) {
	out, pending := *next, []string{}
	from, to := reflect.ValueOf(c).Elem(), reflect.ValueOf(&out).Elem()
	for i := range to.NumField() {
		name := to.Type().Field(i).Tag.Get("yaml")
		if name == "" || slices.Contains(live, name) {
			continue
		}
		for _, d := range differences(name, from.Field(i), to.Field(i)) {
			pending = append(pending, d.field)
		}
		to.Field(i).Set(from.Field(i))
	}
	var more []string
	out.Listen, more = amendedListeners(c.Listen, next.Listen)
	pending = append(pending, more...)
	if len(pending) > 0 {
		if err := out.validate(); err != nil {
			return nil, pending, fmt.Errorf("with what takes an upgrade left as it is (%s): %w", strings.Join(pending, ", "), err)
		}
	}
	return &out, pending, nil
}

// amendedListeners returns listeners with the routes of those that stand for them in another
// configuration, and what stays as it is.
func amendedListeners(before, next []listenerConfig) (out []listenerConfig, pending []string) {
	for _, l := range before {
		i := slices.IndexFunc(next, func(n listenerConfig) bool { return n.Address == l.Address })
		if i < 0 {
			pending = append(pending, "listen "+l.Address)
		} else {
			was, is := l, next[i]
			was.Routes = is.Routes
			for _, d := range differences("listen "+l.Address, reflect.ValueOf(was), reflect.ValueOf(is)) {
				pending = append(pending, d.field)
			}
			l.Routes = is.Routes
		}
		out = append(out, l)
	}
	for _, n := range next {
		if !slices.ContainsFunc(before, func(l listenerConfig) bool { return l.Address == n.Address }) {
			pending = append(pending, "listen "+n.Address)
		}
	}
	return out, pending
}

// takesUpgrade says why a pool cannot become another one while the router runs: what its
// membership knows of servers, and has promised other routers, would be lost, or items read wrongly.
func (p *poolConfig) takesUpgrade(next *poolConfig) error {
	for _, d := range compared(p, next) {
		if d.in(sourceFields) {
			return badField(fmt.Errorf("is %s, was %s: takes an upgrade, by SIGUSR2", d.to, d.from), "pool", d.field)
		}
	}
	if (p.Large.SplitOver == 0) != (next.Large.SplitOver == 0) { // one loop would show the heads that another one stores
		return badField(errors.New("to begin or to end with parts takes an upgrade, by SIGUSR2"), "pool", "large_values", "split_over")
	}
	if (len(p.Servers) == 0) != (len(next.Servers) == 0) {
		return badField(errors.New("to begin or to end with a list takes an upgrade, by SIGUSR2"), "pool", "servers")
	}
	return nil
}

// beginsAnew reports whether something differs that a pool takes over only when it begins.
func (p *poolConfig) beginsAnew(next *poolConfig) bool {
	for _, d := range compared(p, next) {
		if !d.in(placedFields) && !d.in(sourceFields) {
			return true
		}
	}
	return false
}
