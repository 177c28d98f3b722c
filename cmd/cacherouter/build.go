package main

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

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
	placed placement
	pool   *poolConfig // what it is made of
	exact  bool        // Spans is the placement itself, not samples of it
	// lacks is how many copies of each item there should be more than there are servers.
	lacks int
}

// digest returns the table's fingerprint, the same on every machine.
func (t *table) digest() string {
	d := t.placed.Digest()
	return hex.EncodeToString(d[:8])
}

// placement is what every distribution gives.
type placement interface {
	router.Picker
	Digest() [32]byte
	// Spans yields the space of hashes in order, as pairs of a span's last hash and its
	// home.
	Spans() iter.Seq2[uint64, int]
}

// ours are the distributions of our own, by name.
var ours = map[string]func(p *poolConfig, names []string, weights []int) (placement, error){
	"rendezvous": func(p *poolConfig, names []string, weights []int) (placement, error) {
		return rendezvous.NewSlots(names, weights, cmp.Or(p.TableSize, rendezvous.DefaultSlots))
	},
	"maglev": func(p *poolConfig, names []string, weights []int) (placement, error) {
		return maglev.NewSize(names, weights, cmp.Or(p.TableSize, maglev.SmallSize))
	},
	"ring": func(p *poolConfig, names []string, weights []int) (placement, error) {
		return ring.NewPoints(names, weights, cmp.Or(p.Points, ring.DefaultPoints))
	},
}

// buildTable is the one place that knows the distributions by name.
func buildTable(p *poolConfig) (*table, error) {
	if err := checkServers(p.Servers); err != nil {
		return nil, err
	}
	if err := p.checkOptions(); err != nil {
		return nil, err
	}
	t := &table{exact: true, pool: p}
	for _, s := range p.Servers {
		t.Servers = append(t.Servers, router.Server{Name: s.Name, Address: s.Address})
	}
	var err error
	if _, own := ours[p.Distribution]; own && p.HashTag != "" {
		if t.Hash, err = compat.Tagged(xxhash.Sum64, p.HashTag); err != nil {
			return nil, badField(err, "pool", "hash_tag")
		}
	}
	switch _, own := ours[p.Distribution]; {
	case !own:
		err = t.likeOthers(p)
	case p.Copies.Zones:
		t.placed, err = p.byZone(placeOwn)
	default:
		t.placed, err = placeOwn(p, p.Servers)
	}
	if err != nil {
		return nil, badField(err, "pool", "distribution")
	}
	t.Picker = t.placed
	t.Shares = sync.OnceValue(func() []float64 { return sharesOf(t.placed, len(t.Servers)) })
	return t, nil
}

// placeOwn places keys on servers by one of our own distributions.
func placeOwn(p *poolConfig, servers []serverConfig) (placement, error) {
	var names []string
	var weights []int
	for _, s := range servers {
		names, weights = append(names, s.Name), append(weights, s.Weight)
	}
	return ours[p.Distribution](p, names, weights)
}

// sharesOf returns the share of the hashes that each of n servers is the home of.
func sharesOf(p placement, n int) []float64 {
	shares := make([]float64, n)
	start, whole := uint64(0), 0.0
	for last, home := range p.Spans() {
		width := float64(last-start) + 1
		shares[home] += width
		whole += width
		start = last + 1
	}
	for i := range shares {
		shares[i] /= whole
	}
	return shares
}

// checkOptions refuses options that the distribution does not have, which would
// otherwise be silently without effect.
func (p *poolConfig) checkOptions() error {
	if !slices.Contains(distributions(), p.Distribution) {
		return badField(fmt.Errorf("unknown distribution %q: want one of %s", p.Distribution, strings.Join(distributions(), " ")), "pool", "distribution")
	}
	_, own := ours[p.Distribution]
	for _, o := range []struct {
		name    string
		set, ok bool
	}{
		{"hash", p.Hash != "", !own},
		{"hash_stop", p.HashStop != "", !own},
		{"seed", p.Seed != "", !own},
		{"mode", p.Mode != "", !own},
		{"table_size", p.TableSize != 0, p.Distribution == "maglev" || p.Distribution == "rendezvous"},
		{"points", p.Points != 0, p.Distribution == "ring"},
	} {
		if o.set && !o.ok {
			return badField(fmt.Errorf("distribution %s has no such option", p.Distribution), "pool", o.name)
		}
	}
	return nil
}

// distributions returns the names of all distributions.
func distributions() []string {
	return append([]string{"rendezvous", "maglev", "ring"}, compat.Distributions()...)
}

// likeOthers places keys as another program does.
func (t *table) likeOthers(p *poolConfig) error {
	c := compat.Config{Distribution: p.Distribution, Hash: p.Hash, HashTag: p.HashTag, HashStop: p.HashStop, Seed: p.Seed, Mode: p.Mode}
	for _, s := range p.Servers {
		name := s.Name
		if name == s.Address {
			name = ""
		}
		c.Servers = append(c.Servers, compat.Server{Name: name, Addr: s.Address, Weight: s.Weight})
	}
	placed, err := compat.New(c)
	if err != nil {
		return err
	}
	t.placed, t.Hash, t.exact = placed, placed.Hash, placed.Exact()
	return nil
}
