package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"cacherouter/reload"
	"cacherouter/router"
)

// poolFlags name a pool, in a file or on the command line.
type poolFlags struct {
	Pool         string         `help:"The pool, where the file has several." placeholder:"NAME"`
	Config       string         `help:"Configuration file." type:"path" placeholder:"FILE"`
	Backends     []serverConfig `help:"Servers, each [name=]host:port[@weight]." placeholder:"SERVER,..."`
	Distribution string         `help:"How keys are placed." placeholder:"NAME"`
	Hash         string         `help:"The key hash, where the distribution leaves a choice." placeholder:"NAME"`
	HashTag      string         `help:"Two characters: only what stands between them is hashed." placeholder:"{}"`
	HashStop     string         `help:"Only what stands before this text is hashed." placeholder:"TEXT"`
	Seed         string         `help:"The seed, for mcproxy-jump and mcproxy-ring, or mcrouter's salt." placeholder:"S"`
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
	if len(c.Pools) > 1 && f.Pool == "" && f.shape() {
		return c, fmt.Errorf("%s has several pools, so that it takes --pool to say of one how keys are placed", f.Config)
	}
	if f.Pool == "" && len(c.Pools) > 1 {
		return c, nil
	}
	p, err := c.one(f.Pool)
	if err != nil {
		return c, err
	}
	f.apply(p)
	return c, nil
}

// shape reports whether the flags say anything of servers or placement.
func (f *poolFlags) shape() bool {
	of := *f
	of.Config, of.Pool = "", ""
	return !reflect.DeepEqual(of, poolFlags{})
}

// apply does to a pool what the flags say.
func (f *poolFlags) apply(p *poolConfig) {
	if len(f.Backends) > 0 {
		p.Servers = f.Backends
		p.File, p.DNS, p.SRV, p.Announced = "", nil, nil, false
	}
	for _, o := range []struct{ to, from *string }{
		{&p.Distribution, &f.Distribution},
		{&p.Hash, &f.Hash},
		{&p.HashTag, &f.HashTag},
		{&p.HashStop, &f.HashStop},
		{&p.Seed, &f.Seed},
		{&p.Mode, &f.Mode},
	} {
		*o.to = cmp.Or(*o.from, *o.to)
	}
	p.TableSize = cmp.Or(f.TableSize, p.TableSize)
	p.Points = cmp.Or(f.Points, p.Points)
}

type checkCmd struct {
	Config  string `help:"Configuration file." type:"path" required:"" placeholder:"FILE"`
	Against string `help:"Another one, that is in force: say what is otherwise, and which share of the keys that moves." type:"path" placeholder:"FILE"`
}

// Run checks a configuration file.
func (c *checkCmd) Run(s streams) error {
	cfg, err := loadConfig(c.Config)
	if err != nil {
		return err
	}
	if len(cfg.Pools) == 0 {
		fmt.Fprintf(s.out, "%s: ok, %s\n", c.Config, cfg.Pool.summary())
	} else {
		fmt.Fprintf(s.out, "%s: ok, %d pools\n", c.Config, len(cfg.Pools))
	}
	cfg.printPools(s.out)
	fmt.Fprintf(s.out, "  %s\n", cfg.engineHere())
	for _, doubt := range cfg.doubts() {
		fmt.Fprintf(s.err, "cacherouter: %s: warning: %s\n", c.Config, doubt)
	}
	for _, p := range cfg.each() {
		if p.table == nil {
			continue
		}
		if err := p.sayUnknown(s.err); err != nil {
			return cfg.within(p, err)
		}
	}
	if c.Against != "" {
		return c.compare(s, &cfg)
	}
	return nil
}

// compare prints what a reload of the file would change where another one is in force.
func (c *checkCmd) compare(s streams, cfg *config) error {
	before, err := loadConfig(c.Against)
	if err != nil {
		return err
	}
	r := &reload.Report{Outcome: reload.Applied, DryRun: true}
	next, pending, err := before.amended(cfg)
	if err != nil {
		return err
	}
	r.Upgrade = pending
	if r.Changes, err = before.changes(next, func(string) *table { return nil }); err != nil {
		return err
	}
	printReport(s.out, r)
	return nil
}

// summary says in a line what a pool is.
func (p *poolConfig) summary() string {
	if p.table == nil {
		return fmt.Sprintf("servers are found by pool.%s, %s", p.dynamic(), p.Distribution)
	}
	return fmt.Sprintf("%d servers, %s, digest %s", len(p.table.Servers), p.Distribution, p.table.digest())
}

