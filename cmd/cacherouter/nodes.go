package main

import (
	"net"
	"slices"
	"sync"
	"time"

	"cacherouter/membership/gossip"
	"cacherouter/membership/subset"

	"github.com/cespare/xxhash/v2"
)

// nodes knows what clients are told that ask for the nodes of the cluster: the routers, or
// a part of them. Any goroutine may use it.
type nodes struct {
	size int // of a client's part; 0 is all
	// routers returns the routers and their version.
	routers func() (version int64, addrs []string)
}

// of returns what the client at an address is told: all routers in their order, or a part.
func (n *nodes) of(client string) (version int64, addrs []string) {
	version, addrs = n.routers()
	if n.size == 0 {
		return version, addrs
	}
	var some []string
	for _, i := range subset.Of(clientNumber(client), len(addrs), n.size) {
		some = append(some, addrs[i])
	}
	return version, some
}

// clientNumber numbers clients by their hosts. The subsets want numbers without gaps, for
// exactly equal shares; but nobody hands such numbers out, and one that depends on the
// address alone is the same at every router and after every restart. All processes of a
// host get one answer, so it has connections to few routers.
func clientNumber(client string) int {
	host, _, err := net.SplitHostPort(client)
	if err != nil {
		host = client // a unix socket
	}
	return int(xxhash.Sum64String(host) >> 33)
}

// nodes returns what tells clients of the routers, nil if they are not told.
func (s *server) nodes() func(client string) (int64, []string) {
	n := &nodes{size: s.cfg.AdvertiseSubset}
	switch {
	case s.cfg.AdvertiseSelf != "":
		n.routers = (&advertised{members: s.routers, now: time.Now}).list
	case len(s.cfg.Advertise) > 0:
		n.routers = func() (int64, []string) { return 1, s.cfg.Advertise }
	default:
		return nil
	}
	return n.of
}

// routers returns the routers that are there, which any pool knows.
func (s *server) routers() []gossip.Member { return s.pools()[0].members.cluster.Routers() }

// advertised are the routers that say how clients reach them.
type advertised struct {
	members func() []gossip.Member
	now     func() time.Time

	mu      sync.Mutex
	last    []string // guarded by mu
	version int64    // guarded by mu
}

// list returns their addresses in the order of the routers' names. The version is the time
// of the last change in seconds, or more than the one before: clients that ask another
// router next time must find it to grow, and routers cannot count together.
func (a *advertised) list() (version int64, addrs []string) {
	for _, m := range a.members() {
		if m.Note != "" { // else it is an agent, or drains
			addrs = append(addrs, m.Note)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := a.version == 0 || !slices.Equal(addrs, a.last)
	if changed && len(addrs) > 0 { // when all drain, better one of them than none
		a.version, a.last = max(a.now().Unix(), a.version+1), addrs
	}
	return a.version, a.last
}
