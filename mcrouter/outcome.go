package mcrouter

import (
	"cmp"
	"slices"
	"time"
)

// outcome is what a route handle comes to with us.
type outcome struct {
	pool          *Pool // nil if requests are refused
	readOnly      bool
	ttl           int64 // the longest life, in seconds; 0 means no bound
	ensure        string
	replace       string // what ensure is put in the place of, if replaces is set
	replaces      bool
	split, shadow Share
}

// outcome translates a route handle.
func (p *planner) outcome(h handle, depth int) (outcome, error) {
	if p.steps++; p.steps > maxSteps || depth > maxNesting {
		return outcome{}, h.at.fault("too many route handles")
	}
	h.at.see()
	h.field("type").see()
	h.field("name").see()
	switch h.kind {
	case "PoolRoute", "HashRoute", "SaltedFailoverRoute":
		return p.pooled(h, depth)
	case "Pool":
		return p.serversOf(h)
	case "NullRoute", "DevNullRoute", "ErrorRoute":
		h.field("response").see()
		return outcome{}, nil
	case "OperationSelectorRoute", "PrefixPolicyRoute", "RoutingGroupRoute":
		return p.byOperation(h, depth)
	case "ModifyKeyRoute":
		return p.modified(h, depth)
	case "ModifyExptimeRoute":
		return p.bounded(h, depth)
	case "BigValueRoute":
		return p.inParts(h, depth)
	case "AllSyncRoute", "AllAsyncRoute", "AllInitialRoute", "AllFastestRoute", "AllMajorityRoute":
		return p.broadcast(h, depth)
	case "RandomRoute", "LatestRoute", "HostIdRoute", "LoadBalancerRoute", "OriginalClientHashRoute":
		return p.anyOf(h, depth)
	case "FailoverRoute":
		return p.failover(h, depth)
	case "FailoverWithExptimeRoute":
		return p.failoverFor(h, depth)
	case "MissFailoverRoute":
		return p.missFailover(h, depth)
	case "WarmUpRoute":
		return p.warmUp(h, depth)
	case "ShadowRoute":
		return p.shadowed(h, depth)
	case "MigrateRoute":
		return p.migrate(h, depth)
	}
	return p.passed(h, depth)
}

// passed translates a handle that has no counterpart into what it asks first.
func (p *planner) passed(h handle, depth int) (outcome, error) {
	field := cmp.Or(firstOf[h.kind], later[h.kind])
	if field == "" {
		return outcome{}, h.at.fault("nothing is known of route handle %q", h.kind)
	}
	p.note(h.at, "%s has no counterpart: requests go where its %s sends them", h.kind, field)
	if !h.body.is(text) {
		return p.beneath(h, field, depth)
	}
	next, err := p.one(h.body)
	if err != nil {
		return outcome{}, err
	}
	return p.outcome(next, depth+1)
}

// beneath translates the handle in a field of another one.
func (p *planner) beneath(h handle, field string, depth int) (outcome, error) {
	h.field(field).see()
	next, err := p.child(h, field)
	if err != nil {
		return outcome{}, err
	}
	return p.outcome(next, depth+1)
}

// pooled translates a PoolRoute, or a HashRoute of a pool's servers.
func (p *planner) pooled(h handle, depth int) (outcome, error) {
	u, ok, err := p.use(h)
	switch {
	case err != nil:
		return outcome{}, err
	case !ok:
		return p.anyOf(h, depth)
	case len(u.pool.servers) == 0:
		p.note(u.pool.at, "a pool without servers is left out")
		return outcome{}, nil
	}
	pool, err := p.poolFor(u.pool)
	if err != nil {
		return outcome{}, err
	}
	pool.use, pool.Seed = u, u.hash.salt
	pool.Distribution, pool.Weights = u.hash.distribution()
	switch {
	case len(u.pool.servers) == 1: // whatever the hash
		pool.Distribution, pool.Seed, pool.Weights = distributions["Ch3"], "", nil
	case pool.Distribution == "":
		pool.Seed = ""
		p.note(h.at, "hash function %s%s has no counterpart: keys of pool %s move", u.hash.kind, u.hash.odd(), u.pool.name)
	}
	o := outcome{pool: p.intern(pool)}
	return o, p.addShadows(h, &o, depth)
}

