package admin

import (
	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/router"
)

var serverLabels = []string{"server", "addr"}

// serverMetrics are read off what all loops together had to do with a server.
var serverMetrics = newGroup("server_", serverLabels,
	counter("calls_total", "Requests meant for the server.", func(s *backend.Stats) uint64 { return s.Calls }),
	counter("retries_total", "Reads sent again after their connection was lost.", func(s *backend.Stats) uint64 { return s.Retries }),
	counter("joined_total", "Gets that travelled on the line of the one before.", func(s *backend.Stats) uint64 { return s.Joined }),
	gauge("in_flight", "Requests waiting for the server.", func(s *backend.Stats) float64 { return float64(s.InFlight) }),
	counter("sent_bytes_total", "Bytes of requests.", func(s *backend.Stats) uint64 { return s.BytesOut }),
	counter("received_bytes_total", "Bytes of replies.", func(s *backend.Stats) uint64 { return s.BytesIn }),
	counter("connects_total", "Attempts to connect.", func(s *backend.Stats) uint64 { return s.Connects }),
	counter("unsolicited_total", "Connections dropped for bytes that nobody had asked for.", func(s *backend.Stats) uint64 { return s.Unsolicited }),
	gauge("up", "Loops that can reach the server.", func(s *backend.Stats) float64 { return float64(s.Up) }),
)

var (
	serverRepliesFamily  = newFamily(counts, "server_replies_total", "Replies of the server by what they say, those to the router's own requests included; of several keys each counts. Outcomes that never came are left out.", append(serverLabels, "outcome")...)
	serverFailuresFamily = newFamily(counts, "server_failures_total", "Requests the server did not answer, by reason.", append(serverLabels, "reason")...)
	serverTookFamily     = newFamily(observes, "server_reply_duration_seconds", "How long the server took to answer, as the event loops see it: the wait for a connection and up to the length of a turn included. Requests without an answer are not among them.", serverLabels...)
	serverLoadFamily     = newFamily(gauges, "server_load", "Units of load in flight, of all loops: a request is one, and one more for each 16 KiB.", serverLabels...)
	serverBoundFamily    = newFamily(gauges, "server_load_bound", "The load from which reads of hot keys go to other servers.", serverLabels...)
	serverShareFamily    = newFamily(gauges, "server_key_ratio", "Share of the hashes of keys that is at home on the server, 0 to 1.", serverLabels...)
)

func serverFamilies() []*family {
	return append(serverMetrics.families(), serverRepliesFamily, serverFailuresFamily, serverTookFamily, serverLoadFamily, serverBoundFamily, serverShareFamily)
}

// sendServers sends what is known of each server of the table. The snapshots may be of
// another one, while tables change.
func addServers(to *figures, t *router.Table, total *snap) {
	var shares []float64
	if t.Shares != nil {
		shares = t.Shares()
	}
	for i, s := range t.Servers {
		if st, ok := total.Servers[s.Address]; ok {
			addServer(to, &s, &st)
		}
		if t.Bound != nil {
			to.add(serverLoadFamily, float64(t.Bound.InFlight(i)), s.Name, s.Address)
			to.add(serverBoundFamily, float64(t.Bound.Cap(i)), s.Name, s.Address)
		}
		switch {
		case i < len(shares):
			to.add(serverShareFamily, shares[i], s.Name, s.Address)
		case shares != nil:
			to.add(serverShareFamily, 0, s.Name, s.Address)
		}
	}
}

func addServer(to *figures, s *router.Server, st *backend.Stats) {
	serverMetrics.add(to, st, s.Name, s.Address)
	for f := backend.Failure(1); f < backend.NumFailures; f++ {
		to.add(serverFailuresFamily, float64(st.Failures[f]), s.Name, s.Address, f.Label())
	}
	for o, n := range st.Outcomes {
		if n > 0 {
			to.add(serverRepliesFamily, float64(n), s.Name, s.Address, memproto.Outcome(o).String())
		}
	}
	to.observe(serverTookFamily, timing(&st.Latency, quadrupling), s.Name, s.Address)
}
