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
	Limited    uint64 // requests on keys that have too many
	Pulled     uint64 // items looked for where they lived before
	Cleaned    uint64 // deletions of what a write has left elsewhere
	Uncleaned  uint64 // those that failed; the server is not trusted for a while

	Authenticated uint64 // clients that were admitted by password
	AuthFailures  uint64 // wrong users or passwords
	TurnedAway    uint64 // clients beyond the most there may be
	ClosedIdle    uint64 // clients closed because they asked nothing
	ClosedSlow    uint64 // clients closed because they took no replies
}

// count counts hits and misses of a whole reply to a retrieval of one key; it reports
// whether it was a hit.
func (st *Stats) count(v memproto.Verb, b []byte) bool {
	if !v.Retrieves() || v == memproto.MetaDebug {
		return false
	}
	st.Keys++
	switch memproto.OutcomeOf(v, b) {
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
	st.Failed += o.Failed
	st.Torn += o.Torn
	st.Hangups += o.Hangups
	st.Clients += o.Clients
	st.ClientErrors += o.ClientErrors
	st.Redirected += o.Redirected
	st.FailedOver += o.FailedOver
	st.Unwritable += o.Unwritable
	st.Spilled += o.Spilled
	st.Copied += o.Copied
	st.Overtaken += o.Overtaken
	st.Spread += o.Spread
	st.Limited += o.Limited
	st.Pulled += o.Pulled
	st.Cleaned += o.Cleaned
	st.Uncleaned += o.Uncleaned
	st.Authenticated += o.Authenticated
	st.AuthFailures += o.AuthFailures
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

// Total returns the number of requests of all verbs.
func (st *Stats) Total() (n uint64) {
	for _, v := range st.Requests {
		n += v
	}
	return n
}

// Snapshot is the state of one loop, or of several added up.
type Snapshot struct {
	Stats
	Sessions int // clients connected
	Waiting  int // requests of all clients that are not answered yet
	// ServersUp counts the servers that can be reached; not added up.
	ServersUp int
	// Believed counts the servers whose reports decide where reads go, 0 unless the policy is
	// [balance.Reported]; not added up: of all loops it is the least.
	Believed int
	Loop     reactor.Stats
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
	// Peers are the addresses of the clients, where they were asked for; not added up.
	Peers []string
}

// snapshot copies the state of the worker.
func (w *worker) snapshot() Snapshot {
	snap := Snapshot{
		Stats:     w.stats,
		Sessions:  len(w.sessions),
		Waiting:   w.waiting,
		Loop:      w.loop.Stats(),
		Latency:   w.latency,
		ServersUp: w.serversUp(),
		Believed:  w.believed(),
		Servers:   make(map[string]backend.Stats, len(w.nodes)),
	}
	snap.Requests = slices.Clone(w.stats.Requests)
	if w.flights != nil {
		snap.Flights = w.flights.Stats()
	}
	if w.near != nil {
		snap.Near = w.near.Stats()
	}
	if w.r.leases != nil && w == w.r.workers[0] {
		snap.Leases = w.r.leases.Stats()
	}
	for _, n := range w.nodes {
		snap.Servers[n.use.Address] = n.Stats()
	}
	return snap
}

// peers lists the clients of the worker.
func (w *worker) peers() Snapshot {
	var snap Snapshot
	for s := range w.sessions {
		snap.Peers = append(snap.Peers, s.conn.Peer())
	}
	slices.Sort(snap.Peers)
	return snap
}

// Total adds up snapshots.
func Total(loops []Snapshot) Snapshot {
	t := Snapshot{
		Stats:   Stats{Requests: make([]uint64, memproto.NumVerbs)},
		Servers: make(map[string]backend.Stats),
	}
	for i := range loops {
		s := &loops[i]
		t.add(&s.Stats)
		t.Sessions += s.Sessions
		t.Waiting += s.Waiting
		if i == 0 || s.Believed < t.Believed {
			t.Believed = s.Believed
		}
		t.Loop.Add(s.Loop)
		t.Flights.Add(s.Flights)
		t.Near.Add(s.Near)
		t.Latency.Add(&s.Latency)
		if s.Leases != (coalesce.LeaseStats{}) {
			t.Leases = s.Leases
		}
		for addr, st := range s.Servers {
			sum := t.Servers[addr]
			sum.Add(st)
			t.Servers[addr] = sum
		}
	}
	return t
}

// Snapshots returns the state of every loop, each taken between two of its turns. The
// error is that of ctx.
func (r *Router) Snapshots(ctx context.Context) ([]Snapshot, error) {
	c := make(chan Snapshot, len(r.workers))
	asked := 0
	for _, w := range r.workers {
		if w.loop.Post(func() { c <- w.snapshot() }) {
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
