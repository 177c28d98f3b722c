package router

import (
	"context"
	"fmt"
	"slices"

	"cacherouter/backend"
	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/latency"
	"cacherouter/memproto"
	"cacherouter/reactor"
)

// Stats counts what clients of one loop, or of all, have asked and got.
type Stats struct {
	Requests     []uint64                    // by verb
	Replies      Replies                     // to requests that servers are asked
	Keys         uint64                      // keys asked for by retrievals
	Hits, Misses uint64                      // of retrievals, as the servers answered
	Refused      [memproto.NumFaults]uint64  // malformed requests, answered with an error
	Unrouted     uint64                      // requests on keys that no pool has, answered with an error
	Denied       uint64                      // requests that their route does not let pass
	OverQuota    uint64                      // requests refused by quotas
	Shadowed     uint64                      // requests to see how they do that no client waits for
	ShadowsLost  uint64                      // those left out as there were too many
	Compared     [NumComparisons]uint64      // reads among them, by how the answer compares with the other pool's
	Failed       uint64                      // requests that no server answered
	Failures     [backend.NumFailures]uint64 // those, by what became of them
	Faulty       uint64                      // errors that servers answered with
	Torn         uint64                      // multigets that failed when part of the reply was sent
	Hangups      uint64                      // connections closed for what was sent on them
	Clients      uint64                      // connections accepted
	ClientErrors uint64                      // connections that ended with an error

	Redirected uint64 // reads that failed at their home and were asked of the next candidate
	FailedOver uint64 // writes to the next candidate of a server that is away
	Unwritable uint64 // writes refused as their home cannot be reached and was not given up
	Spilled    uint64 // reads that went to a candidate as the home was full
	Copied     uint64 // items copied from one server to another
	Overtaken  uint64 // copies not made as a write came in between
	Spread     uint64 // copies stored together with their home
	Split      uint64 // values stored in parts
	Joined     uint64 // values put together from parts
	TornValues uint64 // values whose parts were not all there
	Limited    uint64 // requests on keys that have too many
	Retried    uint64 // reads asked again as a server failed
	Unretried  uint64 // those not asked again as too many were
	Pulled     uint64 // items looked for where they lived before
	Cleaned    uint64 // deletions of what a write has left elsewhere
	Uncleaned  uint64 // those that failed; the server is not trusted for a while

	Shed [NumPriorities]uint64 // requests refused as their servers had too many, by priority

	Slow           uint64 // requests that took as long as Recording.Over
	SlowUnrecorded uint64 // those that were too many a second for a record

	Authenticated uint64 // clients that were admitted by password
	AuthFailures  uint64 // wrong users or passwords
	TurnedAway    uint64 // clients beyond the most there may be
	ClosedIdle    uint64 // clients closed because they asked nothing
	ClosedSlow    uint64 // clients closed because they took no replies
	Moved         uint64 // clients that another process serves now
}

// count counts hits and misses of a whole reply to a retrieval of one key, by what it says; it
// reports whether it was a hit.
func (st *Stats) count(v memproto.Verb, o memproto.Outcome) bool {
	if !v.Retrieves() || v == memproto.MetaDebug {
		return false
	}
	st.Keys++
	switch o {
	case memproto.Hit:
		st.Hits++
		return true
	case memproto.Miss:
		st.Misses++
	}
	return false
}

