package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"cacherouter/membership"
	"cacherouter/router"
)

// A pool may be composed: of its own servers, of those of another pool that take over when
// its own fail, and of those of another one where items still are. And each item may live
// once in every zone. All of that is a matter of which servers come first for a key, so it
// is one placement, in one table, of one set of servers that are watched together: what
// holds of one pool's failovers, hand-overs and copies holds of these.

// parts are the servers of other pools that belong to a pool.
type parts struct {
	failover, warmUp *poolConfig // nil if there are none
}

// compose finds the pools that pools refer to.
func (c *config) compose() error {
	for _, p := range c.each() {
		if p == &c.Pool {
			if p.Failover != "" || p.WarmUp != "" {
				return badField(errors.New("there is no other pool: want pools"), "pool", "failover")
			}
			continue
		}
		p.parts = parts{}
		for _, ref := range []struct {
			field, name string
			to          **poolConfig
		}{{"failover", p.Failover, &p.parts.failover}, {"warm_up", p.WarmUp, &p.parts.warmUp}} {
			if ref.name == "" {
				continue
			}
			other := c.Pools[ref.name]
			if err := p.mayRefer(c, other, ref.name); err != nil {
				return badField(err, "pools", p.name, ref.field)
			}
			*ref.to = other
		}
		if err := p.checkParts(); err != nil {
			return err
		}
	}
	return nil
}

// mayRefer says why a pool cannot be composed with another one.
func (p *poolConfig) mayRefer(c *config, other *poolConfig, name string) error {
	switch {
	case other == nil:
		return fmt.Errorf("no pool %q", name)
	case other == p:
		return errors.New("goes round in a circle: it is the pool itself")
	case other.Failover != "" || other.WarmUp != "":
		return fmt.Errorf("pool %s is composed itself: want one that is not, so that there is no circle", name)
	case other.dynamic() != "" || p.dynamic() != "":
		return errors.New("servers that are found while the router runs cannot be composed: want servers")
	case !c.Membership.Enabled:
		return errors.New("wants membership, which is not enabled")
	}
	return nil
}

// hashesLike reports whether two pools have the same hash for a key.
func (p *poolConfig) hashesLike(o *poolConfig) bool {
	_, own := ours[p.Distribution]
	_, owns := ours[o.Distribution]
	if own || owns {
		return own && owns && p.HashTag == o.HashTag
	}
	return p.Distribution == o.Distribution && p.Hash == o.Hash && p.HashTag == o.HashTag && p.HashStop == o.HashStop && p.Seed == o.Seed
}

// checkParts checks that no server is in two parts. Only the pool that this one is warmed up
// from may have the same servers: what is new is then where keys live on them.
func (p *poolConfig) checkParts() error {
	if p.parts == (parts{}) {
		return nil // validate looks at the pool's own
	}
	own := make(map[string]serverConfig)
	for _, s := range p.all() {
		if _, twice := own[s.Name]; twice {
			return badField(fmt.Errorf("server %s is in two of the pools that it is composed of", s.Name), "pools", p.name)
		}
		own[s.Name] = s
	}
	if p.parts.warmUp == nil {
		return nil
	}
	for _, s := range p.parts.warmUp.Servers {
		if o := own[s.Name]; p.has(s.Name) && (o.Address != s.Address || o.Weight != s.Weight) {
			return badField(fmt.Errorf("server %s is in pool %s, too, with another address or weight", s.Name, p.WarmUp), "pools", p.name, "warm_up")
		}
	}
	return nil
}

// all returns the servers of all parts.
func (p *poolConfig) all() []serverConfig {
	all := slices.Clone(p.Servers)
	if p.parts.failover != nil {
		all = append(all, p.parts.failover.Servers...)
	}
	if p.parts.warmUp != nil {
		for _, s := range p.parts.warmUp.Servers {
			if !p.has(s.Name) {
				all = append(all, s)
			}
		}
	}
	return all
}

// own returns those of some servers that are not only another part's.
func (p *poolConfig) own(servers []membership.Server) []membership.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s membership.Server) bool {
		return (p.parts.failover.has(s.Name) || p.parts.warmUp.has(s.Name)) && !p.has(s.Name)
	})
}

// has reports whether a pool lists a server. No pool has none.
func (p *poolConfig) has(name string) bool {
	return p != nil && slices.ContainsFunc(p.Servers, func(s serverConfig) bool { return s.Name == name })
}

// partOf returns those of some servers that are a part's.
func partOf(part *poolConfig, servers []membership.Server) []membership.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s membership.Server) bool { return !part.has(s.Name) })
}

// warmUpFor is for how long a table says that items may still be in the pool that this one is
// warmed up from. It is made again when half of that has passed: a server that could not be
// made to forget a key is not asked for as long as the table says.
const warmUpFor = 24 * time.Hour

// fades reports whether a table has to be made again for the sake of its warm-up.
func (t *table) fades(now time.Time) bool {
	return t.pool.parts.warmUp != nil && t.Until.Sub(now) < warmUpFor/2
}

