package admin

import (
	"context"
	"time"

	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/reactor"
	"cacherouter/router"
)

// snapshotTimeout is how long a scrape waits for the loops.
const snapshotTimeout = 2 * time.Second

type snap = router.Snapshot

// routerMetrics are read off the snapshots of all loops together.
var routerMetrics = newGroup("", nil,
	counter("torn_total", "Multigets that failed when part of the reply was sent; their connection was closed.", func(s *snap) uint64 { return s.Torn }),
	gauge("requests_in_flight", "Requests of clients that are not answered yet.", func(s *snap) float64 { return float64(s.Waiting) }),
	gauge("client_connections", "Clients connected.", func(s *snap) float64 { return float64(s.Sessions) }),
	counter("client_connections_total", "Connections accepted.", func(s *snap) uint64 { return s.Clients }),
	counter("client_errors_total", "Client connections that ended with an error.", func(s *snap) uint64 { return s.ClientErrors }),
	counter("client_hangups_total", "Client connections closed for what was sent on them.", func(s *snap) uint64 { return s.Hangups }),
	counter("client_turned_away_total", "Clients beyond max_clients.", func(s *snap) uint64 { return s.TurnedAway }),
	counter("client_closed_idle_total", "Clients closed because they asked nothing for idle_timeout.", func(s *snap) uint64 { return s.ClosedIdle }),
	counter("client_closed_slow_total", "Clients closed because they took no replies for slow_timeout.", func(s *snap) uint64 { return s.ClosedSlow }),
	counter("client_moved_total", "Clients that the process serves which has taken this one's place; see operations.md.", func(s *snap) uint64 { return s.Moved }),
	counter("client_denied_total", "Connections from networks that are not allowed.", func(s *snap) uint64 { return s.Loop.Denied }),
	counter("client_authenticated_total", "Clients admitted by password.", func(s *snap) uint64 { return s.Authenticated }),
	counter("client_auth_failures_total", "Wrong users or passwords.", func(s *snap) uint64 { return s.AuthFailures }),
	counter("client_handshake_errors_total", "TLS handshakes that failed.", func(s *snap) uint64 { return s.Loop.HandshakeErrors }),
	counter("accept_errors_total", "Connections not accepted for want of descriptors or memory.", func(s *snap) uint64 { return s.Loop.AcceptErrors }),
	counter("loop_turns_total", "Turns of the event loops.", func(s *snap) uint64 { return s.Loop.Turns }),
	seconds("loop_busy_seconds_total", "Time the event loops spent in turns.", func(s *snap) float64 { return float64(s.Loop.BusyNanos) / 1e9 }),
	counter("loop_reads_total", "Read calls.", func(s *snap) uint64 { return s.Loop.Reads }),
	counter("loop_writes_total", "Write calls.", func(s *snap) uint64 { return s.Loop.Writes }),
	counter("loop_polls_total", "Looks for ready sockets.", func(s *snap) uint64 { return s.Loop.Polls }),
	counter("loop_system_calls_total", "System calls of the event loops that wait, read and write; 0 with the portable engine.", func(s *snap) uint64 { return s.Loop.Calls }),
	counter("loop_rests_total", "Moments in which a loop let events gather.", func(s *snap) uint64 { return s.Loop.Rests }),
	counter("received_bytes_total", "Bytes read from clients and servers.", func(s *snap) uint64 { return s.Loop.BytesIn }),
	counter("sent_bytes_total", "Bytes written to clients and servers.", func(s *snap) uint64 { return s.Loop.BytesOut }),
	counter("loop_copied_bytes_total", "Bytes that the event loops moved between buffers; what the kernel copies is not in it.", func(s *snap) uint64 { return s.Loop.Copied }),
	counter("denied_total", "Requests that their route does not let pass, answered with an error.", func(s *snap) uint64 { return s.Denied }),
	counter("unrouted_total", "Requests on keys that no pool has, answered with an error.", func(s *snap) uint64 { return s.Unrouted }),
)

