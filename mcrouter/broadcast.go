package mcrouter

import (
	"slices"
	"strings"
)

// broadcast translates a handle that sends requests to all its children.
func (p *planner) broadcast(h handle, depth int) (outcome, error) {
	if o, ok, err := p.replicated(h, depth); ok || err != nil {
		return o, err
	}
	all, err := p.parts(h, depth)
	if err != nil {
		return outcome{}, err
	}
	all = slices.DeleteFunc(all, func(o outcome) bool { return o.pool == nil })
	if len(all) == 0 {
		return outcome{}, nil
	}
	o := all[0]
	for _, other := range all[1:] {
		p.shadow(h.at, &o, Share{other.pool, 100})
	}
	if h.kind != "AllInitialRoute" && o.shadow.Pool != nil {
		p.note(h.at, "%s: requests go to pool %s, whose answer counts, and to pool %s as a shadow, whose failures clients are not told", h.kind, o.pool.Of, o.shadow.Pool.Of)
	}
	return o, nil
}

// replicated translates a handle about all of some servers into a pool with as many copies of each item. It is false where keys are
// placed on servers, or where there are too many.
func (p *planner) replicated(h handle, depth int) (o outcome, ok bool, err error) {
	of, ok, err := p.fixed(h, depth)
	if err != nil || !ok || len(of) < 2 {
		return o, false, err
	}
	pool := *of[0]
	pool.Servers, pool.Weights, pool.Copies, pool.Distribution, pool.Seed, pool.use = nil, nil, 0, "rendezvous", "", use{}
	for _, other := range of {
		for _, s := range other.Servers {
			if !slices.Contains(pool.Servers, s) {
				pool.Servers = append(pool.Servers, s)
			}
		}
	}
	if pool.Copies = len(pool.Servers); pool.Copies > p.maxCopies {
		p.note(h.at, "%s: an item lives on %d servers at most, and these are %d", h.kind, p.maxCopies, pool.Copies)
		return o, false, nil
	}
	h.field("children").see()
	p.note(h.at, "%s: each item lives on all %d servers of pool %s; a write is answered when all have it, a read by any", h.kind, pool.Copies, pool.Of)
	return outcome{pool: p.intern(&pool)}, true, nil
}

// fixed returns pools with one server each, all of which a handle sends requests on any key to.
func (p *planner) fixed(h handle, depth int) (all []*Pool, ok bool, err error) {
	children, err := p.children(h, "children")
	if err != nil || depth > maxNesting {
		return nil, false, err
	}
	for _, child := range children {
		var some []*Pool
		switch child.kind {
		case "Pool", "PoolRoute":
			o, err := p.outcome(child, depth+1)
			if err != nil || o.pool == nil || child.kind == "PoolRoute" && len(o.pool.Servers) > 1 {
				return nil, false, err
			}
			for _, s := range o.pool.Servers {
				one := *o.pool
				one.Servers = []string{s}
				some = append(some, &one)
			}
		case "AllSyncRoute", "AllFastestRoute", "AllInitialRoute", "AllMajorityRoute", "AllAsyncRoute":
			child.at.see()
			if some, ok, err = p.fixed(child, depth+1); err != nil || !ok {
				return nil, false, err
			}
		default:
			return nil, false, nil
		}
		all = append(all, some...)
	}
	return all, true, nil
}

// anyOf translates a handle that chooses among its children.
func (p *planner) anyOf(h handle, depth int) (outcome, error) {
	if o, ok, err := p.replicated(h, depth); ok || err != nil {
		return o, err
	}
	all, err := p.parts(h, depth)
	if err != nil {
		return outcome{}, err
	}
	for _, o := range all {
		if o.pool != nil {
			p.note(h.at, "%s has no counterpart: requests go to pool %s", h.kind, o.pool.Of)
			return o, nil
		}
	}
	p.note(h.at, "%s has no counterpart, and no pool", h.kind)
	return outcome{}, nil
}

// byOperation translates a handle that has others for single operations.
func (p *planner) byOperation(h handle, depth int) (o outcome, err error) {
	if !h.body.is(object) {
		return p.operation(h.body, depth)
	}
	policies := h.body.take("operation_policies")
	if h.kind == "RoutingGroupRoute" {
		policies = h.body.take("routing_group_policies")
	}
	h.field("default_policy").see()
	get, set := p.policyOf(h, reading), p.policyOf(h, writing)
	reads, err := p.operation(get, depth)
	if err != nil {
		return o, err
	}
	writes, err := p.operation(set, depth)
	if err != nil {
		return o, err
	}
	o = p.merged(h, reads, writes)
	others := slices.Clone(policies.all())
	if usual := h.field("default_policy"); usual != nil {
		others = append(others, field{"default_policy", usual})
	}
	for _, f := range others {
		if f.value == get || f.value == set {
			continue
		}
		other, err := p.operation(f.value, depth)
		if err != nil {
			return o, err
		}
		p.addOperation(f.value, &o, other)
	}
	return o, nil
}

// operation translates the handle of one operation, which may be missing.
func (p *planner) operation(v *value, depth int) (outcome, error) {
	if v == nil {
		return outcome{}, nil
	}
	v.see()
	h, err := p.one(v)
	if err != nil {
		return outcome{}, err
	}
	return p.outcome(h, depth+1)
}

// all returns the fields of an object, none of one that is not there.
func (v *value) all() []field {
	if v == nil {
		return nil
	}
	return v.fields
}

// merged makes one outcome of that of reads and that of writes.
func (p *planner) merged(h handle, reads, writes outcome) outcome {
	switch {
	case reads == writes:
		return reads
	case writes.pool == nil:
		reads.readOnly = true
		p.note(h.at, "%s: what changes items is answered with SERVER_ERROR route is read only", h.kind)
		return reads
	case reads.pool == nil:
		p.note(h.at, "%s: reads are served like writes, and not refused", h.kind)
		return writes
	case writes.pool.Copies > 0 && within(reads.pool.Servers, writes.pool.Servers):
		return writes
	case !slices.Equal(reads.pool.Servers, writes.pool.Servers):
		p.note(h.at, "%s: reads go to pool %s and writes to pool %s, which has no counterpart: all go to the former", h.kind, reads.pool.Of, writes.pool.Of)
		return reads
	}
	o := writes
	if writes.pool.Failover == nil && writes.pool.WarmUp == nil {
		o.pool = reads.pool
	}
	if o.shadow.Pool == nil {
		o.shadow = reads.shadow
	}
	if o != writes || o.pool != reads.pool || o.shadow != reads.shadow {
		p.note(h.at, "%s: what some operations do beside going to pool %s (failover, warm-up, shadows) all do", h.kind, o.pool.Of)
	}
	return o
}

// addOperation says what becomes of an operation that has a handle of its own.
func (p *planner) addOperation(at *value, o *outcome, other outcome) {
	switch {
	case other == *o || other.pool == nil && o.readOnly:
	case other.pool == nil:
		p.note(at, "the operation is not refused: it goes where others go")
	case o.pool == nil:
		p.note(at, "has no counterpart: the operation is refused like others, and not sent to pool %s", other.pool.Of)
	case !slices.Equal(other.pool.Servers, o.pool.Servers):
		p.note(at, "has no counterpart: the operation goes to pool %s, like others, and not to %s", o.pool.Of, strings.Join(other.pool.Servers, ", "))
	case o.shadow.Pool == nil && other.shadow.Pool != nil:
		o.shadow = other.shadow
		p.note(at, "pool %s sees requests of all operations", other.shadow.Pool.Of)
	default:
		p.note(at, "has no counterpart: the operation is treated like others")
	}
}
