package e2e

import (
	"time"

	"cacherouter/internal/history"
)

// impatience is how long servers may take to answer where faults are to be short, and impatient says so to a pool.
const (
	impatience = 500 * time.Millisecond
	impatient  = "  timeout: 500ms\n  connect_timeout: 500ms\n"
)

// unwatched are lines for routers that leave keys where they are, whatever happens to servers.
const unwatched = "membership:\n  enabled: false\n"

// What pools can have beyond that. Servers at their bounds let any read be of a copy, keys are hot at once, and items are
// near their ends from the start. What is to be renewed is asked of its home, so it goes with no copies.
const (
	alone    = "  coalesce: off\n  bound: {spill: none}\n" // even reads of one packet keep their order
	spilling = "  bound: {spill: any, factor: 1, floor: 1}\n"
	copies   = "  copies: {number: 2}\n"
	inflight = "  coalesce: inflight\n"
	near     = "  near: {bytes: 65536}\n  hot: {min_rate: 10}\n"
	leases   = "  lease: {enabled: true, time: 50ms}\n"
	renewing = "  refresh: {before: 30s}\n"
	vivified = "  refresh: {before: 30s, vivify: 2s}\n"
	sparing  = "  shed: {normal: 12, low: 12}\n  retries: {budget: 0, floor: 0}\nclients: [{network: 127.0.0.0/8, concurrent: 60, rate: 10000, burst: 100}]\n"
)

// What several pools can be composed of. A0, A1 and so on stand for addresses.
const (
	spare = `pools:
  main: {servers: [server0=A0, server1=A1, server2=A2], failover: spare, IMPATIENT}
  spare: {servers: [server3=A3]}
routes: [{pool: main}]
`
	zones = `zone: b
pool:
  servers:
    - {name: server0, address: "A0", zone: a}
    - {name: server1, address: "A1", zone: a}
    - {name: server2, address: "A2", zone: b}
    - {name: server3, address: "A3", zone: b}
  copies: {zones: true}
  timeout: 500ms
  connect_timeout: 500ms
  bulk_size: 1024
`
	growing = `pools:
  old: {servers: [server0=A0, server1=A1], distribution: twemproxy-ketama, IMPATIENT}
  new: {servers: [server2=A2, server3=A3], warm_up: old, IMPATIENT}
routes: [{pool: old, split: {pool: new, percent: PERCENT}}]
`
	replaced = `pools:
  old: {servers: [server0=A0, server1=A1, server2=A2, server3=A3], distribution: twemproxy-ketama}
  new: {servers: [server0=A0, server1=A1, server2=A2, server3=A3], warm_up: old, IMPATIENT}
routes: [{pool: new}]
`
	inParts = "  large_values: {split_over: 512}\n"
)

// The faults of a world. A router that is alone forgets what it knew of the servers when it is killed, so those that
// watch them are spared that. It takes long to start a router that looks for others.
var (
	serverFaults = []string{serverKilled, serverPaused, serverStopped, serverReset, linkReset, linkPaused, linkCut, routerPaused}
	allFaults    = append([]string{routerKilled}, serverFaults...)
	poolFaults   = append([]string{poolRenewed}, serverFaults...)
	onlyGone     = []string{serverGone}
	longFaults   = append(onlyGone, serverFaults...)
	moves        = []string{serverGone, serverMoved}
	fleetFaults  = []string{serverGone, serverMoved, routerKilled, routerStopped, routerCut}
)

// mostly is how much is read where near caches and spilled copies are to have something to do: what is often written is
// not near, and is read at home while it is.
const mostly = 75

// The contract of one router: one order for all, but of reads that were sent together. Those may share the answers to
// others, or be of copies. Where servers are given up a key's home may be another for a while.
var (
	still = history.Contract{Overtake: true}
	exact = history.Contract{Overtake: true, Moves: true}
	// places is exact where a delete may find what only keeps the place of an item.
	places = history.Contract{Overtake: true, Moves: true, Places: true}
)

// standstill is how long a process may stand still on a busy machine between looking at the clock and doing what it is
// allowed to do until then.
const standstill = 500 * time.Millisecond

// What several routers are held to, as docs/consistency.md has it. What only homes tell is exact unless servers that
// lost their memory get items back from copies. A copy that is stored after its time is noted comes late by as long as
// that takes, which is two timeouts.
var (
	nearLag = history.Contract{Lag: time.Second + standstill, Overtake: true}
	copyLag = history.Contract{Lag: 10*time.Second + 2*impatience + standstill, Loose: true}
	awayLag = history.Contract{Lag: time.Minute, Loose: true}
)