// serversOf translates the servers of a pool, by whatever they are chosen.
func (p *planner) serversOf(h handle) (outcome, error) {
	from, err := p.poolOf(h)
	if err != nil || len(from.servers) == 0 {
		return outcome{}, err
	}
	pool, err := p.poolFor(from)
	if err != nil {
		return outcome{}, err
	}
	return outcome{pool: p.intern(pool)}, nil
}

// poolFor makes a pool of ours of one of mcrouter's.
func (p *planner) poolFor(from *pool) (*Pool, error) {
	pool := &Pool{Of: from.name, Distribution: distributions["Ch3"]}
	for _, s := range from.servers {
		pool.Servers = append(pool.Servers, s.address)
		pool.TLS = pool.TLS || s.secured
		p.checkProtocol(from.at, s.protocol)
	}
	if err := p.readSecurity(from, pool); err != nil {
		return nil, err
	}
	timeout, err := from.take("server_timeout").int(0)
	if err != nil {
		return nil, err
	}
	connect, err := from.take("connect_timeout").int(timeout)
	if err != nil {
		return nil, err
	}
	pool.Timeout, pool.ConnectTimeout = time.Duration(max(timeout, 0))*time.Millisecond, time.Duration(max(connect, 0))*time.Millisecond
	if v := from.take("keep_routing_prefix"); v.is(boolean) {
		pool.keeps = v.truth
	}
	return pool, nil
}

// readSecurity reads what concerns TLS and the protocol.
func (p *planner) readSecurity(from *pool, pool *Pool) error {
	protocol, err := from.take("protocol").string("")
	if err != nil {
		return err
	}
	p.checkProtocol(from.at, protocol)
	mech, err := from.take("security_mech").string("plain")
	if err != nil {
		return err
	}
	ssl := from.take("use_ssl")
	if pool.TLS = pool.TLS || mech != "plain" || ssl.is(boolean) && ssl.truth; pool.TLS {
		p.note(from.at, "TLS: certificates are always verified; say whose are trusted, and which one is shown, with ca, cert and key")
	}
	return nil
}

// checkProtocol notes a protocol that memcached does not speak.
func (p *planner) checkProtocol(at *value, protocol string) {
	if protocol != "" && protocol != "ascii" {
		p.note(at, "protocol %s has no counterpart: servers are spoken to as memcached", protocol)
	}
}

// intern returns the pool that is the same as another one, so that equal ones are one.
func (p *planner) intern(pool *Pool) *Pool {
	key := pool.key()
	if p.pools[key] == nil {
		p.pools[key] = pool
	}
	return p.pools[key]
}

// modified translates a ModifyKeyRoute.
func (p *planner) modified(h handle, depth int) (outcome, error) {
	o, err := p.beneath(h, "target", depth)
	if err != nil {
		return o, err
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{"ensure_key_prefix", &o.ensure}, {"replace_key_prefix", &o.replace}} {
		v := h.body.take(f.name)
		if v.is(text) && *f.to != "" {
			p.note(v, "has no counterpart, as keys are renamed already")
		} else if v.is(text) {
			*f.to = v.text
			o.replaces = o.replaces || f.name == "replace_key_prefix"
		}
	}
	if v := h.body.take("set_routing_prefix"); v.is(text) {
		p.note(v, "has no counterpart: servers see keys without routing prefix")
	}
	return o, nil
}

// bounded translates a ModifyExptimeRoute.
func (p *planner) bounded(h handle, depth int) (outcome, error) {
	o, err := p.beneath(h, "target", depth)
	if err != nil {
		return o, err
	}
	seconds, err := h.body.take("exptime").int(0)
	if err != nil {
		return o, err
	}
	action, err := h.body.take("action").string("set")
	if err != nil {
		return o, err
	}
	switch {
	case seconds == 0 && action == "min":
		return o, nil
	case seconds <= 0 || seconds > 30*24*3600:
		p.note(h.at, "exptime %d has no counterpart: lives stay as clients want them", seconds)
		return o, nil
	case action != "min":
		p.note(h.at, "ModifyExptimeRoute: lives are bounded by %d s, but none is made longer", seconds)
	}
	if o.ttl = cmp.Or(o.ttl, seconds); seconds < o.ttl {
		o.ttl = seconds
	}
	return o, nil
}

