package router

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"cacherouter/memproto"
	"cacherouter/quota"

	"github.com/cespare/xxhash/v2"
)

// Route says to which pool keys go, and what they may.
type Route struct {
	// Prefix is what the keys begin with, as clients know them; empty means all that no
	// other route has. The longest that fits decides.
	Prefix string
	// Pool is the name of their pool; empty if Deny is set.
	Pool string
	// Deny answers every request with an error, ReadOnly those that change something.
	Deny, ReadOnly bool
	// MaxTTL bounds the life of what is stored and touched, in whole seconds; 0 means no
	// bound.
	MaxTTL time.Duration
	// Strip takes the prefix off the key before a server sees it, and Add is put before it
	// then.
	Strip bool
	Add   string
	// Split sends a share of the keys to another pool: by their hashes, so that a key stays
	// where it is while the share grows, and all routers send it there.
	Split Split
	// Shadow is sent a share of the requests, too; see [Split.Share].
	Shadow Split
	// Compare compares the answers of that pool to reads with those of the route's own.
	Compare bool
	// Quota bounds what may be asked by the route, through all loops together.
	Quota quota.Config
	// Priority says how soon its requests are shed; see [PoolConfig.Shed].
	Priority Priority
}

// Split is the other pool of a route; none if Pool is empty.
type Split struct {
	Pool  string
	Share float64 // of the keys, from 0 to 1
}

// routes are a list of routes, ready for use. They are sorted, so that all prefixes that
// fit a key lie on a chain that begins with the last one that is not behind the key: each
// knows the longest of the others that it begins with itself. They are never changed.
type routes struct {
	list []route
	// first says where those begin whose first byte is not below the index.
	first [257]int32
	rest  *route // nil if there is none
	only  *Pool  // that all keys go to; nil if they are several or a route says more
}

// route is one of them.
type route struct {
	prefix []byte
	pool   *Pool  // nil if deny is set
	wider  *route // nil if there is none but the rest

	deny, readOnly bool
	maxTTL         int64 // in seconds; 0 means no bound
	strip          int   // bytes to take off keys
	add            []byte
	other          *Pool  // of a share of the keys
	below          uint64 // the hashes of those; 0 if there are none
	shade          *Pool  // sees a share of the requests
	shadeBelow     uint64 // the hashes of their keys; 0 if there are none
	compares       bool
	quota          *quota.Quota
	bounds         quota.Config // that it is made of
	priority       Priority
}

// What is said of keys that have no route, or one that does not let them pass.
var (
	noRoute  = []byte("SERVER_ERROR no route for key\r\n")
	denied   = []byte("SERVER_ERROR route denies key\r\n")
	readOnly = []byte("SERVER_ERROR route is read only\r\n")
)

// newRoute makes a route ready.
func newRoute(r Route, pools []*Pool) (route, error) {
	t := route{
		prefix: []byte(r.Prefix), deny: r.Deny, readOnly: r.ReadOnly, maxTTL: int64(r.MaxTTL / time.Second), add: []byte(r.Add), compares: r.Compare,
		pool: named(pools, r.Pool), priority: r.Priority, bounds: r.Quota,
	}
	if r.Strip {
		t.strip = len(r.Prefix)
	}
	var err error
	if t.other, t.below, err = r.Split.find(pools); err == nil {
		t.shade, t.shadeBelow, err = r.Shadow.find(pools)
	}
	if err == nil {
		t.quota, err = quota.New(r.Quota)
	}
	if err != nil {
		return t, fmt.Errorf("route %q: %w", r.Prefix, err)
	}
	switch {
	case t.pool == nil && (!r.Deny || r.Pool != ""):
		return t, fmt.Errorf("route %q: no pool %q", r.Prefix, r.Pool)
	case len(r.Prefix) > memproto.MaxKey || len(r.Add) > memproto.MaxKey:
		return t, fmt.Errorf("route %q: longer than a key", r.Prefix)
	case r.MaxTTL != time.Duration(t.maxTTL)*time.Second || r.MaxTTL < 0:
		return t, fmt.Errorf("route %q: %v is not a number of whole seconds", r.Prefix, r.MaxTTL)
	}
	return t, nil
}

