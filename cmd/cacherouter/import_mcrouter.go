package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"cacherouter/mcrouter"
	"cacherouter/router"
)

// importMcrouter translates a configuration of mcrouter.
func importMcrouter(file string, b []byte, routePrefix string) (*imported, error) {
	in, err := mcrouter.Read(b, routePrefix)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	plan, err := in.Plan(router.MaxCopies)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(plan.Pools) == 0 {
		return nil, fmt.Errorf("%s: %w", file, errors.New("no route leads to a pool with servers"))
	}
	p := &mcrouterPrinter{Plan: plan, names: make(map[*mcrouter.Pool]string)}
	taken := make(map[string]bool)
	for _, pool := range plan.Pools {
		p.names[pool] = newPoolName(pool.Of, taken)
	}
	p.print(file)
	return &imported{text: p.String(), origins: p.origins(in, routePrefix)}, nil
}

// mcrouterPrinter prints what becomes of a configuration of mcrouter.
type mcrouterPrinter struct {
	strings.Builder
	*mcrouter.Plan
	names map[*mcrouter.Pool]string
}

func (p *mcrouterPrinter) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

func (p *mcrouterPrinter) print(file string) {
	p.line("# From %s, a configuration of mcrouter. Its flags are not in it: say in listen what --port says.", plainly(filepath.Base(file)))
	if len(p.Notes) > 0 {
		p.line("# What is another than it was:")
	}
	for _, n := range p.Notes {
		p.line("#   line %d, %s: %s", n.Line, plainly(n.Path), plainly(n.Text))
	}
	p.line("pools:")
	for _, pool := range p.Pools {
		p.pool(pool)
	}
	p.line("routes:")
	for _, r := range p.Routes {
		p.line("  - {%s}", strings.Join(p.route(r), ", "))
	}
	if p.FailoverTTL > 0 {
		p.line("membership:\n  failover_ttl: %ds", p.FailoverTTL)
	}
}

// pool prints one of the pools.
func (p *mcrouterPrinter) pool(pool *mcrouter.Pool) {
	name := p.names[pool]
	p.line("  %q:", name)
	say := func(ok bool, format string, args ...any) {
		if ok {
			p.line("    "+format, args...)
		}
	}
	say(name != pool.Of, "# pool %q of mcrouter's", pool.Of)
	say(pool.Distribution != "", "distribution: %s", pool.Distribution)
	say(pool.Seed != "", "seed: %q", pool.Seed)
	say(pool.Timeout > 0, "timeout: %v", pool.Timeout)
	say(pool.ConnectTimeout > 0, "connect_timeout: %v", pool.ConnectTimeout)
	say(pool.TLS, "tls: {}")
	say(pool.Failover != nil, "failover: %q", p.names[pool.Failover])
	say(pool.WarmUp != nil, "warm_up: %q", p.names[pool.WarmUp])
	say(pool.Copies > 0, "copies: {number: %d}", pool.Copies)
	say(pool.SplitOver > 0, "large_values: {split_over: %d}", pool.SplitOver)
	p.line("    servers: # their order is part of the placement")
	for i, s := range pool.Servers {
		if pool.Weights != nil {
			s += fmt.Sprint("@", pool.Weights[i])
		}
		p.line("      - %q", s)
	}
}

// route returns the fields of a route.
func (p *mcrouterPrinter) route(r mcrouter.Route) (fields []string) {
	say := func(ok bool, format string, args ...any) {
		if ok {
			fields = append(fields, fmt.Sprintf(format, args...))
		}
	}
	say(r.Prefix != "", "prefix: %q", r.Prefix)
	say(r.Deny, "deny: true")
	say(r.Pool != nil, "pool: %q", p.names[r.Pool])
	say(r.ReadOnly, "read_only: true")
	say(r.TTLCap > 0, "ttl_cap: %ds", r.TTLCap)
	say(r.Strip, "strip: true")
	say(r.Add != "", "add: %q", r.Add)
	say(r.Split.Pool != nil, "split: {pool: %q, percent: %v}", p.names[r.Split.Pool], r.Split.Percent)
	say(r.Shadow.Pool != nil, "shadow: {pool: %q, percent: %v}", p.names[r.Shadow.Pool], r.Shadow.Percent)
	return fields
}

// origins say where keys are by mcrouter's rules: by its routes, and in each pool alone.
func (p *mcrouterPrinter) origins(in *mcrouter.Config, routePrefix string) []origin {
	byRoute := origin{says: "the routes", home: in.Home}
	seen := make(map[string]bool)
	for _, prefix := range append(in.Prefixes(), "") {
		if !seen[prefix] {
			seen[prefix] = true
			byRoute.prefixes = append(byRoute.prefixes, prefix)
		}
	}
	all := []origin{byRoute}
	for _, pool := range p.Pools {
		all = append(all, origin{
			says: "pool " + p.names[pool], pool: p.names[pool], prefixes: []string{""},
			home: func(key string) (mcrouter.Home, error) { return in.HomeIn(pool, key) },
		})
	}
	return all
}
