package mcrouter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrOpen says that mcrouter's configuration alone does not tell where a key is: chance decides, or the host or the hour, or a hash
// function that is not known here.
var ErrOpen = errors.New("the configuration alone does not tell where keys are")

// maxNesting is how deep route handles may lie in each other.
const maxNesting = 50

// operation is what a request does, as far as routes tell requests apart.
type operation string

const (
	reading operation = "get"
	writing operation = "set"
)

// Home is where a key is, while all servers are well.
type Home struct {
	Reads  []string // the servers that a plain get is asked of; none if it is refused
	Writes []string // those that a set stores it on; none if it is refused
	Known  string   // what servers call the key
}

// Home tells by mcrouter's own rules where a key is. The error is ErrOpen, or says what is wrong with the configuration.
func (c *Config) Home(key string) (home Home, err error) {
	routing, rest := splitKey(key)
	var found *value
	for i := range c.selectors {
		if s := &c.selectors[i]; routing == "" && s.usual || slices.Contains(s.aliases, routing) {
			_, found = s.longest(rest)
		}
	}
	if found == nil {
		return home, nil
	}
	h, err := c.one(found)
	if err != nil {
		return home, err
	}
	q := asked{c: c, routing: routing}
	if home.Reads, err = q.homes(h, rest, reading, 0); err == nil {
		home.Writes, err = q.homes(h, rest, writing, 0)
	}
	home.Known = q.known
	return home, err
}

// asked is a key on its way through the route handles.
type asked struct {
	c       *Config
	routing string // its routing prefix
	known   string // what the servers that it comes to first call it; empty before
}

// homes returns the servers that a handle sends an operation on a key to.
func (q *asked) homes(h handle, key string, op operation, depth int) ([]string, error) {
	if depth > maxNesting {
		return nil, h.at.fault("route handles lie too deep")
	}
	beneath := func(h handle, err error) ([]string, error) {
		if err != nil {
			return nil, err
		}
		return q.homes(h, key, op, depth+1)
	}
	switch h.kind {
	case "PoolRoute", "HashRoute", "SaltedFailoverRoute":
		return q.hashed(h, key)
	case "Pool":
		return q.all(h, key)
	case "NullRoute", "DevNullRoute", "ErrorRoute":
		return nil, nil
	case "OperationSelectorRoute", "PrefixPolicyRoute", "RoutingGroupRoute":
		next := q.c.policyOf(h, op)
		if next == nil {
			return nil, nil
		}
		return beneath(q.c.one(next))
	case "MigrateRoute":
		return q.migrating(h, beneath)
	case "ModifyKeyRoute":
		key = modify(h, key)
		return beneath(q.c.child(h, "target"))
	case "AllSyncRoute", "AllAsyncRoute", "AllInitialRoute", "AllFastestRoute", "AllMajorityRoute":
		return q.every(h, beneath)
	case "RandomRoute", "LatestRoute", "HostIdRoute", "LoadBalancerRoute", "OriginalClientHashRoute":
		if op == writing {
			return nil, fmt.Errorf("%w: %s at %s", ErrOpen, h.kind, h.at.path)
		}
		return q.every(h, beneath)
	case "FailoverRoute", "MissFailoverRoute", "ShadowRoute":
		return q.first(h, beneath)
	}
	if field := firstOf[h.kind]; field != "" {
		if h.body.is(text) {
			return beneath(q.c.one(h.body))
		}
		return beneath(q.c.child(h, field))
	}
	return nil, fmt.Errorf("%w: %s at %s", ErrOpen, h.kind, h.at.path)
}

// later names the same of types whose handles change where keys are in ways that are not followed here.
var later = map[string]string{
	"CarbonLookasideRoute": "child",
	"KeyParseRoute":        "target",
	"KeySplitRoute":        "destination",
	"L1L2SizeSplitRoute":   "l1",
}

// firstOf names the field of the handle that some types of handles ask first.
var firstOf = map[string]string{
	"BigValueRoute":            "target",
	"BlackholeRoute":           "default",
	"FailoverWithExptimeRoute": "normal",
	"HashStopAllowListRoute":   "target",
	"L1L2CacheRoute":           "l1",
	"LatencyInjectionRoute":    "child",
	"LoggingRoute":             "target",
	"ModifyExptimeRoute":       "target",
	"RateLimitRoute":           "target",
	"StagingRoute":             "warm",
	"WarmUpRoute":              "cold",
}

// policyOf returns the handle for an operation; nil if there is none.
func (c *Config) policyOf(h handle, op operation) *value {
	if !h.body.is(object) {
		return h.body
	}
	policies, name := h.body.get("operation_policies"), string(op)
	if h.kind == "RoutingGroupRoute" {
		policies, name = h.body.get("routing_group_policies"), map[operation]string{reading: "get_like", writing: "update_like"}[op]
	}
	if p := policies.get(name); p != nil {
		return p
	}
	return h.body.get("default_policy")
}

