package admin

import (
	"context"
	"time"

	"cacherouter/backend"
	"cacherouter/hotkey"
	"cacherouter/memproto"
	"cacherouter/router"

	"github.com/prometheus/client_golang/prometheus"
)

// snapshotTimeout is how long a scrape waits for the loops.
const snapshotTimeout = 2 * time.Second

// metric is one metric and how it is read off a snapshot.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*router.Snapshot) float64
}

// serverMetric is one metric that every server has.
type serverMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*backend.Stats) float64
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

func newMetric(name, help string, kind prometheus.ValueType, read func(*router.Snapshot) float64) metric {
	return metric{prometheus.NewDesc("cacherouter_"+name, help, nil, nil), kind, read}
}

func newServerMetric(name, help string, kind prometheus.ValueType, read func(*backend.Stats) float64) serverMetric {
	return serverMetric{prometheus.NewDesc("cacherouter_server_"+name, help, serverLabels, nil), kind, read}
}

var serverLabels = []string{"server", "addr"}

var metrics = []metric{
	newMetric("keys_total", "Keys asked for by retrievals.", counter, func(s *router.Snapshot) float64 { return float64(s.Keys) }),
	newMetric("hits_total", "Keys that were found.", counter, func(s *router.Snapshot) float64 { return float64(s.Hits) }),
	newMetric("misses_total", "Keys that were not found.", counter, func(s *router.Snapshot) float64 { return float64(s.Misses) }),
	newMetric("failed_total", "Requests that no server answered.", counter, func(s *router.Snapshot) float64 { return float64(s.Failed) }),
	newMetric("torn_total", "Multigets that failed when part of the reply was sent; their connection was closed.", counter, func(s *router.Snapshot) float64 { return float64(s.Torn) }),
	newMetric("redirected_total", "Reads that failed fast at their home and were asked of the next candidate.", counter, func(s *router.Snapshot) float64 { return float64(s.Redirected) }),
	newMetric("failed_over_total", "Writes to the next candidate of a server that is away.", counter, func(s *router.Snapshot) float64 { return float64(s.FailedOver) }),
	newMetric("unwritable_total", "Writes refused as their home cannot be reached and was not given up.", counter, func(s *router.Snapshot) float64 { return float64(s.Unwritable) }),
	newMetric("spilled_total", "Reads that went to another candidate as the home was at its bound.", counter, func(s *router.Snapshot) float64 { return float64(s.Spilled) }),
	newMetric("copied_total", "Items copied from one server to another.", counter, func(s *router.Snapshot) float64 { return float64(s.Copied) }),
	newMetric("copies_overtaken_total", "Copies that were not made as a write came in between.", counter, func(s *router.Snapshot) float64 { return float64(s.Overtaken) }),
	newMetric("copies_spread_total", "Copies stored together with their home.", counter, func(s *router.Snapshot) float64 { return float64(s.Spread) }),
	newMetric("servers_believed", "Servers whose reports of their load decide where reads go, if copies are balanced by those.", gauge, func(s *router.Snapshot) float64 { return float64(s.Believed) }),
	newMetric("pulled_total", "Items looked for where they lived before the last change of the placement.", counter, func(s *router.Snapshot) float64 { return float64(s.Pulled) }),
	newMetric("cleaned_total", "Deletions of what a write has left elsewhere.", counter, func(s *router.Snapshot) float64 { return float64(s.Cleaned) }),
	newMetric("uncleaned_total", "Deletions that failed; their server is not trusted for a while.", counter, func(s *router.Snapshot) float64 { return float64(s.Uncleaned) }),
	newMetric("limited_total", "Requests on hot keys beyond their rate.", counter, func(s *router.Snapshot) float64 { return float64(s.Limited) }),
	newMetric("flights_total", "Requests to servers on behalf of gets that may be several.", counter, func(s *router.Snapshot) float64 { return float64(s.Flights.Led) }),
	newMetric("flights_joined_total", "Gets that shared a request with one before them.", counter, func(s *router.Snapshot) float64 { return float64(s.Flights.Joined + s.Flights.Waited) }),
	newMetric("flights_sealed_total", "Requests that later gets could not share, because of a write.", counter, func(s *router.Snapshot) float64 { return float64(s.Flights.Sealed) }),
	newMetric("near_hits_total", "Gets answered from the near cache.", counter, func(s *router.Snapshot) float64 { return float64(s.Near.Hits) }),
	newMetric("near_misses_total", "Gets of hot keys that the near cache did not have.", counter, func(s *router.Snapshot) float64 { return float64(s.Near.Misses) }),
	newMetric("near_fills_total", "Values put into the near cache.", counter, func(s *router.Snapshot) float64 { return float64(s.Near.Fills) }),
	newMetric("near_too_large_total", "Values too large for the near cache.", counter, func(s *router.Snapshot) float64 { return float64(s.Near.TooLarge) }),
	newMetric("leases_granted_total", "Misses shown to the client that is to store the value.", counter, func(s *router.Snapshot) float64 { return float64(s.Leases.Granted) }),
	newMetric("leases_expired_total", "Leases that ended without a value.", counter, func(s *router.Snapshot) float64 { return float64(s.Leases.Expired + s.Leases.Gone) }),
	newMetric("gets_parked_total", "Gets that waited for another client to store the value.", counter, func(s *router.Snapshot) float64 { return float64(s.Leases.Parked) }),
	newMetric("gets_parked", "Gets that wait for another client now.", gauge, func(s *router.Snapshot) float64 { return float64(s.Leases.Waiting) }),
	newMetric("client_connections", "Clients connected.", gauge, func(s *router.Snapshot) float64 { return float64(s.Sessions) }),
	newMetric("client_connections_total", "Connections accepted.", counter, func(s *router.Snapshot) float64 { return float64(s.Clients) }),
	newMetric("client_errors_total", "Client connections that ended with an error.", counter, func(s *router.Snapshot) float64 { return float64(s.ClientErrors) }),
	newMetric("client_hangups_total", "Client connections closed for what was sent on them.", counter, func(s *router.Snapshot) float64 { return float64(s.Hangups) }),
	newMetric("client_turned_away_total", "Clients beyond max_clients.", counter, func(s *router.Snapshot) float64 { return float64(s.TurnedAway) }),
	newMetric("client_closed_idle_total", "Clients closed because they asked nothing for idle_timeout.", counter, func(s *router.Snapshot) float64 { return float64(s.ClosedIdle) }),
	newMetric("client_closed_slow_total", "Clients closed because they took no replies for slow_timeout.", counter, func(s *router.Snapshot) float64 { return float64(s.ClosedSlow) }),
	newMetric("client_denied_total", "Connections from networks that are not allowed.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.Denied) }),
	newMetric("client_authenticated_total", "Clients admitted by password.", counter, func(s *router.Snapshot) float64 { return float64(s.Authenticated) }),
	newMetric("client_auth_failures_total", "Wrong users or passwords.", counter, func(s *router.Snapshot) float64 { return float64(s.AuthFailures) }),
	newMetric("client_handshake_errors_total", "TLS handshakes that failed.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.HandshakeErrors) }),
	newMetric("accept_errors_total", "Connections not accepted for want of descriptors or memory.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.AcceptErrors) }),
	newMetric("loop_turns_total", "Turns of the event loops.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.Turns) }),
	newMetric("loop_busy_seconds_total", "Time the event loops spent in turns.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.BusyNanos) / 1e9 }),
	newMetric("loop_reads_total", "Read calls.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.Reads) }),
	newMetric("loop_writes_total", "Write calls.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.Writes) }),
	newMetric("loop_polls_total", "Calls that wait or look for ready sockets.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.Polls) }),
	newMetric("loop_rests_total", "Moments in which a loop let events gather.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.Rests) }),
	newMetric("received_bytes_total", "Bytes read from clients and servers.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.BytesIn) }),
	newMetric("sent_bytes_total", "Bytes written to clients and servers.", counter, func(s *router.Snapshot) float64 { return float64(s.Loop.BytesOut) }),
}

var serverMetrics = []serverMetric{
	newServerMetric("calls_total", "Requests meant for the server.", counter, func(s *backend.Stats) float64 { return float64(s.Calls) }),
	newServerMetric("retries_total", "Reads sent again after their connection was lost.", counter, func(s *backend.Stats) float64 { return float64(s.Retries) }),
	newServerMetric("in_flight", "Requests waiting for the server.", gauge, func(s *backend.Stats) float64 { return float64(s.InFlight) }),
	newServerMetric("sent_bytes_total", "Bytes of requests.", counter, func(s *backend.Stats) float64 { return float64(s.BytesOut) }),
	newServerMetric("received_bytes_total", "Bytes of replies.", counter, func(s *backend.Stats) float64 { return float64(s.BytesIn) }),
	newServerMetric("connects_total", "Attempts to connect.", counter, func(s *backend.Stats) float64 { return float64(s.Connects) }),
	newServerMetric("unsolicited_total", "Connections dropped for bytes that nobody had asked for.", counter, func(s *backend.Stats) float64 { return float64(s.Unsolicited) }),
	newServerMetric("up", "Loops that can reach the server.", gauge, func(s *backend.Stats) float64 { return float64(s.Up) }),
}

var (
	requestsDesc = prometheus.NewDesc("cacherouter_requests_total", "Requests by verb.", []string{"verb"}, nil)
	refusedDesc  = prometheus.NewDesc("cacherouter_refused_total", "Malformed requests, answered with an error, by kind.", []string{"kind"}, nil)
	failuresDesc = prometheus.NewDesc("cacherouter_server_failures_total", "Requests the server did not answer, by reason.", append(serverLabels, "reason"), nil)
	boundDesc    = prometheus.NewDesc("cacherouter_server_load", "Units of load in flight, of all loops: a request is one, and one more for each 16 KiB.", serverLabels, nil)
	capDesc      = prometheus.NewDesc("cacherouter_server_load_bound", "The load from which reads of hot keys go to other servers.", serverLabels, nil)
	copiesDesc   = prometheus.NewDesc("cacherouter_copies", "On how many servers each item lives; less than pool.copies.number while there are not as many.", nil, nil)
	upDesc       = prometheus.NewDesc("cacherouter_scrape_success", "1 if every loop answered the scrape in time.", nil, nil)
)

// collector reads the metrics off fresh snapshots at each scrape.
type collector struct{ router Router }

func newCollector(r Router) collector { return collector{r} }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range metrics {
		ch <- m.desc
	}
	for _, m := range serverMetrics {
		ch <- m.desc
	}
	ch <- requestsDesc
	ch <- refusedDesc
	ch <- failuresDesc
	ch <- upDesc
	ch <- boundDesc
	ch <- capDesc
	ch <- copiesDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	snaps, err := c.router.Snapshots(ctx)
	if err != nil {
		ch <- prometheus.MustNewConstMetric(upDesc, gauge, 0)
		return
	}
	ch <- prometheus.MustNewConstMetric(upDesc, gauge, 1)
	total := router.Total(snaps)
	for _, m := range metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(&total))
	}
	for v, n := range total.Requests {
		ch <- prometheus.MustNewConstMetric(requestsDesc, counter, float64(n), memproto.Verb(v).String())
	}
	for f, n := range total.Refused {
		ch <- prometheus.MustNewConstMetric(refusedDesc, counter, float64(n), memproto.Fault(f).Label())
	}
	t := c.router.Table()
	ch <- prometheus.MustNewConstMetric(copiesDesc, gauge, float64(max(1, t.Copies)))
	for i, s := range t.Servers {
		if st, ok := total.Servers[s.Address]; ok {
			collectServer(ch, s, &st)
		}
		if t.Bound != nil {
			ch <- prometheus.MustNewConstMetric(boundDesc, gauge, float64(t.Bound.InFlight(i)), s.Name, s.Address)
			ch <- prometheus.MustNewConstMetric(capDesc, gauge, float64(t.Bound.Cap(i)), s.Name, s.Address)
		}
	}
}

func collectServer(ch chan<- prometheus.Metric, s router.Server, st *backend.Stats) {
	for _, m := range serverMetrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(st), s.Name, s.Address)
	}
	for f := backend.Failure(1); f < backend.NumFailures; f++ {
		ch <- prometheus.MustNewConstMetric(failuresDesc, counter, float64(st.Failures[f]), s.Name, s.Address, f.Label())
	}
}

var (
	hotDesc      = prometheus.NewDesc("cacherouter_hot_keys", "Keys that are hot.", nil, nil)
	topShareDesc = prometheus.NewDesc("cacherouter_hot_key_top_share", "Share of all requests that the most frequent key has, 0 to 1.", nil, nil)
)

// hotKeysCollector tells how many keys are hot.
type hotKeysCollector struct {
	report func(k int) *hotkey.Report
}

// Describe implements prometheus.Collector.
func (c hotKeysCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- hotDesc
	ch <- topShareDesc
}

// Collect implements prometheus.Collector.
func (c hotKeysCollector) Collect(ch chan<- prometheus.Metric) {
	if r := c.report(1); r != nil {
		ch <- prometheus.MustNewConstMetric(hotDesc, gauge, float64(r.Hot))
		ch <- prometheus.MustNewConstMetric(topShareDesc, gauge, r.TopShare)
	}
}
