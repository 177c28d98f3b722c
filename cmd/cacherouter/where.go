package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// poolFlags name a pool, in a file or on the command line.
type poolFlags struct {
	Config       string         `help:"Configuration file." type:"path" placeholder:"FILE"`
	Backends     []serverConfig `help:"Servers, each [name=]host:port[@weight]." placeholder:"SERVER,..."`
	Distribution string         `help:"How keys are placed." placeholder:"NAME"`
	Hash         string         `help:"The key hash, where the distribution leaves a choice." placeholder:"NAME"`
	HashTag      string         `help:"Two characters: only what stands between them is hashed." placeholder:"{}"`
	HashStop     string         `help:"Only what stands before this text is hashed." placeholder:"TEXT"`
	Seed         string         `help:"The seed, for mcproxy-jump and mcproxy-ring." placeholder:"S"`
	Mode         string         `help:"For mcproxy-ring: ketama, twemproxy, evcache or default." placeholder:"MODE"`
	TableSize    int            `help:"Slots of maglev's or rendezvous' table." placeholder:"N"`
	Points       int            `help:"Points of a server of weight 1 on the ring." placeholder:"N"`
}

// load returns the configuration that the flags ask for: the file's, changed by what
// stands on the command line.
func (f *poolFlags) load() (config, error) {
	c := defaultConfig()
	if f.Config != "" {
		var err error
		if c, err = loadConfig(f.Config); err != nil {
			return c, err
		}
	}
	if len(f.Backends) > 0 {
		c.Pool.Servers = f.Backends
		c.Pool.File, c.Pool.DNS, c.Pool.SRV, c.Pool.Announced = "", nil, nil, false
	}
	for _, o := range []struct{ to, from *string }{
		{&c.Pool.Distribution, &f.Distribution},
		{&c.Pool.Hash, &f.Hash},
		{&c.Pool.HashTag, &f.HashTag},
		{&c.Pool.HashStop, &f.HashStop},
		{&c.Pool.Seed, &f.Seed},
		{&c.Pool.Mode, &f.Mode},
	} {
		*o.to = cmp.Or(*o.from, *o.to)
	}
	c.Pool.TableSize = cmp.Or(f.TableSize, c.Pool.TableSize)
	c.Pool.Points = cmp.Or(f.Points, c.Pool.Points)
	return c, nil
}

type checkCmd struct {
	Config string `help:"Configuration file." type:"path" required:"" placeholder:"FILE"`
}

// Run checks a configuration file.
func (c *checkCmd) Run(s streams) error {
	cfg, err := loadConfig(c.Config)
	if err != nil {
		return err
	}
	p := &cfg.Pool
	if p.table == nil {
		fmt.Fprintf(s.out, "%s: ok, servers are found by pool.%s, %s\n", c.Config, p.dynamic(), p.Distribution)
		return nil
	}
	fmt.Fprintf(s.out, "%s: ok, %d servers, %s, digest %s\n", c.Config, len(p.table.Servers), p.Distribution, p.table.digest())
	return p.sayUnknown(s.err)
}

// sayUnknown says what a pool may have that its configuration does not tell. It fails if
// that is all.
func (p *poolConfig) sayUnknown(w io.Writer) error {
	by := p.dynamic()
	switch {
	case by == "":
	case len(p.Servers) == 0:
		return badField(errors.New("servers are found while the router runs: name some with --backends, or ask a running router for /api/v1/members"), "pool", by)
	default:
		fmt.Fprintf(w, "cacherouter: only servers in the configuration are counted: those that pool.%s finds, and those that are out, only a running router knows (/api/v1/members)\n", by)
	}
	return nil
}

type whereCmd struct {
	poolFlags
	JSON bool     `name:"json" help:"Print JSON."`
	Keys []string `arg:"" name:"key" help:"Keys to place."`
}

// whereResult is what --json prints.
type whereResult struct {
	Distribution string     `json:"distribution"`
	Digest       string     `json:"digest"` // of the table, the same on every machine
	Keys         []whereKey `json:"keys"`
}

// whereKey is where one key lives.
type whereKey struct {
	Key     string   `json:"key"`
	Hash    uint64   `json:"hash"`
	Home    string   `json:"home"`
	Next    string   `json:"if_home_dies,omitempty"`
	Servers []string `json:"servers"` // the candidates in order, home first
}

// maxCandidates is how many servers where prints for a key.
const maxCandidates = 3

// Run prints where keys live.
func (c *whereCmd) Run(s streams) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if err := cfg.Pool.sayUnknown(s.err); err != nil {
		return err
	}
	t, err := buildTable(&cfg.Pool)
	if err != nil {
		return err
	}
	r := whereResult{Distribution: cfg.Pool.Distribution, Digest: t.digest()}
	for _, key := range c.Keys {
		r.Keys = append(r.Keys, t.where(key, cfg.Pool.Servers))
	}
	if c.JSON {
		return printJSON(s.out, r)
	}
	for _, k := range r.Keys {
		fmt.Fprintf(s.out, "%s\t%s\n", k.Key, strings.Join(k.Servers, "\t"))
	}
	return nil
}

func (t *table) where(key string, servers []serverConfig) whereKey {
	k := whereKey{Key: key, Hash: t.HashOf([]byte(key))}
	for _, i := range t.Picker.Pick(nil, k.Hash, maxCandidates) {
		k.Servers = append(k.Servers, servers[i].String())
	}
	k.Home = k.Servers[0]
	if len(k.Servers) > 1 {
		k.Next = k.Servers[1]
	}
	return k
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
