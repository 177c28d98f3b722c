package router

import (
	"bytes"
	"fmt"
	"slices"

	"cacherouter/memproto"
)

// Route says to which pool keys go.
type Route struct {
	// Prefix is what the keys begin with, as the servers know them; empty means all that no
	// other route has. The longest that fits decides.
	Prefix string
	// Pool is the name of their pool.
	Pool string
}

// routes are a list of routes, ready for use. They are sorted, so that all prefixes that
// fit a key lie on a chain that begins with the last one that is not behind the key: each
// knows the longest of the others that it begins with itself. They are never changed.
type routes struct {
	list []route
	// first says where those begin whose first byte is not below the index.
	first [257]int32
	rest  *route // nil if there is none
}

// route is one of them.
type route struct {
	prefix []byte
	pool   int    // in Router.pools
	wider  *route // nil if there is none but the rest
}

// noRoute is said when no pool has a key.
var noRoute = []byte("SERVER_ERROR no route for key\r\n")

// newRoutes checks the routes and makes them ready. Without any all keys go to the first of
// the pools.
func newRoutes(list []Route, pools []*Pool) (*routes, error) {
	if len(list) == 0 {
		return &routes{rest: new(route)}, nil
	}
	t := new(routes)
	for _, r := range list {
		pool := slices.IndexFunc(pools, func(p *Pool) bool { return p.cfg.Name == r.Pool })
		switch {
		case pool < 0:
			return nil, fmt.Errorf("route %q: no pool %q", r.Prefix, r.Pool)
		case len(r.Prefix) > memproto.MaxKey:
			return nil, fmt.Errorf("route %q: longer than a key", r.Prefix)
		case r.Prefix != "":
			t.list = append(t.list, route{prefix: []byte(r.Prefix), pool: pool})
		case t.rest != nil:
			return nil, fmt.Errorf("two routes for the rest of the keys")
		default:
			t.rest = &route{pool: pool}
		}
	}
	slices.SortFunc(t.list, func(a, b route) int { return bytes.Compare(a.prefix, b.prefix) })
	return t, t.link()
}

// link fills in what find goes by.
func (t *routes) link() error {
	for i := 1; i < len(t.list); i++ {
		r, before := &t.list[i], &t.list[i-1]
		if bytes.Equal(r.prefix, before.prefix) {
			return fmt.Errorf("two routes for prefix %q", r.prefix)
		}
		for r.wider = before; r.wider != nil && !bytes.HasPrefix(r.prefix, r.wider.prefix); {
			r.wider = r.wider.wider
		}
	}
	for b := range t.first {
		n, _ := slices.BinarySearchFunc(t.list, b, func(r route, b int) int { return int(r.prefix[0]) - b })
		t.first[b] = int32(n)
	}
	return nil
}

// find returns the route of a key, nil if there is none.
func (t *routes) find(key []byte) *route {
	if len(key) == 0 || len(t.list) == 0 {
		return t.rest
	}
	// The last one that is not behind the key, if it begins with the same byte.
	lo, hi := int(t.first[key[0]]), int(t.first[int(key[0])+1])
	first := lo
	for lo < hi {
		if m := (lo + hi) / 2; bytes.Compare(t.list[m].prefix, key) <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == first {
		return t.rest
	}
	for r := &t.list[lo-1]; r != nil; r = r.wider {
		if bytes.HasPrefix(key, r.prefix) {
			return r
		}
	}
	return t.rest
}

// alone returns the pool that all keys go to, if it is one.
func (t *routes) alone() (pool int, ok bool) {
	if t.rest == nil {
		return 0, false
	}
	for i := range t.list {
		if t.list[i].pool != t.rest.pool {
			return 0, false
		}
	}
	return t.rest.pool, true
}

// workerOf returns the worker of a key's pool, nil if no pool has the key.
func (s *session) workerOf(key []byte) *worker {
	if s.only != nil {
		return s.only
	}
	if r := s.routes.find(key); r != nil {
		return s.front.workers[r.pool]
	}
	return nil
}

// tooLarge refuses a store whose value is too large for its key's pool, though not for every
// pool, as the parser refuses one that is: the old value must not outlive it.
func (s *session) tooLarge(r *memproto.Request) bool {
	w := s.workerOf(r.RouteKey(s.front.keyBuf[:]))
	if w == nil || len(r.Data)-2 <= w.p.cfg.MaxValue {
		return false
	}
	s.front.stats.Refused[memproto.TooLarge]++
	s.forget(r)
	s.say(memproto.LineTooLarge)
	return true
}
