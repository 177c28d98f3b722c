package admin

import (
	"fmt"

	"cacherouter/membership"
	"cacherouter/membership/discover"
	"cacherouter/membership/health"
	"cacherouter/membership/view"

	"github.com/prometheus/client_golang/prometheus"
)

// figure is one figure of membership and how it is read.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*membership.Stats) float64
}

func newFigure(name, help string, kind prometheus.ValueType, read func(*membership.Stats) float64) figure {
	return figure{prometheus.NewDesc("cacherouter_"+name, help, nil, nil), kind, read}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var figures = []figure{
	newFigure("view_version", "Version of the view: how many decisions of the routers hold. The same at all that agree.", gauge, func(s *membership.Stats) float64 { return float64(s.View.Version) }),
	newFigure("view_agreed", "1 if all routers can be heard and have the same placement.", gauge, func(s *membership.Stats) float64 { return number(s.View.Agreed) }),
	newFigure("placement_changes_total", "Changes of the placement.", counter, func(s *membership.Stats) float64 { return float64(s.View.Changes) }),
	newFigure("routers_known", "Routers, this one included.", gauge, func(s *membership.Stats) float64 { return float64(s.View.Known) }),
	newFigure("routers_present", "Routers that can be heard.", gauge, func(s *membership.Stats) float64 { return float64(s.View.Present) }),
	newFigure("routers_voting", "Routers whose verdicts on servers count.", gauge, func(s *membership.Stats) float64 { return float64(s.View.Voters) }),
	newFigure("frozen", "1 if too few routers can be heard to decide anything.", gauge, func(s *membership.Stats) float64 { return number(s.View.Frozen) }),
	newFigure("abstains", "1 if this router does not trust what it sees of the servers.", gauge, func(s *membership.Stats) float64 { return number(s.View.Abstains) }),
	newFigure("lists_differ", "1 if routers have had different lists of servers for too long.", gauge, func(s *membership.Stats) float64 { return number(s.View.ListsDiffer) }),
	newFigure("placements_differ", "1 if routers have placed keys differently for too long.", gauge, func(s *membership.Stats) float64 { return number(s.View.PlacementsDiffer) }),
	newFigure("panic", "1 if so many servers look down that their health is ignored.", gauge, func(s *membership.Stats) float64 { return number(s.Panic) }),
	newFigure("clock_skew_seconds", "How far the other routers' clocks are ahead of this one's, as a median.", gauge, func(s *membership.Stats) float64 { return s.View.Skew.Seconds() }),
	newFigure("gossip_sent_total", "Messages to other routers.", counter, func(s *membership.Stats) float64 { return float64(s.Gossip.Sent) }),
	newFigure("gossip_sent_bytes_total", "Bytes of those.", counter, func(s *membership.Stats) float64 { return float64(s.Gossip.BytesSent) }),
	newFigure("gossip_received_total", "Messages of other routers.", counter, func(s *membership.Stats) float64 { return float64(s.Gossip.Received) }),
	newFigure("gossip_dropped_total", "Messages of other routers that came faster than they were taken in.", counter, func(s *membership.Stats) float64 { return float64(s.Gossip.Dropped) }),
	newFigure("gossip_bad_total", "Messages of other routers that made no sense.", counter, func(s *membership.Stats) float64 { return float64(s.BadMessages) }),
	newFigure("gossip_health", "How much reason this router has to distrust itself: 0 is none, from 4 on it does not judge servers.", gauge, func(s *membership.Stats) float64 { return float64(s.Gossip.Health) }),
}

// sourceMetric is one metric that every source of servers has.
type sourceMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*discover.WatcherStats) float64
}

func newSourceMetric(name, help string, kind prometheus.ValueType, read func(*discover.WatcherStats) float64) sourceMetric {
	return sourceMetric{prometheus.NewDesc("cacherouter_source_"+name, help, []string{"source"}, nil), kind, read}
}

var sourceMetrics = []sourceMetric{
	newSourceMetric("looks_total", "Looks at the source.", counter, func(s *discover.WatcherStats) float64 { return float64(s.Looks) }),
	newSourceMetric("failures_total", "Looks that got no answer.", counter, func(s *discover.WatcherStats) float64 { return float64(s.Failures) }),
	newSourceMetric("refusals_total", "Answers that were not taken, or not whole.", counter, func(s *discover.WatcherStats) float64 { return float64(s.Refusals) }),
	newSourceMetric("stale", "1 if the last look brought nothing that was taken: the last good list stays in force.", gauge, func(s *discover.WatcherStats) float64 { return number(s.Stale) }),
}

var (
	viewDesc    = prometheus.NewDesc("cacherouter_view_info", "1; the digests of the list of servers and of those placed.", []string{"list", "placed"}, nil)
	statusDesc  = prometheus.NewDesc("cacherouter_server_status", "1 for what the routers have agreed on about the server.", append(serverLabels, "status"), nil)
	healthDesc  = prometheus.NewDesc("cacherouter_server_health", "1 for what this router makes of the server.", append(serverLabels, "health"), nil)
	penaltyDesc = prometheus.NewDesc("cacherouter_server_penalty", "Penalty for coming and going.", serverLabels, nil)
	missedDesc  = prometheus.NewDesc("cacherouter_server_missed_keys", "Keys that the server missed writes of at this router.", serverLabels, nil)
	changesDesc = prometheus.NewDesc("cacherouter_server_health_changes_total", "Changes of servers' health at this router, by what it became.", []string{"health"}, nil)
)

// membersCollector reads membership's figures at each scrape.
type membersCollector struct{ m Membership }

// Describe implements prometheus.Collector.
func (c membersCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range figures {
		ch <- f.desc
	}
	for _, f := range sourceMetrics {
		ch <- f.desc
	}
	for _, d := range []*prometheus.Desc{viewDesc, statusDesc, healthDesc, penaltyDesc, missedDesc, changesDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c membersCollector) Collect(ch chan<- prometheus.Metric) {
	s, stats := c.m.View(), c.m.Stats()
	for _, f := range figures {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(&stats))
	}
	ch <- prometheus.MustNewConstMetric(viewDesc, gauge, 1, fmt.Sprintf("%016x", s.List), fmt.Sprintf("%016x", s.Digest))
	for name, source := range stats.Sources {
		for _, f := range sourceMetrics {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(&source), name)
		}
	}
	for state, n := range stats.Changes {
		ch <- prometheus.MustNewConstMetric(changesDesc, counter, float64(n), health.State(state).String())
	}
	for _, server := range s.Servers {
		c.collectServer(ch, server, stats.Journals[server.Name])
	}
}

func (c membersCollector) collectServer(ch chan<- prometheus.Metric, s membership.Server, missed int) {
	for st := view.In; st <= view.Draining; st++ {
		ch <- prometheus.MustNewConstMetric(statusDesc, gauge, number(s.Status == st), s.Name, s.Address, st.String())
	}
	for h := health.Up; h <= health.SlowStart; h++ {
		ch <- prometheus.MustNewConstMetric(healthDesc, gauge, number(s.Health == h), s.Name, s.Address, h.String())
	}
	e, _ := c.m.Explain(s.Name)
	ch <- prometheus.MustNewConstMetric(penaltyDesc, gauge, float64(e.Penalty), s.Name, s.Address)
	ch <- prometheus.MustNewConstMetric(missedDesc, gauge, float64(missed), s.Name, s.Address)
}
