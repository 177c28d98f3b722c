// Package view decides, together with the other routers, which servers hold keys.
//
// Each router runs a Node. Nodes exchange what they observe of the servers and the
// decisions they have taken; both merge by rules that need no order of delivery, no
// leader and no lock: of a router's observations the newest counts, of the decisions on a
// server the one with the highest number, and of two with the same number the earlier.
// A decision names the time from which it holds, so that all routers switch together.
//
// This is not consensus: two routers that cannot hear each other could decide differently
// for a while, which costs misses and which the digests reveal. What rests on agreement
// is guarded by majorities: a node that hears less than half of the routers it knows
// decides nothing.
//
// A Node is a state machine without goroutines, sockets or a clock: time and messages
// come in as arguments, messages go out as results. It is not safe for concurrent use.
package view

import (
	"cmp"
	"time"

	"cacherouter/membership/damping"
)

// Config holds a node's identity and constants. Router is required; the zero value of
// another field means its default. The reasons are in docs/membership.md.
type Config struct {
	// Router is this router's name, unique among the routers and stable across restarts.
	Router string
	// Boot tells this run of the router from earlier ones; it must grow. The caller uses
	// the time of the start in milliseconds.
	Boot uint64
	// Alone says that there are no other routers to wait for at the start.
	Alone bool
	// Expected is how many routers there are; by default those heard of within Forget.
	Expected int
	// Parameters is whatever else the placement depends on: distribution, hash. Routers
	// with other parameters count as having another list.
	Parameters string

	// Failover is the delay from agreeing that a server is away until all act on it;
	// default 100 ms. It is none for a router alone.
	Failover time.Duration
	// Activation is that delay for changes of the placement; default 2 s.
	Activation time.Duration
	// Commit is how long before that time a change is no longer called off; default 500 ms.
	Commit time.Duration
	// Steady is how long a server must have answered to get its keys back after they were
	// moved; default 5 s.
	Steady time.Duration
	// Beat is the time between two messages of a node when nothing happens; default 500 ms.
	Beat time.Duration
	// Fresh is how long a router counts as present after its last message; default 5 s.
	Fresh time.Duration
	// Forget is how long a router that vanished is still counted among all; default 5 min.
	Forget time.Duration
	// Patience is how long a minority can hold up the return of a server, or of a new
	// list; default 30 s.
	Patience time.Duration
	// Pause is the gap between two ticks that shows that this process was stopped, and
	// Settle how long it decides nothing afterwards; defaults 1 s and 5 s.
	Pause, Settle time.Duration
	// MaxSkew is how far this router's clock may be from the others' median; default 1 s.
	MaxSkew time.Duration
	// ListAlarm and PlacementAlarm are how long lists, or placements made from one list,
	// may differ before it is reported; defaults 30 s and 5 s.
	ListAlarm, PlacementAlarm time.Duration
	// MaxOut is the share of servers, per mille, whose keys may be moved because they are
	// down; one always may if another is left. Default 200.
	MaxOut int
	// MaxAway is the share, per mille, that may be failed over or out; default 500.
	MaxAway int

	// Damping holds back servers that flap.
	Damping damping.Config
	// AwayPenalty and OutPenalty are what failing over, and then moving the keys, cost a
	// server; default 500 each.
	AwayPenalty, OutPenalty int
}

// WithDefaults returns the configuration with zero fields filled in.
func (c Config) WithDefaults() Config {
	c.Failover = cmp.Or(c.Failover, 100*time.Millisecond)
	c.Activation = cmp.Or(c.Activation, 2*time.Second)
	c.Commit = cmp.Or(c.Commit, 500*time.Millisecond)
	c.Steady = cmp.Or(c.Steady, 5*time.Second)
	c.Beat = cmp.Or(c.Beat, 500*time.Millisecond)
	c.Fresh = cmp.Or(c.Fresh, 5*time.Second)
	c.Forget = cmp.Or(c.Forget, 5*time.Minute)
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	c.Pause = cmp.Or(c.Pause, time.Second)
	c.Settle = cmp.Or(c.Settle, 5*time.Second)
	c.MaxSkew = cmp.Or(c.MaxSkew, time.Second)
	c.ListAlarm = cmp.Or(c.ListAlarm, 30*time.Second)
	c.PlacementAlarm = cmp.Or(c.PlacementAlarm, 5*time.Second)
	c.MaxOut = cmp.Or(c.MaxOut, 200)
	c.MaxAway = cmp.Or(c.MaxAway, 500)
	c.Damping = c.Damping.WithDefaults()
	c.AwayPenalty = cmp.Or(c.AwayPenalty, 500)
	c.OutPenalty = cmp.Or(c.OutPenalty, 500)
	return c
}