// hashed returns the server of a pool that a key is on.
func (q *asked) hashed(h handle, key string) ([]string, error) {
	u, ok, err := q.c.use(h)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%w: %s at %s", ErrOpen, h.kind, h.at.path)
	case len(u.pool.servers) == 0:
		return nil, nil
	}
	q.reach(u.pool, key)
	home, err := q.c.place(u, q.routing+key)
	return []string{home}, err
}

// reach notes what the servers of a pool call the key.
func (q *asked) reach(p *pool, key string) {
	if q.known != "" {
		return
	}
	if keep := p.take("keep_routing_prefix"); keep.is(boolean) && keep.truth {
		key = q.routing + key
	}
	q.known = key
}

// place returns the server of a pool that a key is on.
func (c *Config) place(u use, key string) (string, error) {
	name := fmt.Sprintf("%s %+v", u.pool.name, u.hash)
	p, made := c.placements[name]
	if !made {
		var err error
		if p, err = u.placement(); err != nil {
			return "", u.pool.at.fault("%w", err)
		}
		c.placements[name] = p
	}
	if p == nil {
		return "", fmt.Errorf("%w: hash function %s%s of pool %s", ErrOpen, u.hash.kind, u.hash.odd(), u.pool.name)
	}
	i := p.Pick(nil, p.Hash([]byte(key)), 1)[0]
	return u.pool.servers[i].address, nil
}

// all returns the servers of a pool.
func (q *asked) all(h handle, key string) (all []string, err error) {
	p, err := q.c.poolOf(h)
	if err != nil {
		return nil, err
	}
	q.reach(p, key)
	for _, s := range p.servers {
		all = append(all, s.address)
	}
	return all, nil
}

// poolOf returns the pool that a Pool handle is.
func (c *Config) poolOf(h handle) (*pool, error) {
	if h.body == nil {
		return nil, h.at.fault("Pool without name")
	}
	return c.pool(h.body)
}

// every returns the servers of all children.
func (q *asked) every(h handle, beneath func(handle, error) ([]string, error)) (all []string, err error) {
	children, err := q.c.children(h, "children")
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		some, err := beneath(child, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// first returns the server of the first child that is no error, or the first server of a pool.
func (q *asked) first(h handle, beneath func(handle, error) ([]string, error)) ([]string, error) {
	children, err := q.c.children(h, "children")
	for len(children) > 1 && h.kind == "FailoverRoute" && children[0].kind == "ErrorRoute" {
		children = children[1:]
	}
	if err != nil || len(children) == 0 {
		return nil, err
	}
	some, err := beneath(children[0], nil)
	if err == nil && children[0].kind == "Pool" && len(some) > 0 {
		some = some[:1]
	}
	return some, err
}

// migrating returns the servers of a MigrateRoute before it begins, or after it has ended.
func (q *asked) migrating(h handle, beneath func(handle, error) ([]string, error)) ([]string, error) {
	switch at, err := migration(h, time.Now()); {
	case err != nil:
		return nil, err
	case at < 0:
		return beneath(q.c.child(h, "from"))
	case at > 0:
		return beneath(q.c.child(h, "to"))
	}
	return nil, fmt.Errorf("%w: MigrateRoute at %s is under way", ErrOpen, h.at.path)
}

// migration says when a MigrateRoute is: -1 before keys go over, 0 meanwhile, 1 afterwards.
func migration(h handle, now time.Time) (int, error) {
	if h.field("start_time") == nil {
		return 0, h.at.fault("MigrateRoute without start_time")
	}
	start, err := h.field("start_time").int(0)
	if err != nil {
		return 0, err
	}
	interval, err := h.field("interval").int(3600)
	if err != nil {
		return 0, err
	}
	switch at := now.Unix(); {
	case at < start+interval:
		return -1, nil
	case at >= start+2*interval:
		return 1, nil
	}
	return 0, nil
}

// modify returns the key that a ModifyKeyRoute makes of a key without routing prefix.
func modify(h handle, key string) string {
	get := func(name string) (s string, there bool) {
		v := h.field(name)
		if !v.is(text) {
			return "", false
		}
		return v.text, true
	}
	prefix, _ := get("ensure_key_prefix")
	suffix, _ := get("set_key_suffix")
	old, replaces := get("replace_key_prefix")
	over := h.field("modify_inplace")
	switch {
	case replaces && strings.HasPrefix(key, old):
		key = prefix + key[len(old):]
	case strings.HasPrefix(key, prefix):
	case over.is(boolean) && over.truth && len(key) >= len(prefix):
		key = prefix + key[len(prefix):]
	default:
		key = prefix + key
	}
	return key + suffix
}