// find returns the pool, and the bound of the hashes that are its share.
func (s Split) find(pools []*Pool) (pool *Pool, below uint64, err error) {
	if s.Pool == "" {
		return nil, 0, nil
	}
	pool = named(pools, s.Pool)
	if pool == nil || !(s.Share >= 0 && s.Share <= 1) {
		return nil, 0, fmt.Errorf("no pool %q, or a share of %v", s.Pool, s.Share)
	}
	return pool, s.below(), nil
}

// below bounds the hashes of the keys that are the share.
func (s Split) below() uint64 { return uint64(s.Share * (1 << 32)) }

// poolOf returns the pool of a key.
func (r *route) poolOf(key []byte) *Pool {
	if r.below > 0 && splitHash(key) < r.below {
		return r.other
	}
	return r.pool
}

// splitHash is the hash, of 32 bits, by which routes are split. It must have nothing in common
// with what places keys within their pools: those of a split would not be spread evenly.
func splitHash(key []byte) uint64 {
	h := xxhash.Sum64(key)
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return h>>32 ^ h>>5&0xffffffff
}

// plain reports whether the route says nothing but where keys go.
func (r *route) plain() bool {
	return !r.deny && !r.readOnly && r.maxTTL == 0 && r.shadeBelow == 0 && !r.renames() && r.quota == nil && r.priority == Normal
}

// renames reports whether servers know the route's keys by other names.
func (r *route) renames() bool { return r != nil && (r.strip > 0 || len(r.add) > 0) }

// appendKey appends what servers call a client's key.
func (r *route) appendKey(dst, key []byte) []byte {
	return append(append(dst, r.add...), key[r.strip:]...)
}

// appendOwn appends what the client calls a key of the servers.
func (r *route) appendOwn(dst, key []byte) []byte {
	return append(append(dst, r.prefix[:r.strip]...), key[len(r.add):]...)
}

// refuses returns what is said to a request on one of the route's keys, nil if it may pass.
func (r *route) refuses(k memproto.Kind) []byte {
	switch {
	case r.deny:
		return denied
	case r.readOnly && k == memproto.Changes:
		return readOnly
	}
	return nil
}

