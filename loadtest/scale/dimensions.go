//go:build linux

package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
	"cacherouter/loadtest/workload"
)

const (
	mostClients = 20_000
	spare       = 100 // descriptors that a process needs beside those of clients
	processes   = 4   // of memcached
	addresses   = 250 // of each of them, so that there are 1,000 servers
)

// dimension is what the points of one comparison differ in.
type dimension struct {
	name   string
	points func() []point
}

// point is one value. A point without a router of its own uses the one before it.
type point struct {
	value  string
	router *routerOf
	load   func(*load.Plan) // what is not load.DefaultPlan's; nil is nothing
}

// routerOf is how a router is started; zero fields are one loop, four servers, one pool, no route.
type routerOf struct {
	servers, loops, pools, routes int
	unwatched                     bool // without membership, whose probes are not what a request costs
}

var dimensions = []dimension{
	{"servers", func() []point { return servers(nil) }},
	{"servers, pipelined", func() []point { return servers(pipelined) }},
	{"watched servers", func() []point {
		return routers("servers", nil, []int{3, 100, 1000}, func(n int) routerOf { return routerOf{servers: n} })
	}},
	{"clients", func() (all []point) {
		most := min(mostClients, process.RaiseDescriptors(mostClients+spare)-spare)
		for i, n := range []int{1, 50, 500, 5000, most} {
			p := point{value: fmt.Sprint(n, " clients"), load: func(p *load.Plan) { p.Connections = n }}
			if i == 0 {
				p.router = &routerOf{}
			}
			all = append(all, p)
		}
		return all
	}},
	{"loops", func() []point {
		return routers("loops", nil, []int{1, 2, 4}, func(n int) routerOf { return routerOf{loops: n} })
	}},
	{"pools", func() []point {
		return routers("pools", nil, []int{1, 2, 8, 32}, func(n int) routerOf { return routerOf{pools: n} })
	}},
	{"routes", func() []point {
		return routers("routes", nil, []int{1, 10, 100, 1000}, func(n int) routerOf { return routerOf{pools: 2, routes: n} })
	}},
	{"hot keys", func() (all []point) {
		for i, choice := range []workload.Choice{"uniform", "zipf:0.9", "zipf:1.1", "zipf:1.5", "hotspot:0.9:1:60"} {
			p := point{value: string(choice), load: func(p *load.Plan) { p.Choice = choice }}
			if i == 0 {
				p.router = &routerOf{}
			}
			all = append(all, p)
		}
		return all
	}},
}

func pipelined(p *load.Plan) { p.Pipeline = 16 }

func servers(change func(*load.Plan)) []point {
	return routers("servers", change, []int{3, 10, 30, 100, 300, 1000}, func(n int) routerOf { return routerOf{servers: n, unwatched: true} })
}

func routers(what string, change func(*load.Plan), counts []int, of func(int) routerOf) (all []point) {
	for _, n := range counts {
		r := of(n)
		all = append(all, point{value: fmt.Sprint(n, " ", what), router: &r, load: change})
	}
	return all
}

func (p point) plan(target string) load.Plan {
	plan := load.DefaultPlan(target)
	if p.load != nil {
		p.load(&plan)
	}
	return plan
}

// startServers starts memcached processes that listen on many addresses each.
func (s *stage) startServers(ctx context.Context) error {
	for i := range processes {
		var listen []string
		for j := range addresses {
			listen = append(listen, address(i, j))
		}
		m, err := process.StartMemcachedOn(ctx, s.dir, listen, "-c", "20000")
		if err != nil {
			return err
		}
		s.servers = append(s.servers, m)
	}
	return nil
}

func address(i, j int) string { return fmt.Sprintf("127.0.%d.%d", i+1, j+1) }

// backends are the first n servers, which belong to all processes alike.
func (s *stage) backends(n int) (all []string) {
	for k := range n {
		i, j := k%processes, k/processes
		_, port, _ := strings.Cut(s.servers[i].Addr, ":")
		all = append(all, address(i, j)+":"+port)
	}
	return all
}

// arguments are those of a point's router.
func (p point) arguments(s *stage) (backends, args []string, err error) {
	r := p.router
	n := r.servers
	if n == 0 {
		n = processes
	}
	args = []string{"--loops", strconv.Itoa(max(r.loops, 1))}
	if r.unwatched {
		args = append(args, "--no-membership")
	}
	if r.pools == 0 {
		return s.backends(n), args, nil
	}
	file := filepath.Join(s.dir, fmt.Sprintf("pools-%d-%d.yml", r.pools, r.routes))
	err = os.WriteFile(file, []byte(r.config(s.backends(n))), 0o600)
	return nil, append(args, "--config", file), err
}

// config has pools of the same servers, and routes by prefix, of which the load's keys have the last one or none.
func (r *routerOf) config(servers []string) string {
	var b strings.Builder
	b.WriteString("pools:\n")
	for i := range r.pools {
		fmt.Fprintf(&b, "  p%d: {servers: [%s]}\n", i, strings.Join(servers, ", "))
	}
	b.WriteString("routes:\n")
	for i := range max(r.routes, r.pools) - 1 {
		fmt.Fprintf(&b, "  - {prefix: 'tenant%d:', pool: p%d}\n", i, i%r.pools)
	}
	fmt.Fprintf(&b, "  - {pool: p%d}\n", r.pools-1)
	return b.String()
}