// printPools prints the pools, and the routes in the order in which they decide.
func (c *config) printPools(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	if len(c.Pools) > 0 {
		for _, p := range c.each() {
			fmt.Fprintf(w, "  pool %s\t%s\n", p.name, p.summary())
		}
	}
	print := func(title string, routes []routeConfig) {
		for _, r := range longestFirst(routes) {
			if p, err := c.one(r.Pool); err == nil {
				r.Pool = p.name
			}
			fmt.Fprintf(w, "  %s %s\t%s\n", title, r.text(), r.says())
		}
	}
	print("route", c.Routes)
	for _, l := range c.Listen {
		print(l.Address+": route", l.Routes)
	}
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
	// Of the pool, if there is one only; else each key has its own.
	Distribution string `json:"distribution,omitempty"`
	Digest       string `json:"digest,omitempty"` // of the table, the same on every machine

	Keys []whereKey `json:"keys"`
}

// whereKey is where one key lives.
type whereKey struct {
	Key     string   `json:"key"`
	Hash    uint64   `json:"hash"`
	Home    string   `json:"home"`
	Next    string   `json:"if_home_dies,omitempty"`
	Servers []string `json:"servers"` // the candidates in order, home first

	// Known is what servers call the key, if that is another name.
	Known string `json:"known_as,omitempty"`

	// Of a router with several pools. A key that no pool has has no servers.
	Pool         string `json:"pool,omitempty"`
	Route        string `json:"route,omitempty"` // its prefix
	Distribution string `json:"distribution,omitempty"`
	Digest       string `json:"digest,omitempty"`
}

// maxCandidates is how many servers where prints for a key.
const maxCandidates = 3

// Run prints where keys live.
func (c *whereCmd) Run(s streams) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	targets, err := cfg.targets(cfg.Routes)
	if err != nil {
		return err
	}
	tables, err := c.tables(&cfg, targets, s.err)
	if err != nil {
		return err
	}
	var r whereResult
	for _, key := range c.Keys {
		r.Keys = append(r.Keys, cfg.where(key, targets.Target(key), tables))
	}
	if t := tables[cfg.each()[0].name]; len(cfg.Pools) < 2 && t != nil {
		r.Distribution, r.Digest = t.pool.Distribution, t.digest()
	}
	if c.JSON {
		return printJSON(s.out, r)
	}
	for _, k := range r.Keys {
		fmt.Fprintln(s.out, k.line(len(cfg.Pools) > 1))
	}
	return nil
}

// where says where a key lives that goes to a target.
func (c *config) where(key string, target router.Target, tables map[string]*table) whereKey {
	t := tables[target.Pool]
	if t == nil {
		return whereKey{Key: key}
	}
	k := t.where(target.Known, t.pool.Servers)
	k.Key = key
	if len(c.Pools) > 1 {
		k.Pool, k.Route, k.Distribution, k.Digest = target.Pool, target.Prefix, t.pool.Distribution, t.digest()
	}
	if target.Known != key {
		k.Known = target.Known
	}
	return k
}

// tables makes those of the pools that the keys live in, by name.
func (c *whereCmd) tables(cfg *config, targets *router.Routes, errs io.Writer) (map[string]*table, error) {
	tables := make(map[string]*table)
	for _, key := range c.Keys {
		name := targets.Target(key).Pool
		if name == "" || tables[name] != nil {
			continue
		}
		p, err := cfg.one(name)
		if err != nil {
			return nil, err
		}
		if err := p.sayUnknown(errs); err != nil {
			return nil, cfg.within(p, err)
		}
		if tables[name], err = buildTable(p); err != nil {
			return nil, cfg.within(p, err)
		}
	}
	return tables, nil
}

// line is the key for people and scripts. Where there are several pools the last column says
// by which route the key came to which.
func (k *whereKey) line(several bool) string {
	columns := append([]string{k.Key}, k.Servers...)
	switch {
	case k.Home == "":
		columns = append(columns, "no route")
	case !several:
	case k.Route == "":
		columns = append(columns, fmt.Sprintf("pool %s, route for all other keys", k.Pool))
	default:
		columns = append(columns, fmt.Sprintf("pool %s, route %q", k.Pool, k.Route))
	}
	return strings.Join(columns, "\t")
}

func (t *table) where(key string, servers []serverConfig) whereKey {
	k := whereKey{Key: key, Hash: t.KeyHash([]byte(key))}
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