// plans are the worlds in which histories are recorded.
var plans = []plan{
	{name: "one router", routers: 1, uses: []string{shared}, contract: still},
	{name: "one router that spills, faults", routers: 1, reads: mostly, config: impatient + spilling, uses: []string{spilled, cleaned},
		faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router with copies, faults", routers: 1, config: impatient + copies, uses: []string{copied, spreads},
		faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router with a near cache, faults", routers: 1, reads: mostly, config: impatient + near, uses: []string{nearHits},
		faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router with leases that shares what is in flight, faults", routers: 1, config: impatient + inflight + leases,
		uses: []string{shared, parked}, faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router with all that spills, servers that move, faults", routers: 1, reads: mostly,
		config: impatient + spilling + near + inflight + leases + quick,
		uses:   []string{shared, spilled, nearHits, parked}, makes: []string{pulled}, faults: poolFaults, long: moves, contract: exact},
	{name: "one router that splits large values, faults", routers: 1, config: impatient + inParts, uses: []string{shared, joined},
		faults: []string{serverKilled, linkCut}, long: longFaults, contract: exact},
	{name: "one router with spare servers, faults", routers: 1, pools: spare, uses: []string{shared}, makes: []string{failedOver},
		faults: []string{serverAway}, long: longFaults, contract: exact},
	{name: "one router with a zone of each copy, faults", routers: 1, pools: zones, uses: []string{copied, spreads},
		faults: []string{serverKilled}, long: longFaults, contract: exact},
	{name: "one router whose split grows, warmed up, faults", routers: 1, pools: growing, uses: []string{shared},
		faults: []string{splitGrows, serverReset}, long: []string{linkReset, splitGrows}, makes: []string{pulled}, contract: exact},
	{name: "one router warmed up from another placement, faults", routers: 1, pools: replaced, uses: []string{pulled},
		faults: []string{serverKilled}, long: longFaults, contract: exact},
	{name: "three routers that agree, faults", routers: 3, config: impatient, gossip: true, faults: serverFaults,
		long: fleetFaults, contract: awayLag},

	{name: "one router with copies that come later, faults", routers: 1, onlyLong: true,
		config: impatient + "  copies: {number: 2, answer: home}\n", uses: []string{copied, spreads},
		faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router with all and copies, servers that move, faults", routers: 1, reads: mostly, onlyLong: true,
		config: impatient + copies + near + leases + quick,
		uses:   []string{shared, copied, spreads, nearHits, parked}, makes: []string{pulled}, faults: poolFaults, long: moves, contract: exact},
	{name: "one router that has items renewed, faults", routers: 1, onlyLong: true, ttl: 25,
		config: impatient + leases + renewing, uses: []string{shared, parked}, faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router that holds places of items, faults", routers: 1, onlyLong: true, simple: true, ttl: 25,
		config: impatient + leases + vivified, uses: []string{shared, parked}, faults: poolFaults, long: onlyGone, contract: places},
	{name: "one router that refuses what is too much, faults", routers: 1, onlyLong: true,
		config: impatient + spilling + sparing, uses: []string{spilled, overQuota, shed}, makes: []string{unretried},
		faults: poolFaults, long: onlyGone, contract: exact},
	{name: "one router that watches nothing, faults", routers: 1, onlyLong: true,
		config: impatient + alone + unwatched, faults: allFaults},
	{name: "three routers that watch nothing, faults", routers: 3, onlyLong: true,
		config: impatient + alone + unwatched, faults: allFaults},
	{name: "three routers with near caches, faults", routers: 3, reads: mostly, onlyLong: true, config: impatient + near + unwatched,
		uses: []string{shared, nearHits}, faults: append([]string{poolRenewed}, allFaults...), contract: nearLag},
	{name: "three routers with copies, faults", routers: 3, onlyLong: true, config: impatient + copies + unwatched,
		uses: []string{copied, spreads}, faults: serverFaults, contract: copyLag},
	{name: "three routers with all that spill and agree, faults", routers: 3, reads: mostly, onlyLong: true, gossip: true,
		config: impatient + spilling + near + inflight + leases + quick, uses: []string{shared, spilled, nearHits, parked},
		faults: poolFaults, long: fleetFaults, contract: awayLag},
}
