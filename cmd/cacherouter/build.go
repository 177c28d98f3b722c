package main

import (
	"fmt"
	"slices"
	"strings"

	"cacherouter/compat"
	"cacherouter/maglev"
	"cacherouter/rendezvous"
	"cacherouter/ring"
	"cacherouter/router"

	"github.com/cespare/xxhash/v2"
)

// table is a router's table with what only the command needs of it.
type table struct {
	router.Table
	digest [32]byte
}

// HashOf returns the hash of a key that Picker takes.
func (t *table) HashOf(key []byte) uint64 {
	if t.Hash == nil {
		return xxhash.Sum64(key)
	}
	return t.Hash(key)
}

// placement is what every distribution gives.
type placement interface {
	router.Picker
	Digest() [32]byte
}

// buildTable is the one place that knows the distributions by name.
func buildTable(p *poolConfig) (*table, error) {
	if err := checkServers(p.Servers); err != nil {
		return nil, err
	}
	t := new(table)
	var names []string
	var weights []int
	for _, s := range p.Servers {
		t.Servers = append(t.Servers, router.Server{Name: s.Name, Address: s.Address})
		names, weights = append(names, s.Name), append(weights, s.Weight)
	}
	var placed placement
	var err error
	switch p.Distribution {
	case "rendezvous":
		placed, err = rendezvous.New(names, weights)
	case "maglev":
		placed, err = maglev.New(names, weights)
	case "ring":
		placed, err = ring.New(names, weights)
	default:
		return t, t.likeOthers(p)
	}
	if err != nil {
		return nil, badField(err, "pool", "servers")
	}
	if p.Hash != "" || p.HashTag != "" {
		return nil, badField(fmt.Errorf("%s has no choice of hash or hash_tag: those belong to the distributions of other programs", p.Distribution), "pool", "distribution")
	}
	t.Picker, t.digest = placed, placed.Digest()
	return t, nil
}

// distributions returns the names of all distributions.
func distributions() []string {
	return append([]string{"rendezvous", "maglev", "ring"}, compat.Distributions()...)
}

// likeOthers places keys as another program does.
func (t *table) likeOthers(p *poolConfig) error {
	c := compat.Config{Distribution: p.Distribution, Hash: p.Hash, HashTag: p.HashTag}
	for _, s := range p.Servers {
		name := s.Name
		if name == s.Address {
			name = ""
		}
		c.Servers = append(c.Servers, compat.Server{Name: name, Addr: s.Address, Weight: s.Weight})
	}
	if !slices.Contains(compat.Distributions(), p.Distribution) {
		return badField(fmt.Errorf("unknown distribution %q: want one of %s", p.Distribution, strings.Join(distributions(), " ")), "pool", "distribution")
	}
	placed, err := compat.New(c)
	if err != nil {
		return badField(err, "pool", "distribution")
	}
	t.Picker, t.Hash, t.digest = placed, placed.Hash, placed.Digest()
	return nil
}