// add adds the counters of another loop.
func (st *Stats) add(o *Stats) {
	for i, n := range o.Requests {
		st.Requests[i] += n
	}
	st.Replies.add(&o.Replies)
	for i, n := range o.Failures {
		st.Failures[i] += n
	}
	st.Faulty += o.Faulty
	st.Keys += o.Keys
	st.Hits += o.Hits
	st.Misses += o.Misses
	for i, n := range o.Refused {
		st.Refused[i] += n
	}
	st.Unrouted += o.Unrouted
	st.Denied += o.Denied
	st.OverQuota += o.OverQuota
	st.Shadowed += o.Shadowed
	st.ShadowsLost += o.ShadowsLost
	for i, n := range o.Compared {
		st.Compared[i] += n
	}
	st.Failed += o.Failed
	st.Torn += o.Torn
	st.Hangups += o.Hangups
	st.Clients += o.Clients
	st.Moved += o.Moved
	st.ClientErrors += o.ClientErrors
	st.Redirected += o.Redirected
	st.FailedOver += o.FailedOver
	st.Unwritable += o.Unwritable
	st.Spilled += o.Spilled
	st.Copied += o.Copied
	st.Overtaken += o.Overtaken
	st.Spread += o.Spread
	st.Split += o.Split
	st.Joined += o.Joined
	st.TornValues += o.TornValues
	st.Limited += o.Limited
	st.Retried += o.Retried
	st.Unretried += o.Unretried
	for i, n := range o.Shed {
		st.Shed[i] += n
	}
	st.Pulled += o.Pulled
	st.Cleaned += o.Cleaned
	st.Uncleaned += o.Uncleaned
	st.Authenticated += o.Authenticated
	st.AuthFailures += o.AuthFailures
	st.Slow += o.Slow
	st.SlowUnrecorded += o.SlowUnrecorded
	st.TurnedAway += o.TurnedAway
	st.ClosedIdle += o.ClosedIdle
	st.ClosedSlow += o.ClosedSlow
}

// Malformed returns the number of malformed requests of all kinds.
func (st *Stats) Malformed() (n uint64) {
	for _, v := range st.Refused {
		n += v
	}
	return n
}

// Shedded returns the number of requests of all priorities that were shed.
func (st *Stats) Shedded() (n uint64) {
	for _, v := range st.Shed {
		n += v
	}
	return n
}

// Total returns the number of requests of all verbs.
func (st *Stats) Total() (n uint64) {
	for _, v := range st.Requests {
		n += v
	}
	return n
}

// Snapshot is the state of one loop, or of several added up.
type Snapshot struct {
	PoolSnapshot     // of all pools together, and what is about clients
	Sessions     int // clients connected
	Waiting      int // requests of all clients that are not answered yet
	Loop         reactor.Stats
	// Pools has what is about each pool, in the order of the configuration. Requests are not
	// counted by verb here, but their replies are.
	Pools []PoolSnapshot
	// Peers are the addresses of the clients, where they were asked for; not added up.
	Peers []string
}

// PoolSnapshot is what one loop has to do with a pool, or several loops added up.
type PoolSnapshot struct {
	Name string
	Stats
	// ServersUp counts the servers that can be reached; not added up over loops.
	ServersUp int
	// Believed counts the servers whose reports decide where reads go, 0 unless the policy is
	// [balance.Reported]; not added up: of all loops it is the least.
	Believed int
	Flights  coalesce.Stats
	Near     hotkey.NearStats
	// Latency has how long requests of clients took, from the turn of the loop that read them
	// to the one that gave the reply to the connection, the wait for the replies of earlier
	// requests of the client included. Each may be off by the length of a turn.
	Latency latency.Histogram
	// Leases are those of the router; only one of several snapshots has them.
	Leases coalesce.LeaseStats
	// Servers has what the loop has had to do with each server of the table, by address.
	Servers map[string]backend.Stats
}

// snapshot copies the state of the loop.
func (f *front) snapshot() Snapshot {
	snap := Snapshot{Sessions: len(f.sessions), Waiting: f.waiting, Loop: f.loop.Stats()}
	for _, w := range f.workers {
		snap.Pools = append(snap.Pools, w.snapshot())
	}
	for _, l := range f.leavers {
		if i := slices.Index(f.workers, l.heir); i >= 0 {
			old := l.w.bygone()
			snap.Pools[i].add(&old)
		}
	}
	snap.sum()
	f.past.addTo(&snap.PoolSnapshot)
	snap.Stats.add(&f.stats)
	return snap
}