// poolMetrics are those that every pool has.
var poolMetrics = newGroup("", nil,
	counter("keys_total", "Keys asked for by retrievals.", func(s *snap) uint64 { return s.Keys }),
	counter("hits_total", "Keys that were found.", func(s *snap) uint64 { return s.Hits }),
	counter("misses_total", "Keys that were not found.", func(s *snap) uint64 { return s.Misses }),
	counter("failed_total", "Requests that no server answered: the client was told an error, or a miss where pool.on_failure says so.", func(s *snap) uint64 { return s.Failed }),
	counter("redirected_total", "Reads that failed fast at their home and were asked of the next candidate.", func(s *snap) uint64 { return s.Redirected }),
	counter("failed_over_total", "Writes to the next candidate of a server that is away.", func(s *snap) uint64 { return s.FailedOver }),
	counter("unwritable_total", "Writes refused as their home cannot be reached and was not given up.", func(s *snap) uint64 { return s.Unwritable }),
	counter("spilled_total", "Reads that went to another candidate as the home was at its bound.", func(s *snap) uint64 { return s.Spilled }),
	counter("copied_total", "Items copied from one server to another.", func(s *snap) uint64 { return s.Copied }),
	counter("copies_overtaken_total", "Copies that were not made as a write came in between.", func(s *snap) uint64 { return s.Overtaken }),
	counter("copies_spread_total", "Copies stored together with their home.", func(s *snap) uint64 { return s.Spread }),
	gauge("servers_believed", "Servers whose reports of their load decide where reads go, if copies are balanced by those.", func(s *snap) float64 { return float64(s.Believed) }),
	counter("pulled_total", "Items looked for where they lived before the last change of the placement.", func(s *snap) uint64 { return s.Pulled }),
	counter("cleaned_total", "Deletions of what a write has left elsewhere.", func(s *snap) uint64 { return s.Cleaned }),
	counter("uncleaned_total", "Deletions that failed; their server is not trusted for a while.", func(s *snap) uint64 { return s.Uncleaned }),
	counter("shadowed_total", "Requests that the pool was sent to see how it does: no client waits for their answers.", func(s *snap) uint64 { return s.Shadowed }),
	counter("shadows_lost_total", "Those left out, as too many were outstanding.", func(s *snap) uint64 { return s.ShadowsLost }),
	counter("large_values_split_total", "Values that were stored in parts, as they were longer than pool.large_values.split_over.", func(s *snap) uint64 { return s.Split }),
	counter("large_values_joined_total", "Values that were put together from their parts.", func(s *snap) uint64 { return s.Joined }),
	counter("large_values_torn_total", "Values of which a part was gone, or was not what had been stored: they were misses.", func(s *snap) uint64 { return s.TornValues }),
	counter("limited_total", "Requests on hot keys beyond their rate.", func(s *snap) uint64 { return s.Limited }),
	counter("retries_total", "Reads that were asked again, of the same server or another, as one had failed.", func(s *snap) uint64 { return s.Retried }),
	counter("retries_refused_total", "Reads that were not asked again as the budget of retries was used up (pool.retries); the client was told of the failure.", func(s *snap) uint64 { return s.Unretried }),
	counter("slow_requests_total", "Requests that took as long as log.slow.over, or longer.", func(s *snap) uint64 { return s.Slow }),
	counter("slow_requests_unrecorded_total", "Those that are not in the log of slow requests, as there were more than log.slow.rate a second.", func(s *snap) uint64 { return s.SlowUnrecorded }),
	counter("flights_total", "Requests to servers on behalf of gets that may be several.", func(s *snap) uint64 { return s.Flights.Led }),
	counter("flights_joined_total", "Gets that shared a request with one before them.", func(s *snap) uint64 { return s.Flights.Joined + s.Flights.Waited }),
	counter("flights_sealed_total", "Requests that later gets could not share, because of a write.", func(s *snap) uint64 { return s.Flights.Sealed }),
	counter("near_hits_total", "Gets answered from the near cache.", func(s *snap) uint64 { return s.Near.Hits }),
	counter("near_misses_total", "Gets of hot keys that the near cache did not have.", func(s *snap) uint64 { return s.Near.Misses }),
	counter("near_fills_total", "Values put into the near cache.", func(s *snap) uint64 { return s.Near.Fills }),
	counter("near_too_large_total", "Values too large for the near cache.", func(s *snap) uint64 { return s.Near.TooLarge }),
	counter("leases_granted_total", "Misses shown to the client that is to store the value.", func(s *snap) uint64 { return s.Leases.Granted }),
	counter("leases_used_total", "Leases that ended with a value.", func(s *snap) uint64 { return s.Leases.Used }),
	counter("leases_expired_total", "Leases that ended without a value.", func(s *snap) uint64 { return s.Leases.Expired + s.Leases.Gone }),
	counter("gets_parked_total", "Gets that waited for another client to store the value.", func(s *snap) uint64 { return s.Leases.Parked }),
	gauge("gets_parked", "Gets that wait for another client now.", func(s *snap) float64 { return float64(s.Leases.Waiting) }),
)

