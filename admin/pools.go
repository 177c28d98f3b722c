package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cacherouter/hotkey"
)

// Pool is one of several pools of a router, as it is shown.
type Pool struct {
	Name string
	// Router tells what is about the pool alone, and its table.
	Router Router
	// The others are as in Config.
	Membership Membership
	HotKeys    func(k int) *hotkey.Report
	Placing    func() *Placing
}

// addPools makes what shows each of several pools: a server like this one, to which requests
// for the pool are given.
func (s *Server) addPools() {
	s.pools = make(map[string]*Server)
	for _, p := range s.cfg.Pools {
		c := s.cfg
		c.Pool = p.Name
		c.Router, c.Membership, c.HotKeys, c.Placing = p.Router, p.Membership, p.HotKeys, p.Placing
		of := newServer(c)
		of.ready, of.started = s.ready, s.started
		s.pools[p.Name] = of
	}
}

// Show makes the server show other pools from now on: the first one for all, and each of several
// by itself. Streams of events end, and whoever follows them asks again. Any goroutine may call it.
func (s *Server) Show(first Pool, pools []Pool) {
	c := s.cfg
	c.Pool, c.Pools = first.Name, pools
	c.Router, c.Membership, c.HotKeys, c.Placing = first.Router, first.Membership, first.HotKeys, first.Placing
	next := newServer(c)
	next.ready, next.started = s.ready, s.started
	next.addPools()
	before := s.next.Swap(next)
	if before == nil {
		before = s
	}
	before.endStreams()
}

// showing passes requests to what shows the pools that there are.
func (s *Server) showing(own http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next := s.next.Load(); next != nil {
			next.http.Handler.ServeHTTP(w, r)
			return
		}
		own.ServeHTTP(w, r)
	})
}

// byPool gives requests of the API that name a pool to what shows it. A key without a pool
// is shown where its route leads.
func (s *Server) byPool(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("pool")
		of := s.pools[name]
		if name == "" && s.cfg.Target != nil && r.URL.Path == "/api/v1/where" {
			if key, err := keyOf(r.URL.RawQuery); err == nil {
				of = s.pools[s.cfg.Target(key).Pool]
			}
		}
		change := r.URL.Path == "/api/v1/drain" || r.URL.Path == "/api/v1/undrain"
		switch {
		case change && name == "" && len(s.pools) > 0:
			http.Error(w, "there are several pools: want ?pool=NAME", http.StatusBadRequest)
		case !strings.HasPrefix(r.URL.Path, "/api/v1/") || name == "" && of == nil || len(s.pools) == 0 && name == s.cfg.Pool:
			next.ServeHTTP(w, r)
		case of == nil:
			http.Error(w, fmt.Sprintf("no pool is named %.80q", name), http.StatusNotFound)
		default:
			of.http.Handler.ServeHTTP(w, r)
		}
	})
}

// PoolInfo is one line of what /api/v1/pools says.
type PoolInfo struct {
	Name string `json:"name"`
	// Servers is how many there are, Up how many of them the router can reach.
	Servers int `json:"servers"`
	Up      int `json:"up"`
	// Distribution and Digest are those of the placement; empty if it cannot be shown.
	Distribution string `json:"distribution,omitempty"`
	Digest       string `json:"digest,omitempty"`
}

// poolsPage answers GET /api/v1/pools.
func (s *Server) poolsPage(w http.ResponseWriter, r *http.Request) {
	all := s.cfg.Pools
	if len(all) == 0 {
		all = []Pool{{Name: s.cfg.Pool, Router: s.cfg.Router, Placing: s.cfg.Placing}}
	}
	out := []PoolInfo{}
	for _, p := range all {
		smp, err := take(r.Context(), p.Router)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		info := PoolInfo{Name: p.Name, Servers: len(smp.table.Servers), Up: smp.up}
		if p.Placing != nil {
			placing := p.Placing()
			info.Distribution, info.Digest = placing.Distribution, placing.Digest
		}
		out = append(out, info)
	}
	reply(w, out)
}

// anyPoolUsable reports whether reads can be sent to any server of any pool. Where servers are
// not watched they count as usable.
func (s *Server) anyPoolUsable() bool {
	usable := func(m Membership) bool { return m == nil || anyUsable(m.View()) }
	if len(s.cfg.Pools) == 0 {
		return usable(s.cfg.Membership)
	}
	return slices.ContainsFunc(s.cfg.Pools, func(p Pool) bool { return usable(p.Membership) })
}