// snapshot copies the state of the worker.
func (w *worker) snapshot() PoolSnapshot {
	snap := PoolSnapshot{
		Name:      w.p.cfg.Name,
		Stats:     w.stats,
		Latency:   w.latency,
		ServersUp: w.serversUp(),
		Believed:  w.believed(),
		Servers:   make(map[string]backend.Stats, len(w.nodes)),
	}
	if w.flights != nil {
		snap.Flights = w.flights.Stats()
	}
	if w.near != nil {
		snap.Near = w.near.Stats()
	}
	if w.p.leases != nil && w == w.p.workers[0] {
		snap.Leases = w.p.leases.Stats()
	}
	for _, n := range w.nodes {
		snap.Servers[n.use.Address] = n.Stats()
	}
	w.past.addTo(&snap)
	return snap
}

// peers lists the clients of the loop.
func (f *front) peers() Snapshot {
	var snap Snapshot
	for s := range f.sessions {
		snap.Peers = append(snap.Peers, s.conn.Peer())
	}
	slices.Sort(snap.Peers)
	return snap
}

// newPoolSnapshot returns one to add others to.
func newPoolSnapshot(name string) PoolSnapshot {
	return PoolSnapshot{Name: name, Stats: Stats{Requests: make([]uint64, memproto.NumVerbs)}, Servers: make(map[string]backend.Stats)}
}

// sum makes the figures of all pools together.
func (s *Snapshot) sum() {
	s.PoolSnapshot = newPoolSnapshot("")
	for i := range s.Pools {
		p := &s.Pools[i]
		s.ServersUp += p.ServersUp
		s.Believed += p.Believed
		s.PoolSnapshot.add(p)
	}
}

// add adds what can be added of another loop or pool.
func (p *PoolSnapshot) add(o *PoolSnapshot) {
	p.Stats.add(&o.Stats)
	p.Flights.Add(o.Flights)
	p.Near.Add(o.Near)
	p.Latency.Add(&o.Latency)
	p.Leases.Add(o.Leases)
	for addr, st := range o.Servers {
		sum := p.Servers[addr]
		sum.Add(st)
		p.Servers[addr] = sum
	}
}

// addLoop adds the same pool, or all of them, of another loop; first says that it is the
// first one.
func (p *PoolSnapshot) addLoop(o *PoolSnapshot, first bool) {
	p.add(o)
	if first || o.Believed < p.Believed {
		p.Believed = o.Believed
	}
}

// Total adds up snapshots.
func Total(loops []Snapshot) Snapshot {
	t := Snapshot{PoolSnapshot: newPoolSnapshot("")}
	for i := range loops {
		s := &loops[i]
		t.addLoop(&s.PoolSnapshot, i == 0)
		t.Sessions += s.Sessions
		t.Waiting += s.Waiting
		t.Loop.Add(s.Loop)
		for j := range s.Pools {
			t.addPool(&s.Pools[j])
		}
	}
	return t
}

// addPool adds what a loop says of a pool. Loops may have other ones while pools change.
func (s *Snapshot) addPool(o *PoolSnapshot) {
	i := slices.IndexFunc(s.Pools, func(p PoolSnapshot) bool { return p.Name == o.Name })
	first := i < 0
	if first {
		i = len(s.Pools)
		s.Pools = append(s.Pools, newPoolSnapshot(o.Name))
	}
	s.Pools[i].addLoop(o, first)
}

// Of returns what is about a pool; nothing if it is not there any more, or not yet.
func (s *Snapshot) Of(pool string) PoolSnapshot {
	for i := range s.Pools {
		if s.Pools[i].Name == pool {
			return s.Pools[i]
		}
	}
	return newPoolSnapshot(pool)
}

// Snapshots returns the state of every loop, each taken between two of its turns. The
// error is that of ctx.
func (r *Router) Snapshots(ctx context.Context) ([]Snapshot, error) {
	c := make(chan Snapshot, len(r.fronts))
	asked := 0
	for _, f := range r.fronts {
		if f.loop.Post(func() { c <- f.snapshot() }) {
			asked++
		}
	}
	var snaps []Snapshot
	for range asked {
		select {
		case s := <-c:
			snaps = append(snaps, s)
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot ask every loop: %w", ctx.Err())
		}
	}
	return snaps, nil
}
