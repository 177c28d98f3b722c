package admin

import (
	"fmt"

	"cacherouter/membership"
	"cacherouter/membership/discover"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

type memberStats = membership.Stats

// membershipMetrics are read off what membership says of itself.
var membershipMetrics = newGroup("", nil,
	gauge("view_version", "Version of the view: how many decisions of the routers hold. The same at all that agree.", func(s *memberStats) float64 { return float64(s.View.Version) }),
	gauge("view_agreed", "1 if all routers can be heard and have the same placement.", func(s *memberStats) float64 { return number(s.View.Agreed) }),
	counter("placement_changes_total", "Changes of the placement.", func(s *memberStats) uint64 { return uint64(s.View.Changes) }),
	gauge("routers_known", "Routers, this one included.", func(s *memberStats) float64 { return float64(s.View.Known) }),
	gauge("routers_present", "Routers that can be heard.", func(s *memberStats) float64 { return float64(s.View.Present) }),
	gauge("routers_voting", "Routers whose verdicts on servers count.", func(s *memberStats) float64 { return float64(s.View.Voters) }),
	gauge("frozen", "1 if too few routers can be heard to decide anything.", func(s *memberStats) float64 { return number(s.View.Frozen) }),
	gauge("abstains", "1 if this router does not trust what it sees of the servers.", func(s *memberStats) float64 { return number(s.View.Abstains) }),
	gauge("lists_differ", "1 if routers have had different lists of servers for too long.", func(s *memberStats) float64 { return number(s.View.ListsDiffer) }),
	gauge("placements_differ", "1 if routers have placed keys differently for too long.", func(s *memberStats) float64 { return number(s.View.PlacementsDiffer) }),
	gauge("panic", "1 if so many servers look down that their health is ignored.", func(s *memberStats) float64 { return number(s.Panic) }),
	gauge("clock_skew_seconds", "How far the other routers' clocks are ahead of this one's, as a median.", func(s *memberStats) float64 { return s.View.Skew.Seconds() }),
	counter("gossip_bad_total", "Messages of other routers that made no sense.", func(s *memberStats) uint64 { return uint64(s.BadMessages) }),
)

// gossipMetrics are about what all pools share.
var gossipMetrics = newGroup("", nil,
	counter("gossip_sent_total", "Messages to other routers.", func(s *memberStats) uint64 { return uint64(s.Gossip.Sent) }),
	counter("gossip_sent_bytes_total", "Bytes of those.", func(s *memberStats) uint64 { return uint64(s.Gossip.BytesSent) }),
	counter("gossip_received_total", "Messages of other routers.", func(s *memberStats) uint64 { return uint64(s.Gossip.Received) }),
	counter("gossip_dropped_total", "Messages of other routers that came faster than they were taken in.", func(s *memberStats) uint64 { return uint64(s.Gossip.Dropped) }),
	gauge("gossip_health", "How much reason this router has to distrust itself: 0 is none, from 4 on it does not judge servers.", func(s *memberStats) float64 { return float64(s.Gossip.Health) }),
)

// sourceMetrics are those that every source of servers has.
var sourceMetrics = newGroup("source_", []string{"source"},
	counter("looks_total", "Looks at the source.", func(s *discover.WatcherStats) uint64 { return uint64(s.Looks) }),
	counter("failures_total", "Looks that got no answer.", func(s *discover.WatcherStats) uint64 { return uint64(s.Failures) }),
	counter("refusals_total", "Answers that were not taken, or not whole.", func(s *discover.WatcherStats) uint64 { return uint64(s.Refusals) }),
	gauge("stale", "1 if the last look brought nothing that was taken: the last good list stays in force.", func(s *discover.WatcherStats) float64 { return number(s.Stale) }),
)

var (
	viewInfoFamily       = newFamily(gauges, "view_info", "1; the digests of the list of servers and of those placed. Routers that agree have the same.", "list", "placed")
	serverStatusFamily   = newFamily(gauges, "server_status", "1 for what the routers have agreed on about the server.", append(serverLabels, "status")...)
	serverHealthFamily   = newFamily(gauges, "server_health", "1 for what this router makes of the server.", append(serverLabels, "health")...)
	serverPenaltyFamily  = newFamily(gauges, "server_penalty", "Penalty for coming and going.", serverLabels...)
	serverMissedFamily   = newFamily(gauges, "server_missed_keys", "Keys that the server missed writes of at this router.", serverLabels...)
	serverWeightFamily   = newFamily(gauges, "server_weight", "Weight of the server in the placement, as configured.", serverLabels...)
	serverEffectFamily   = newFamily(gauges, "server_effective_weight", "Weight that the server's share of load goes by now: less than its weight while it is new, 0 while reads of its keys go elsewhere.", serverLabels...)
	healthChangesFamily  = newFamily(counts, "server_health_changes_total", "Changes of servers' health at this router, by what it became.", "health")
	serversChangedFamily = newFamily(gauges, "view_since_timestamp_seconds", "When the present placement began.")
)

// membershipFamilies are all that is read off membership.
func membershipFamilies() []*family {
	all := append(append(membershipMetrics.families(), gossipMetrics.families()...), sourceMetrics.families()...)
	return append(all, viewInfoFamily, serverStatusFamily, serverHealthFamily, serverPenaltyFamily, serverMissedFamily, serverWeightFamily, serverEffectFamily, healthChangesFamily, serversChangedFamily)
}

// addMembership adds membership's figures, and those of the gossip if it is the first pool's.
func addMembership(to *figures, m Membership, first bool) {
	s, stats := m.View(), m.Stats()
	membershipMetrics.add(to, &stats)
	if pool := to.pool; first {
		to.pool = ""
		gossipMetrics.add(to, &stats)
		to.pool = pool
	}
	to.add(viewInfoFamily, 1, fmt.Sprintf("%016x", s.List), fmt.Sprintf("%016x", s.Digest))
	if !s.Since.IsZero() {
		to.add(serversChangedFamily, float64(s.Since.UnixMilli())/1000)
	}
	for name, source := range stats.Sources {
		sourceMetrics.add(to, &source, name)
	}
	for state, n := range stats.Changes {
		to.add(healthChangesFamily, float64(n), health.State(state).String())
	}
	for _, server := range s.Servers {
		addMember(to, m, server, stats.Journals[server.Name])
	}
}

func addMember(to *figures, m Membership, s membership.Server, missed int) {
	for st := view.In; st <= view.Draining; st++ {
		to.add(serverStatusFamily, number(s.Status == st), s.Name, s.Address, st.String())
	}
	for h := health.Up; h <= health.SlowStart; h++ {
		to.add(serverHealthFamily, number(s.Health == h), s.Name, s.Address, h.String())
	}
	e, _ := m.Explain(s.Name)
	to.add(serverPenaltyFamily, float64(e.Penalty), s.Name, s.Address)
	to.add(serverMissedFamily, float64(missed), s.Name, s.Address)
	to.add(serverWeightFamily, float64(s.Weight), s.Name, s.Address)
	effective := 0.0
	if s.Reads {
		effective = float64(s.Weight) * float64(s.Share) / 1000
	}
	to.add(serverEffectFamily, effective, s.Name, s.Address)
}