// inParts translates a BigValueRoute.
func (p *planner) inParts(h handle, depth int) (outcome, error) {
	o, err := p.beneath(h, "target", depth)
	if err != nil {
		return o, err
	}
	threshold, err := h.body.take("split_threshold").int(0)
	switch {
	case err != nil || o.pool == nil:
	case threshold < minSplit || threshold >= maxSplit:
		p.note(h.at, "split_threshold %d has no counterpart: values are not stored in parts", threshold)
	default:
		pool := *o.pool
		pool.SplitOver = threshold
		o.pool = p.intern(&pool)
		p.note(h.at, "BigValueRoute: values are stored in parts of another form: what mcrouter has stored in parts is not found")
	}
	return o, err
}

// The lengths of parts that are possible with us, in bytes: below maxSplit, the longest value that a pool takes.
const (
	minSplit = 512
	maxSplit = 128 << 20
)

// addShadows translates the shadows of a handle.
func (p *planner) addShadows(h handle, o *outcome, depth int) error {
	if !h.body.is(object) {
		return nil
	}
	shadows := h.body.get("shadows")
	if !shadows.is(list) || o.pool == nil {
		return nil
	}
	shadows.see()
	for _, s := range shadows.items {
		share, err := p.share(s, len(o.pool.Servers), depth)
		if err != nil {
			return err
		}
		if share.Pool != nil {
			p.shadow(s, o, share)
		}
	}
	return nil
}

// shadow lets another pool see a share of the requests, if there is no such pool yet.
func (p *planner) shadow(at *value, o *outcome, s Share) {
	switch {
	case o.shadow.Pool == nil && s.Pool != o.pool:
		o.shadow = s
	case o.shadow != s:
		p.note(at, "a second shadow has no counterpart: pool %s does not see these requests", s.Pool.Of)
	}
}

// share translates one shadow.
func (p *planner) share(s *value, servers, depth int) (share Share, err error) {
	s.see()
	target := s.take("target")
	if target == nil {
		p.note(s, "a shadow without target is left out, as by mcrouter")
		return share, nil
	}
	h, err := p.one(target)
	if err != nil {
		return share, err
	}
	to, err := p.outcome(h, depth+1)
	if err != nil || to.pool == nil {
		return share, err
	}
	if keys := s.take("keys_to_shadow"); keys != nil {
		keys.seeAll()
		p.note(keys, "has no counterpart: shadows see a share of the keys, not single ones; this one is left out")
		return share, nil
	}
	low, high, err := pair(s.take("key_fraction_range"))
	if err != nil {
		return share, err
	}
	first, last, err := pair(s.take("index_range"))
	if err != nil {
		return share, err
	}
	fraction, err := s.take("requests_fraction").float(1)
	switch {
	case err != nil:
		return share, err
	case last <= first || high <= low || fraction <= 0:
		p.note(s, "sees no requests, and is left out")
		return share, nil
	case first > 0 || last < float64(servers):
		p.note(s, "index_range has no counterpart: the shadow sees requests to all servers of the pool")
	}
	share = Share{to.pool, 100 * min(high-low, 1) * min(fraction, 1)}
	if share.Percent < 100 {
		p.note(s, "the shadow sees as large a share of the keys, but other keys than with mcrouter")
	}
	return share, nil
}

// pair reads two numbers.
func pair(v *value) (a, b float64, err error) {
	if v == nil {
		return 0, 0, nil
	}
	v.seeAll()
	if v.kind != list || len(v.items) != 2 {
		return 0, 0, v.fault("want two numbers")
	}
	if a, err = v.items[0].float(0); err == nil {
		b, err = v.items[1].float(0)
	}
	return a, b, err
}

// within reports whether all of some servers are among others.
func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