// newRoutes checks the routes and makes them ready. Without any all keys go to the first of
// the pools.
func newRoutes(list []Route, pools []*Pool) (*routes, error) {
	if len(list) == 0 {
		return &routes{rest: &route{pool: pools[0]}, only: pools[0]}, nil
	}
	t := new(routes)
	for _, r := range list {
		one, err := newRoute(r, pools)
		switch {
		case err != nil:
			return nil, err
		case r.Prefix != "":
			t.list = append(t.list, one)
		case t.rest != nil:
			return nil, errors.New("two routes for the rest of the keys")
		default:
			t.rest = &one
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
	t.only = t.alone()
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

// alone returns the pool that all keys go to, nil if they are several or a route says more.
func (t *routes) alone() *Pool {
	if t.rest == nil || !t.rest.plain() || t.rest.below > 0 {
		return nil
	}
	for i := range t.list {
		if r := &t.list[i]; r.pool != t.rest.pool || !r.plain() || r.below > 0 {
			return nil
		}
	}
	return t.rest.pool
}

// lead returns the worker of a key's pool, and its route if that says more than where; or
// what is said to a request of a kind on the key, in place of serving it.
func (s *session) lead(key []byte, k memproto.Kind) (w *worker, r *route, refusal []byte) {
	if s.only != nil {
		return s.only, nil, nil
	}
	if r = s.routes.find(key); r == nil {
		return nil, nil, noRoute
	}
	if refusal = r.refuses(k); refusal != nil {
		return nil, nil, refusal
	}
	if w = s.front.workerOf(r.poolOf(key)); r.plain() {
		r = nil
	}
	return w, r, nil
}

// refused counts a request that its route does not let pass.
func (f *front) refused(why []byte) {
	if string(why) == string(noRoute) {
		f.stats.Unrouted++
	} else {
		f.stats.Denied++
	}
}

// lead finds the request's pool, and reports whether it may go there; else it is over.
func (q *request) lead(key []byte, k memproto.Kind, v memproto.Verb) bool {
	w, r, refusal := q.session.lead(key, k)
	switch {
	case q.hidden: // must not be refused for want of a quota
	case refusal != nil:
		q.session.front.refused(refusal)
	default:
		refusal = q.enter(r)
	}
	if refusal != nil {
		q.verb, q.came = v, 0 // which is about what servers are asked
		q.finish(refusal)
		return false
	}
	q.w = w
	if r != nil {
		q.stray().under = r
	}
	return true
}

// follow finds the request's pool, and returns it as servers are to get it, with their name
// for its key; nil if the request is over.
func (q *request) follow(r *memproto.Request, key []byte) (*memproto.Request, []byte) {
	if !q.lead(key, r.Kind(), r.Verb) {
		return nil, nil
	}
	if q.strayed && q.under.renames() {
		f := q.w.front // the request may be over, and used again
		r = q.renamed(r, key)
		key = f.key
	}
	return r, key
}

// obey returns what servers are to get as the request's route wants it, and shows it to the
// pool that is to see it.
func (q *request) obey(raw []byte) []byte {
	q.leaveShadow(raw)
	if q.under != nil && q.under.maxTTL > 0 && q.kind == memproto.Changes {
		return q.capped(raw)
	}
	return raw
}

// renamed returns a request as servers are to get it: with their name for its key. A key
// that is none then is refused as memcached does; the request is over and nil.
func (q *request) renamed(r *memproto.Request, key []byte) *memproto.Request {
	f := q.w.front
	f.key = q.under.appendKey(f.key[:0], key)
	f.words = r.AppendRenamed(f.words[:0], f.key)
	_, status := f.parser.Parse(f.words, &f.other)
	if cap(f.words) > keepScratch {
		f.words = nil // it stays as long as other has it
	}
	if status == memproto.Complete && len(f.key) > 0 && len(f.key) <= memproto.MaxKey {
		return &f.other
	}
	f.stats.Refused[memproto.BadLine]++
	q.verb, q.came, q.under = r.Verb, 0, nil
	q.finish(badKey)
	return nil
}

// badKey is said of a key that is none when its prefix is off, or another before it.
var badKey = []byte(memproto.LineBadFormat + "\r\n")

// own puts a reply about the client's key, whom servers know by another name. It is valid
// until the next one.
func (q *request) ownReply(b []byte) []byte {
	f := q.w.front
	f.key = q.under.appendOwn(f.key[:0], q.call.Key)
	f.renamed = memproto.AppendReplyAbout(f.renamed[:0], b, f.key)
	b = f.renamed
	if cap(b) > keepScratch {
		f.renamed = nil
	}
	return b
}

// capped returns a request with its life bounded as its route says.
func (q *request) capped(raw []byte) []byte {
	f := q.w.front
	f.shortened = memproto.CapExpiry(f.shortened[:0], q.verb, raw, q.under.maxTTL, time.Now().Unix())
	raw = f.shortened
	if cap(raw) > keepScratch {
		f.shortened = nil
	}
	return raw
}

// tooLarge refuses a store whose value is too large for its key's pool, though not for every
// pool, as the parser refuses one that is: the old value must not outlive it.
func (s *session) tooLarge(r *memproto.Request) bool {
	w, _, _ := s.lead(r.RouteKey(s.front.keyBuf[:]), memproto.Changes)
	if w == nil || len(r.Data)-2 <= w.p.cfg.MaxValue {
		return false
	}
	s.front.stats.Refused[memproto.TooLarge]++
	s.forget(r)
	s.say(memproto.LineTooLarge)
	return true
}
