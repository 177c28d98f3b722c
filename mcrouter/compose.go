package mcrouter

import (
	"fmt"
	"slices"
	"time"
)

// key is what makes a pool different from others.
func (p *Pool) key() string {
	return fmt.Sprintf("%q %q %v %s %q %v %v %v %p %p %d %d %v", p.Of, p.Servers, p.Weights, p.Distribution, p.Seed, p.Timeout, p.ConnectTimeout, p.TLS, p.Failover, p.WarmUp, p.SplitOver, p.Copies, p.keeps)
}

// plain is the pool without what it is composed with.
func (p *planner) plain(pool *Pool) *Pool {
	alone := *pool
	alone.Failover, alone.WarmUp = nil, nil
	return p.intern(&alone)
}

// composed is a pool with another part; without it, if that cannot be.
func (p *planner) composed(at *value, main, part *Pool, warmUp bool) *Pool {
	what := "fails over to"
	if warmUp {
		what = "is warmed up from"
	}
	if part.Failover != nil || part.WarmUp != nil {
		p.note(at, "pool %s is composed itself, which a part of pool %s cannot be: it is one without its own parts", part.Of, main.Of)
		part = p.plain(part)
	}
	pool := *main
	slot, other := &pool.Failover, pool.WarmUp
	if warmUp {
		slot, other = &pool.WarmUp, pool.Failover
	}
	taken := slices.Clone(main.Servers)
	if other != nil {
		taken = append(taken, other.Servers...)
	}
	switch {
	case *slot == part:
	case *slot != nil:
		p.note(at, "pool %s %s pool %s only, and not pool %s", main.Of, what, (*slot).Of, part.Of)
	case slices.ContainsFunc(part.Servers, func(s string) bool { return slices.Contains(taken, s) }):
		p.note(at, "pool %s %s no other one: pool %s has servers that it has itself", main.Of, what, part.Of)
	default:
		*slot = part
	}
	return p.intern(&pool)
}

// parts returns what children come to.
func (p *planner) parts(h handle, depth int) (all []outcome, err error) {
	h.field("children").see()
	children, err := p.children(h, "children")
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		o, err := p.outcome(child, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// failover translates a FailoverRoute.
func (p *planner) failover(h handle, depth int) (outcome, error) {
	all, err := p.parts(h, depth)
	if err != nil || len(all) == 0 {
		return outcome{}, err
	}
	if len(all) == 1 && all[0].pool != nil && len(all[0].pool.Servers) > 1 {
		children, err := p.children(h, "children")
		if err != nil {
			return outcome{}, err
		}
		if children[0].kind == "Pool" {
			return p.inOrder(h, all[0]), nil
		}
	}
	return p.failOver(h, all[0], all[1:]), nil
}

// inOrder translates a failover of the servers of a pool: the first has all keys.
func (p *planner) inOrder(h handle, o outcome) outcome {
	first, rest := *o.pool, *o.pool
	first.use, rest.use = use{}, use{}
	first.Weights, rest.Weights = nil, nil
	first.Servers, rest.Servers = first.Servers[:1], rest.Servers[1:]
	o.pool = p.composed(h.at, p.intern(&first), p.intern(&rest), false)
	p.note(h.at, "the first server of pool %s has all keys; while it is away the others share them", first.Of)
	return o
}

// failOver lets the first of some others that can take over from an outcome.
func (p *planner) failOver(h handle, o outcome, spare []outcome) outcome {
	for _, s := range spare {
		switch {
		case s.pool == nil:
			p.note(h.at, "what comes to nothing after a failure is an error")
		case o.pool == nil:
			o = s
		default:
			o.pool = p.composed(h.at, o.pool, s.pool, false)
		}
	}
	return o
}

// failoverFor translates a FailoverWithExptimeRoute.
func (p *planner) failoverFor(h handle, depth int) (outcome, error) {
	o, err := p.beneath(h, "normal", depth)
	if err != nil {
		return o, err
	}
	var spare []outcome
	if v := h.body.take("failover"); v != nil {
		children, err := p.list(v)
		if err != nil {
			return o, err
		}
		for _, child := range children {
			s, err := p.outcome(child, depth+1)
			if err != nil {
				return o, err
			}
			spare = append(spare, s)
		}
	}
	ttl, err := h.body.take("failover_exptime").int(60)
	if err != nil {
		return o, err
	}
	switch before := p.plan.FailoverTTL; {
	case ttl <= 0:
		p.note(h.at, "what spare servers are written is bounded by membership.failover_ttl")
	case before == 0:
		p.plan.FailoverTTL = ttl
	case before != ttl:
		p.plan.FailoverTTL = min(before, ttl)
		p.note(h.at, "failover_exptime is %d s here and %d s elsewhere: there is one failover_ttl for all, the shorter", ttl, before)
	}
	return p.failOver(h, o, spare), nil
}

// missFailover translates a MissFailoverRoute.
func (p *planner) missFailover(h handle, depth int) (outcome, error) {
	all, err := p.parts(h, depth)
	if err != nil || len(all) == 0 || all[0].pool == nil {
		return outcome{}, err
	}
	o := all[0]
	for _, other := range all[1:] {
		if other.pool != nil {
			o.pool = p.composed(h.at, o.pool, other.pool, true)
		}
	}
	p.note(h.at, "MissFailoverRoute: what a pool has not is asked of the next, and also copied from there; writes delete it there")
	return o, nil
}

// warmUp translates a WarmUpRoute.
func (p *planner) warmUp(h handle, depth int) (outcome, error) {
	o, err := p.beneath(h, "cold", depth)
	if err != nil {
		return o, err
	}
	warm, err := p.beneath(h, "warm", depth)
	if err != nil {
		return o, err
	}
	if h.body.take("exptime") != nil {
		p.note(h.at, "WarmUpRoute: items are copied with the time they have left, not with exptime")
	}
	if o.pool != nil && warm.pool != nil {
		o.pool = p.composed(h.at, o.pool, warm.pool, true)
	}
	return o, nil
}

// shadowed translates a ShadowRoute.
func (p *planner) shadowed(h handle, depth int) (outcome, error) {
	all, err := p.parts(h, depth)
	if err != nil || len(all) == 0 {
		return outcome{}, err
	}
	if len(all) > 1 {
		p.note(h.at, "ShadowRoute: children after the first have no counterpart")
	}
	return all[0], p.addShadows(h, &all[0], depth)
}

// migrate translates a MigrateRoute.
func (p *planner) migrate(h handle, depth int) (outcome, error) {
	h.field("start_time").see()
	h.field("interval").see()
	from, err := p.beneath(h, "from", depth)
	if err != nil {
		return from, err
	}
	to, err := p.beneath(h, "to", depth)
	if err != nil {
		return to, err
	}
	when, err := migration(h, time.Now())
	switch {
	case err != nil:
		return from, err
	case when > 0 || from.pool == nil:
		p.note(h.at, "MigrateRoute: it has ended, all keys are in pool %s", to.of())
		return to, nil
	case to.pool == nil:
		p.note(h.at, "MigrateRoute: keys would go to nothing, and do not")
		return from, nil
	}
	from.split = Share{to.pool, 0}
	p.note(h.at, "MigrateRoute: the hour moves no keys here: raise percent step by step, perhaps with warm_up in pool %s", to.pool.Of)
	return from, nil
}

// of is the name of the outcome's pool, for people.
func (o *outcome) of() string {
	if o.pool == nil {
		return "no pool"
	}
	return o.pool.Of
}
