package router

import (
	"bytes"
	"slices"

	"cacherouter/quota"
)

// Quotas bound what may be asked by a route, and from a network. A request is counted from
// when it passes until it is over, be its client still there or not. What is refused has not
// been done at all.

// What is said to a request beyond a quota, by the reason.
var (
	routeRefuses = [...][]byte{
		quota.TooFast: []byte("SERVER_ERROR route is over its rate\r\n"),
		quota.TooMany: []byte("SERVER_ERROR route has too many requests in flight\r\n"),
	}
	networkRefuses = [...][]byte{
		quota.TooFast: []byte("SERVER_ERROR network is over its rate\r\n"),
		quota.TooMany: []byte("SERVER_ERROR network has too many requests in flight\r\n"),
	}
)

// enter asks the quotas of the client's network and of a route for one more request, and
// returns what is said if there may be none.
func (q *request) enter(r *route) (refusal []byte) {
	s := q.session
	ofRoute := r != nil && r.quota != nil
	if s.quota == nil && !ofRoute {
		return nil
	}
	now := s.front.now()
	if v := s.quota.Ask(now, 1); v != quota.Passed {
		s.front.stats.OverQuota++
		return networkRefuses[v]
	}
	if ofRoute {
		if v := r.quota.Ask(now, 1); v != quota.Passed {
			s.quota.Done()
			s.front.stats.OverQuota++
			return routeRefuses[v]
		}
		q.stray().held = r.quota
	}
	q.counted = true
	return nil
}

// depart tells the quotas that the request is over.
func (q *request) depart() {
	q.counted = false
	if s := q.session; s != nil {
		s.quota.Done()
	}
	if q.strayed {
		q.held.Done()
		q.owed.Done()
		q.held, q.owed = nil, nil
	}
}

// disown notes that the request's client is gone.
func (q *request) disown() {
	if s := q.session; q.counted && s.quota != nil {
		q.stray().owed = s.quota
	}
	if g := q.gather; g != nil && g.parked { // and never comes to its end
		g.depart()
	}
	q.session = nil
}

// enter asks a route's quota for one more key, and returns what is said if there may be none.
// A multiget is counted once by each quota, and charged by keys. It is not refused when some of
// its reply has been sent.
func (g *gather) enter(of *quota.Quota) (refusal []byte) {
	now := g.front.now()
	switch {
	case slices.Contains(g.quotas, of):
		of.Charge(now, 1)
		return nil
	case g.torn:
		of.Pass(now, 1)
	default:
		if v := of.Ask(now, 1); v != quota.Passed {
			g.front.stats.OverQuota++
			return routeRefuses[v]
		}
	}
	g.quotas = append(g.quotas, of)
	return nil
}

// depart tells the quotas that the multiget is over.
func (g *gather) depart() {
	for _, of := range g.quotas {
		of.Done()
	}
	g.quotas = g.quotas[:0]
}

// QuotaUse is what has become of a quota.
type QuotaUse struct {
	// Route is the prefix of the route that has it, and Listener the address of the listener
	// whose route that is, empty if it is that of all; or Network is the network.
	Route, Listener, Network string
	// TooFast and TooMany are how many requests were refused so far because of the rate, and of
	// those under way; UnderWay is how many are, 0 where there is no bound.
	TooFast, TooMany uint64
	UnderWay         int
}

func (u *QuotaUse) of(q *quota.Quota) {
	u.TooFast, u.TooMany = q.Refused(quota.TooFast), q.Refused(quota.TooMany)
	u.UnderWay = q.UnderWay()
}

// Quotas returns what has become of all quotas. Any goroutine may call it.
func (r *Router) Quotas() (all []QuotaUse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = r.routes.quotas(all, "")
	for _, by := range r.entrances {
		if by.latest != r.routes {
			all = by.latest.quotas(all, by.addr)
		}
	}
	for _, n := range r.networks {
		if n.whole.quota != nil {
			all = append(all, n.use())
		}
	}
	return all
}

// keepQuotas lets routes go on with the quotas that those of the same prefixes had before, where
// they are the same: what is under way stays counted, and nobody is let in twice.
func (t *routes) keepQuotas(before *routes) {
	keep := func(r, old *route) {
		if r != nil && old != nil && r.quota != nil && r.bounds == old.bounds {
			r.quota = old.quota
		}
	}
	for i := range t.list {
		r := &t.list[i]
		if j, found := slices.BinarySearchFunc(before.list, r, func(o route, r *route) int { return bytes.Compare(o.prefix, r.prefix) }); found {
			keep(r, &before.list[j])
		}
	}
	keep(t.rest, before.rest)
}

// quotas appends what has become of those of routes.
func (t *routes) quotas(all []QuotaUse, listener string) []QuotaUse {
	add := func(r *route) {
		if r != nil && r.quota != nil {
			u := QuotaUse{Route: string(r.prefix), Listener: listener}
			u.of(r.quota)
			all = append(all, u)
		}
	}
	for i := range t.list {
		add(&t.list[i])
	}
	add(t.rest)
	return all
}
