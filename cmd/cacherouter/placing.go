package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cacherouter/membership"
	"cacherouter/membership/view"
	"cacherouter/router"
)

// placer makes a router's tables from membership's states. Placements are made again only
// when the servers that they count are others: mostly a state changes how servers are
// used, not where keys live. Any goroutine may use it.
type placer struct {
	mu   sync.Mutex
	pool poolConfig        // guarded by mu
	made map[string]*table // guarded by mu: by what they are made of
	last *router.Table     // guarded by mu
}

// use makes the tables that follow those of another pool. Its servers only give the order,
// which is part of some programs' placements.
func (p *placer) use(pool *poolConfig) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool, p.made = *pool, nil
	if pool.table != nil { // a large one takes a while
		p.made = map[string]*table{placementKey(pool): pool.table}
	}
}

// placementKey says in a word which pool's servers a placement is of.
func placementKey(p *poolConfig) string {
	var key strings.Builder
	key.WriteString(p.name + "\n")
	for _, s := range p.Servers {
		fmt.Fprintf(&key, "%s\n%s\n%d\n", s.Name, s.Address, s.Weight)
	}
	return key.String()
}

// parameters says in one line what the placement depends on beside its servers.
func (p *poolConfig) parameters() string {
	s := fmt.Sprintf("%s %q %q %q %q %q %d %d", p.Distribution, p.Hash, p.HashTag, p.HashStop, p.Seed, p.Mode, p.TableSize, p.Points)
	for _, part := range []*poolConfig{p.parts.failover, p.parts.warmUp} {
		if part != nil {
			s += " / " + part.parameters()
		}
	}
	if p.ordered() {
		for _, server := range p.Servers {
			s += " " + server.Name
		}
	}
	return s
}

// ordered reports whether the order of the servers makes a difference. A change of the list
// then moves most keys anyway, and is neither agreed nor handed over.
func (p *poolConfig) ordered() bool {
	if _, own := ours[p.Distribution]; own || len(p.Servers) < 2 {
		return false
	}
	turned := *p
	turned.Servers = slices.Clone(p.Servers)
	slices.Reverse(turned.Servers)
	a, errA := buildTable(p)
	b, errB := buildTable(&turned)
	return errA == nil && errB == nil && a.digest() != b.digest()
}

// table returns the table for a state, which the placement that it counts is part of.
func (p *placer) table(s *membership.State) (*table, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := make(map[string]*table, 3)
	placed := p.pool.inOrder(p.pool.own(s.Placed()))
	now, err := p.place(&p.pool, placed, used)
	if err != nil {
		return nil, err
	}
	t := &table{placed: now.placed, pool: now.pool, exact: now.exact}
	t.Picker, t.Hash, t.Shares = now.Picker, now.Hash, now.Shares
	index := make(map[string]int)
	for _, list := range [][]membership.Server{placed, s.Servers, s.Before, s.After} {
		for _, server := range list {
			if _, known := index[server.Name]; !known {
				index[server.Name] = len(t.Servers)
				t.Servers = append(t.Servers, asRouted(server))
			}
		}
	}
	if t.Before, err = p.placeOthers(&p.pool, p.pool.own(s.Before), index, used); err != nil {
		return nil, err
	}
	after, err := p.placeOthers(&p.pool, p.pool.own(s.After), index, used)
	if err != nil {
		return nil, err
	}
	if after.Picker != nil {
		t.After = []router.Placement{after}
	}
	t.Until, t.Astray = s.Until, p.pool.Distribution != "rendezvous" && p.pool.Distribution != "ring"
	if err := p.spread(t, placed); err != nil {
		return nil, err
	}
	t.lacks = p.pool.numCopies(now.pool.Servers) - t.Copies
	if err := p.addParts(t, s, index, used); err != nil {
		return nil, err
	}
	p.made, p.last = used, &t.Table
	return t, nil
}

// spread says in a table how its load is spread over the servers that are placed.
func (p *placer) spread(t *table, placed []membership.Server) error {
	weights, shares := make([]int, len(t.Servers)), make(map[string]int)
	for i, s := range placed { // which are the first of the table
		weights[i], shares[s.Name] = s.Weight, s.Share
	}
	t.Near = t.pool.near(t.Servers)
	return t.pool.spread(&t.Table, p.last, weights, shares)
}

// fixedTable returns the table of a pool whose servers are not watched, after the one
// before, which may be nil.
func (p *poolConfig) fixedTable(before *router.Table) (*table, error) {
	weights := make([]int, len(p.Servers))
	for i, s := range p.Servers {
		weights[i] = s.Weight
	}
	t := *p.table
	t.Near = p.near(t.Servers)
	return &t, p.spread(&t.Table, before, weights, nil)
}

// inOrder sorts servers as the configuration lists them, those that it does not know by
// name behind them.
func (p *poolConfig) inOrder(servers []membership.Server) []membership.Server {
	rank := make(map[string]int)
	for i, s := range p.Servers {
		rank[s.Name] = i - len(p.Servers)
	}
	servers = slices.Clone(servers)
	slices.SortStableFunc(servers, func(a, b membership.Server) int { return cmp.Compare(rank[a.Name], rank[b.Name]) })
	return servers
}

// place returns the placement of servers, made before if it was, and notes it as used.
func (p *placer) place(of *poolConfig, servers []membership.Server, used map[string]*table) (*table, error) {
	pool := *of
	pool.Servers = nil
	for _, s := range servers {
		pool.Servers = append(pool.Servers, serverConfig{Name: s.Name, Address: s.Address, Weight: s.Weight, Zone: of.zoneOf(s.Name)})
	}
	key := placementKey(&pool)
	t := p.made[key]
	if t == nil {
		var err error
		if t, err = buildTable(&pool); err != nil {
			return nil, err
		}
	}
	used[key] = t
	return t, nil
}

// placeOthers returns the placement, as a pool has it, of servers that are elsewhere in the table; the
// zero value for none.
func (p *placer) placeOthers(of *poolConfig, servers []membership.Server, index map[string]int, used map[string]*table) (others router.Placement, err error) {
	if len(servers) == 0 {
		return others, nil
	}
	servers = of.inOrder(servers)
	t, err := p.place(of, servers, used)
	if err != nil {
		return others, err
	}
	if !of.hashesLike(&p.pool) {
		others.Hash = t.KeyHash
	}
	moved := elsewhere{Picker: t.Picker, at: make([]int, len(servers))}
	for i, s := range servers {
		moved.at[i] = index[s.Name]
	}
	others.Picker = moved
	return others, nil
}

// elsewhere picks servers whose indexes in the table are others than in the placement.
type elsewhere struct {
	router.Picker
	at []int
}

// Pick implements router.Picker.
func (e elsewhere) Pick(dst []int, hash uint64, n int) []int {
	first := len(dst)
	dst = e.Picker.Pick(dst, hash, n)
	for i := first; i < len(dst); i++ {
		dst[i] = e.at[dst[i]]
	}
	return dst
}

// asRouted says how a server is used.
func asRouted(s membership.Server) router.Server {
	r := router.Server{Name: s.Name, Address: s.Address, Clean: s.Clean, Moved: s.Moved}
	switch {
	case !s.Reads:
		r.Reads = router.ReadNext
	case s.Probation && s.Status == view.In:
		r.Reads = router.ReadOne
	}
	switch s.Writes {
	case membership.Refuse:
		r.Writes = router.WriteNowhere
	case membership.Failover:
		r.Writes = router.WriteNext
	}
	return r
}
