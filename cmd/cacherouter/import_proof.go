package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"cacherouter/mcrouter"
	"cacherouter/memproto"
	"cacherouter/router"
)

// origin is where keys are by another program's rules.
type origin struct {
	says     string   // what it is, for people
	listen   string   // the address of ours by whose routes the keys come; empty means those of all
	pool     string   // a pool of ours that is compared without routes; empty means that they decide
	prefixes []string // what keys begin with that are worth a comparison

	// home tells where a key is, whichever program it is that says so.
	home func(key string) (mcrouter.Home, error)
}

// maxShown is how many keys are shown that do not stay where they are.
const maxShown = 3

// verdict counts keys that were compared.
type verdict struct {
	all, same int
	refused   int // that are served here, and were not
	open      int // of which the other program's configuration alone does not tell where they are
	why       string
	moved     []string
}

// prove compares where keys are by what was imported with where they are by our configuration, which was read as the router reads it.
func (c *importCmd) prove(w io.Writer, cfg *config, origins []origin, given []string) error {
	if c.Sample == 0 && len(given) == 0 {
		return nil
	}
	wrong, open := 0, 0
	for _, o := range origins {
		ours, err := cfg.homes(&o)
		if err != nil {
			return err
		}
		var v verdict
		sample := rand.New(rand.NewPCG(c.Seed, 0))
		for i := range c.Sample {
			v.compare(&o, ours, sampleKey(sample, o.prefixes[i%len(o.prefixes)]))
		}
		for _, key := range given {
			v.compare(&o, ours, key)
		}
		v.tell(w, &o)
		wrong += v.all - v.same
		open += v.open
	}
	switch {
	case wrong > 0:
		return fmt.Errorf("%d of the compared keys do not stay where they are", wrong)
	case open > 0:
		return errors.New("not all keys were compared: --sample=0 takes the file without proof")
	}
	return nil
}

// givenKeys reads the keys of the file.
func (c *importCmd) givenKeys() (keys []string, err error) {
	if c.Keys == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("cannot read keys: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		key := lines.Text()
		if key == "" {
			continue
		}
		if len(key) > memproto.MaxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, fmt.Errorf("%s: %.40q is no key", c.Keys, key)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// homes returns what tells which servers a key of an origin is on by our configuration, none for what is refused, and what they call it.
func (c *config) homes(o *origin) (func(key string) (on []string, known string), error) {
	table := c.Routes
	if i := slices.IndexFunc(c.Listen, func(l listenerConfig) bool { return l.Address == o.listen }); i >= 0 && len(c.Listen[i].Routes) > 0 {
		table = c.Listen[i].Routes
	}
	targets, err := c.targets(table)
	if err != nil {
		return nil, err
	}
	pools := make(map[string]*poolConfig)
	for _, p := range c.each() {
		pools[p.name] = p
	}
	var picks []int
	return func(key string) (on []string, known string) {
		to := router.Target{Pool: o.pool, Known: key}
		if o.pool == "" {
			to = targets.Target(key)
		}
		p := pools[to.Pool]
		if p == nil {
			return nil, ""
		}
		picks = p.table.Picker.Pick(picks[:0], p.table.KeyHash([]byte(to.Known)), max(1, p.numCopies(p.Servers)))
		for _, i := range picks {
			on = append(on, p.Servers[i].Address)
		}
		return on, to.Known
	}, nil
}

// compare compares where a key was with where it is.
func (v *verdict) compare(o *origin, ours func(string) ([]string, string), key string) {
	was, err := o.home(key)
	on, known := ours(key)
	switch {
	case err != nil:
		v.open++
		v.why = err.Error()
		return
	case len(was.Writes)+len(was.Reads) == 0 && len(on) > 0:
		v.refused++
		return
	}
	v.all++
	switch {
	case stays(was, on) && (known == was.Known || len(on) == 0):
		v.same++
	case len(v.moved) == maxShown:
	default:
		text := fmt.Sprintf("%s was on %s and is on %s", plainly(key), listed(append(was.Writes, was.Reads...)), listed(on))
		if known != was.Known && len(on) > 0 {
			text += fmt.Sprintf(", as %s and not as %s", plainly(known), plainly(was.Known))
		}
		v.moved = append(v.moved, text)
	}
}

// stays reports whether a key stays where it was. It does if all servers that we keep it on are among those that it was stored on, or
// read from if it was not stored, and if one of them was read from.
func stays(was mcrouter.Home, on []string) bool {
	if len(was.Writes) == 0 {
		was.Writes = was.Reads
	}
	for _, s := range on {
		if !slices.Contains(was.Writes, s) {
			return false
		}
	}
	read := len(was.Reads) == 0 || slices.ContainsFunc(was.Reads, func(s string) bool { return slices.Contains(on, s) })
	return read && (len(on) > 0 || len(was.Writes) == 0)
}

// listed are some servers for people.
func listed(list []string) string {
	if len(list) == 0 {
		return "no server"
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), " ")
}

// tell says what came out.
func (v *verdict) tell(w io.Writer, o *origin) {
	fmt.Fprintf(w, "cacherouter: %s: %d of %d keys stay where they are", o.says, v.same, v.all)
	if n := len(o.prefixes); n > 1 {
		fmt.Fprintf(w, " (%d prefixes)", n)
	}
	if v.refused > 0 {
		fmt.Fprintf(w, "; %d are served here and were not", v.refused)
	}
	if v.open > 0 {
		fmt.Fprintf(w, "; %d were not compared: %s", v.open, v.why)
	}
	fmt.Fprintln(w)
	for _, m := range v.moved {
		fmt.Fprintf(w, "cacherouter: %s: %s\n", o.says, m)
	}
}

// sampleKey makes a key that begins with a prefix, in one of the shapes that keys have.
func sampleKey(r *rand.Rand, prefix string) string {
	n := r.Uint64()
	shapes := []string{
		fmt.Sprintf("user:%d:profile", n%1e9),
		fmt.Sprintf("%016x%016x", n, r.Uint64()),
		fmt.Sprint(n % 1e6),
		fmt.Sprintf("{%d}:item:%d", n%1e4, n%97),
		fmt.Sprintf("page|#|%d", n%1e5),
		fmt.Sprintf("%d|#|page", n%1e5),
		"long:" + strings.Repeat(fmt.Sprint(n), 10),
	}
	key := prefix + shapes[r.IntN(len(shapes))]
	return key[:min(len(key), memproto.MaxKey)]
}
