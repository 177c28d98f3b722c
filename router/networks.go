package router

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"cacherouter/quota"
	"cacherouter/reactor"
)

// ClientQuota bounds what clients of a network may ask, through all loops together.
type ClientQuota struct {
	Network netip.Prefix
	// Each bounds what each address of the network may ask by itself, instead of what all of
	// them may together.
	Each  bool
	Quota quota.Config
}

// network is a network whose clients have a quota.
type network struct {
	ClientQuota
	whole guest // all of its clients, unless Each is set

	mu     sync.Mutex
	guests map[netip.Addr]*guest // guarded by mu
	sweep  int                   // guarded by mu: how many there must be to look for those that left
}

// guest is who shares a quota: all clients of a network, or those of an address.
type guest struct {
	of      *network
	quota   *quota.Quota
	clients int // guarded by of.mu
}

// minSweep is from how many addresses on it is looked for those that can be forgotten.
const minSweep = 64

// newNetworks makes networks ready for use.
func newNetworks(list []ClientQuota) (all []*network, err error) {
	for _, c := range list {
		n := &network{ClientQuota: c, guests: make(map[netip.Addr]*guest), sweep: minSweep}
		if !c.Network.IsValid() || c.Network != c.Network.Masked() {
			return nil, fmt.Errorf("%v is no network", c.Network)
		}
		if slices.ContainsFunc(all, func(o *network) bool { return o.Network == c.Network }) {
			return nil, fmt.Errorf("two quotas for network %v", c.Network)
		}
		n.whole.of = n
		if n.whole.quota, err = quota.New(c.Quota); err != nil {
			return nil, fmt.Errorf("network %v: %w", c.Network, err)
		}
		all = append(all, n)
	}
	slices.SortStableFunc(all, func(a, b *network) int { return cmp.Compare(b.Network.Bits(), a.Network.Bits()) })
	return all, nil
}

// welcome returns whose quota a new client shares, nil if there is none.
func (r *Router) welcome(c *reactor.Conn, by *entrance) *guest {
	if len(r.networks) == 0 || by.local {
		return nil
	}
	_, at, _ := strings.Cut(c.Peer(), ":")
	peer, err := netip.ParseAddrPort(at)
	if err != nil { // a unix socket
		return nil
	}
	addr := peer.Addr().Unmap().WithZone("")
	for _, n := range r.networks {
		if n.Network.Contains(addr) {
			return n.welcome(addr, r)
		}
	}
	return nil
}

func (n *network) welcome(addr netip.Addr, r *Router) *guest {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := &n.whole
	switch {
	case g.quota == nil: // which bounds nothing
		return nil
	case n.Each:
		if g = n.guests[addr]; g == nil {
			n.tidy(r)
			g = &guest{of: n, quota: n.whole.quota.Another()}
			n.guests[addr] = g
		}
	}
	g.clients++
	return g
}

// tidy forgets addresses without clients whose quota is as if it were new, when there are twice
// as many as were left the last time.
func (n *network) tidy(r *Router) {
	if len(n.guests) < n.sweep {
		return
	}
	now := r.fronts[0].now()
	for addr, g := range n.guests {
		if g.clients == 0 && g.quota.Unused(now) {
			delete(n.guests, addr)
		}
	}
	n.sweep = max(minSweep, 2*len(n.guests))
}

// leave says that a client is gone.
func (g *guest) leave() {
	if g == nil {
		return
	}
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.clients--
}

func (n *network) use() QuotaUse {
	n.mu.Lock()
	defer n.mu.Unlock()
	u := QuotaUse{Network: n.Network.String()}
	u.of(n.whole.quota)
	for _, g := range n.guests {
		u.UnderWay += g.quota.UnderWay()
	}
	return u
}