// addParts adds to a table what the other parts are for.
func (p *placer) addParts(t *table, s *membership.State, index map[string]int, used map[string]*table) error {
	placed := s.Placed()
	if part := p.pool.parts.failover; part != nil {
		next, err := p.placeOthers(part, partOf(part, placed), index, used)
		if err != nil {
			return err
		}
		if next.Picker != nil {
			t.Astray = true
			t.Picker = takeover{t.Picker, next.Picker, max(1, t.Copies), next.Hash != nil}
		}
	}
	part := p.pool.parts.warmUp
	if part == nil {
		return nil
	}
	old, err := p.placeOthers(part, partOf(part, placed), index, used)
	switch {
	case err != nil || old.Picker == nil:
		return err
	case t.Before.Picker == nil:
		t.Before, t.Until = old, time.Now().Add(warmUpFor)
	default: // items are still moved within the pool, and asked for there; writes clean both
		t.After = append(t.After, old)
	}
	return nil
}

// takeover picks the servers of one placement, behind the first ones of which those of
// another come.
type takeover struct {
	router.Picker
	next  router.Picker
	first int // how many come before next: the home, and its copies
	// mixed says that next is for another hash. It is asked with a mixture of the one at hand,
	// which has any bits that it may look at: nothing was on those servers before.
	mixed bool
}

// Pick implements router.Picker.
func (p takeover) Pick(dst []int, hash uint64, n int) []int {
	begin := len(dst)
	if dst = p.Picker.Pick(dst, hash, min(n, p.first)); n <= p.first {
		return dst
	}
	head := len(dst)
	if p.mixed {
		dst = p.next.Pick(dst, mix(hash), n-(head-begin))
	} else {
		dst = p.next.Pick(dst, hash, n-(head-begin))
	}
	if left := n - (len(dst) - begin); left > 0 { // the rest of the first
		at := len(dst)
		dst = p.Picker.Pick(dst, hash, p.first+left)
		dst = append(dst[:at], dst[min(at+p.first, len(dst)):]...)
	}
	return dst
}

// mix spreads a hash, of 32 bits or 64, over 64 bits: the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// zoned is a placement with a home in each of some zones: candidates come zone by zone in
// turns, those of the first zone first.
type zoned struct {
	zones []placement
	at    [][]int // the indexes of each zone's servers among all
}

// Pick implements router.Picker.
func (z *zoned) Pick(dst []int, hash uint64, n int) []int {
	begin := len(dst)
	for rank := 0; len(dst)-begin < n; rank++ {
		more := false
		for i, zone := range z.zones {
			at := len(dst)
			dst = zone.Pick(dst, hash, rank+1)
			if len(dst)-at <= rank { // the zone has no more
				dst = dst[:at]
				continue
			}
			dst = append(dst[:at], z.at[i][dst[at+rank]])
			if more = true; len(dst)-begin == n {
				break
			}
		}
		if !more {
			break
		}
	}
	return dst
}

// Digest is that of all zones together.
func (z *zoned) Digest() [32]byte {
	h := sha256.New()
	for _, zone := range z.zones {
		d := zone.Digest()
		h.Write(d[:])
	}
	return [32]byte(h.Sum(nil))
}

// Spans yields those of the first zone, where homes are.
func (z *zoned) Spans() iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		for last, home := range z.zones[0].Spans() {
			if !yield(last, z.at[0][home]) {
				return
			}
		}
	}
}

// zoneOf returns the zone of a server, empty if it has none.
func (p *poolConfig) zoneOf(name string) string {
	for _, s := range p.Servers {
		if s.Name == name {
			return s.Zone
		}
	}
	return ""
}

// numCopies returns on how many of some servers each item is to live.
func (p *poolConfig) numCopies(servers []serverConfig) int {
	if !p.Copies.Zones {
		return p.Copies.Number
	}
	zones := make(map[string]bool)
	for _, s := range servers {
		zones[s.Zone] = true
	}
	return len(zones)
}

// near says which servers are in the router's zone; nil if that makes no difference.
func (p *poolConfig) near(servers []router.Server) (near []bool) {
	if !p.Copies.Zones || p.zone == "" {
		return nil
	}
	for _, s := range servers {
		near = append(near, p.zoneOf(s.Name) == p.zone)
	}
	return near
}

// checkZones checks the zones of the servers.
func (p *poolConfig) checkZones() error {
	for i := range p.Servers {
		if s := &p.Servers[i]; s.Zone == "" {
			return s.fault([]string{"pool", "servers"}, "server %s: has no zone", s.Name)
		}
	}
	_, own := ours[p.Distribution]
	switch n := p.numCopies(p.Servers); {
	case n < 2 || n > router.MaxCopies:
		return badField(fmt.Errorf("%d zones: want 2 to %d", n, router.MaxCopies), "pool", "copies", "zones")
	case !own:
		return badField(errors.New("wants a distribution of our own"), "pool", "copies", "zones")
	}
	return nil
}

// byZone builds the placement of a pool with zones.
func (p *poolConfig) byZone(build func(*poolConfig, []serverConfig) (placement, error)) (placement, error) {
	z := new(zoned)
	var names []string
	for _, s := range p.Servers {
		if !slices.Contains(names, s.Zone) {
			names = append(names, s.Zone)
		}
	}
	slices.Sort(names) // whatever the order of the servers
	for _, name := range names {
		var some []serverConfig
		var at []int
		for i, s := range p.Servers {
			if s.Zone == name {
				some, at = append(some, s), append(at, i)
			}
		}
		one, err := build(p, some)
		if err != nil {
			return nil, fmt.Errorf("zone %s: %w", name, err)
		}
		z.zones, z.at = append(z.zones, one), append(z.at, at)
	}
	return z, nil
}