// Those that have labels, or are read off something else.
var (
	requestsFamily = newFamily(counts, "requests_total", "Requests of clients, by verb, as they come. Those of binary clients are told by the verb of the text protocol that does the same.", "verb")
	repliesFamily  = newFamily(counts, "replies_total", "Requests of clients that were answered, by verb and by what the reply says: a retrieval is a hit or a miss, one of several keys is done. What the router answers by itself is not among them.", "verb", "outcome")
	refusedFamily  = newFamily(counts, "refused_total", "Malformed requests, answered with an error, by kind.", "kind")
	failuresFamily = newFamily(counts, "errors_total", "What went wrong with requests that were well formed: server is an error that a server answered with, unwritable, limited, shed, torn, unrouted and denied are as in the metrics of those names, quota is quota_refused_total, the others say why no server answered.", "kind")
	quotaFamily    = newFamily(counts, "quota_refused_total", "Requests beyond a quota, answered with an error: by the route (its prefix, and the listener if that has routes of its own) or the network that has it, and whether the rate or the number of requests in flight was reached.", "route", "listener", "network", "reason")
	underWayFamily = newFamily(gauges, "quota_requests_in_flight", "Requests in flight that count for a quota that bounds them.", "route", "listener", "network")
	shedFamily     = newFamily(counts, "shed_total", "Requests refused as the servers that could take them had too much in flight (pool.shed), by the priority of their route; gets are misses where pool.on_failure says so.", "priority")
	comparedFamily = newFamily(counts, "shadow_compared_total", "Reads that a pool was sent to see how it does, by how its answer compares with that of the route's pool: equal, different (another value or other flags), missing (it misses what the other one has), surplus (it has what the other one misses), failed (one of them was no answer). Only where the route says shadow.compare.", "result")
	tookFamily     = newFamily(observes, "request_duration_seconds", "How long requests of clients took, from the turn of an event loop that read them to the one that passed the reply on, the wait for replies to earlier requests included. Up to the length of a turn it may be off.")
	turnsFamily    = newFamily(observes, "loop_turn_duration_seconds", "Length of the turns of the event loops: what a request may have to wait for others.")
	batchesFamily  = newFamily(observes, "loop_turn_connections", "Connections with something to read that a turn of an event loop has served.")
	loopsFamily    = newFamily(gauges, "loops", "Event loops.")
	engineFamily   = newFamily(gauges, "engine_info", "1; how the event loops serve sockets: uring, epoll or portable.", "engine")
	serversFamily  = newFamily(gauges, "servers", "Servers in the table, those that hold no keys now included.")
	forcedFamily   = newFamily(counts, "forced_total", "Reads of hot keys that went to their home although it was at its bound, as all other candidates were too.")
	copiesFamily   = newFamily(gauges, "copies", "On how many servers each item lives; less than pool.copies.number while there are not as many.")
	handoverFamily = newFamily(gauges, "handover_end_timestamp_seconds", "When items are no longer looked for where they lived before the last change of the placement; 0 if there is no hand-over now.")
	scrapedFamily  = newFamily(gauges, "scrape_success", "1 if every loop answered the scrape in time.")
)

// routerFamilies are all that is read off the router.
func routerFamilies() []*family {
	all := append(append(routerMetrics.families(), poolMetrics.families()...), requestsFamily, repliesFamily, refusedFamily, failuresFamily, comparedFamily, quotaFamily, underWayFamily, shedFamily, tookFamily, turnsFamily, batchesFamily, loopsFamily, engineFamily, serversFamily, forcedFamily, copiesFamily, handoverFamily, scrapedFamily)
	return append(all, serverFamilies()...)
}

