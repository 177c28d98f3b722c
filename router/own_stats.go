package router

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// own returns what only the router knows, in memcached's names where it has them, which
// exporters and tools understand; the rest begins with router_. What is left is added up
// over the servers.
func (f *front) own(loops []Snapshot) []stat {
	all := Total(loops)
	stats := f.process(&all)
	n := func(name string, v uint64) { stats = append(stats, stat{name, strconv.FormatUint(v, 10)}) }
	servers, up := 0, 0
	for _, w := range f.workers {
		servers, up = servers+len(w.nodes), up+w.serversUp()
	}
	n("router_servers", uint64(servers))
	n("router_servers_up", uint64(up))
	n("router_requests", all.Total())
	n("router_requests_in_flight", uint64(all.Waiting))
	n("router_get_keys", all.Keys)
	n("router_get_hits", all.Hits)
	n("router_get_misses", all.Misses)
	n("router_refused", all.Malformed())
	n("router_unrouted", all.Unrouted)
	n("router_failed", all.Failed)
	n("router_server_errors", all.Faulty)
	n("router_latency_p50_us", uint64(all.Latency.Quantile(0.5)/time.Microsecond))
	n("router_latency_p99_us", uint64(all.Latency.Quantile(0.99)/time.Microsecond))
	n("router_gets_joined", all.Flights.Joined+all.Flights.Waited)
	n("router_gets_parked", all.Leases.Parked)
	n("router_leases_granted", all.Leases.Granted)
	n("router_near_hits", all.Near.Hits)
	n("router_spilled", all.Spilled)
	n("router_limited", all.Limited)
	n("router_shed", all.Shedded())
	n("router_quota_refused", all.OverQuota)
	n("router_retries", all.Retried)
	n("router_redirected", all.Redirected)
	n("router_failed_over", all.FailedOver)
	n("router_unwritable", all.Unwritable)
	return stats
}

// process returns what there is in memcached's names.
func (f *front) process(all *Snapshot) []stat {
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	stats := []stat{
		{"pid", strconv.Itoa(os.Getpid())},
		{"uptime", n(uint64(f.now().Seconds()))},
		{"time", strconv.FormatInt(time.Now().Unix(), 10)},
		{"version", f.r.cfg.Version},
		{"pointer_size", strconv.Itoa(strconv.IntSize)},
	}
	if user, system, ok := usage(); ok {
		stats = append(stats, stat{"rusage_user", timeval(user)}, stat{"rusage_system", timeval(system)})
	}
	return append(stats,
		stat{"max_connections", strconv.Itoa(f.r.cfg.MaxClients)},
		stat{"curr_connections", strconv.Itoa(all.Sessions)},
		stat{"total_connections", n(all.Clients)},
		stat{"rejected_connections", n(all.TurnedAway)},
		stat{"accepting_conns", "1"},
		stat{"auth_cmds", n(all.Authenticated + all.AuthFailures)},
		stat{"auth_errors", n(all.AuthFailures)},
		stat{"threads", strconv.Itoa(len(f.r.fronts))},
	)
}

// timeval writes a duration as memcached does: seconds, a dot, and six digits.
func timeval(d time.Duration) string {
	return fmt.Sprintf("%d.%06d", d/time.Second, d%time.Second/time.Microsecond)
}