// addRouter adds what fresh snapshots of the router say, and those of its pools.
func addRouter(to *figures, r Router, pools []Pool) {
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	snaps, err := r.Snapshots(ctx)
	to.add(scrapedFamily, number(err == nil))
	if err != nil {
		return
	}
	to.add(loopsFamily, float64(len(snaps)))
	total := router.Total(snaps)
	routerMetrics.add(to, &total)
	to.observe(turnsFamily, timing(&total.Loop.Lengths, doubling))
	addBatches(to, &total.Loop)
	addErrors(to, &total)
	for v, n := range total.Requests {
		to.add(requestsFamily, float64(n), memproto.Verb(v).String())
	}
	for _, p := range pools {
		of := &total
		if len(pools) > 1 {
			to.pool, of = p.Name, &snap{PoolSnapshot: total.Of(p.Name)}
		}
		addPool(to, p.Router.Table(), of)
	}
	to.pool = ""
}

// addPool adds what is about one pool.
func addPool(to *figures, t *router.Table, s *snap) {
	poolMetrics.add(to, s)
	to.observe(tookFamily, timing(&s.Latency, doubling))
	addReplies(to, s)
	for c, n := range s.Compared {
		to.add(comparedFamily, float64(n), router.Comparison(c).String())
	}
	addPoolErrors(to, s)
	for p, n := range s.Shed {
		to.add(shedFamily, float64(n), router.Priority(p).String())
	}
	addTable(to, t)
	addServers(to, t, s)
}

func addReplies(to *figures, s *snap) {
	for v := range memproto.NumVerbs {
		for o, n := range s.Replies[v] {
			if n > 0 || v.May(memproto.Outcome(o)) {
				to.add(repliesFamily, float64(n), v.String(), memproto.Outcome(o).String())
			}
		}
	}
}

func addErrors(to *figures, s *snap) {
	for f, n := range s.Refused {
		to.add(refusedFamily, float64(n), memproto.Fault(f).Label())
	}
	to.add(failuresFamily, float64(s.Torn), "torn")
	to.add(failuresFamily, float64(s.Unrouted), "unrouted")
	to.add(failuresFamily, float64(s.Denied), "denied")
	to.add(failuresFamily, float64(s.OverQuota), "quota")
}

func addPoolErrors(to *figures, s *snap) {
	for f := backend.Failure(1); f < backend.NumFailures; f++ {
		to.add(failuresFamily, float64(s.Failures[f]), f.Label())
	}
	for kind, n := range map[string]uint64{"server": s.Faulty, "unwritable": s.Unwritable, "limited": s.Limited, "shed": s.Shedded()} {
		to.add(failuresFamily, float64(n), kind)
	}
}

// addQuotas adds what has become of quotas.
func addQuotas(to *figures, quotas []router.QuotaUse) {
	for _, q := range quotas {
		to.add(quotaFamily, float64(q.TooFast), q.Route, q.Listener, q.Network, "rate")
		to.add(quotaFamily, float64(q.TooMany), q.Route, q.Listener, q.Network, "concurrent")
		to.add(underWayFamily, float64(q.UnderWay), q.Route, q.Listener, q.Network)
	}
}

// batchBounds are the bounds of reactor.Stats.Batches.
var batchBounds = func() *bounds {
	var at []float64
	for i := range reactor.NumBatches - 1 {
		at = append(at, float64(int(1)<<i-1))
	}
	return newBounds(at...)
}()

// addBatches adds how many connections turns have served.
func addBatches(to *figures, s *reactor.Stats) {
	h := &histogram{bounds: batchBounds, sum: float64(s.Served)}
	for _, n := range s.Batches {
		h.count += n
		h.below = append(h.below, h.count)
	}
	h.below = h.below[:len(batchBounds.at)]
	to.observe(batchesFamily, h)
}

// addTable adds what is told by the table.
func addTable(to *figures, t *router.Table) {
	to.add(serversFamily, float64(len(t.Servers)))
	to.add(copiesFamily, float64(max(1, t.Copies)))
	end := 0.0
	if t.Before.Picker != nil && time.Now().Before(t.Until) {
		end = float64(t.Until.UnixMilli()) / 1000
	}
	to.add(handoverFamily, end)
	if t.Bound != nil {
		to.add(forcedFamily, float64(t.Bound.Stats().Forced))
	}
}
