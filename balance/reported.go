package balance

import (
	"math"
	"slices"
	"time"
)

// Report is what a server says of itself.
type Report struct {
	QPS         float64 // requests a second
	EPS         float64 // errors a second
	Utilization float64 // share of its capacity in use; 1 is all of it
}

// Weight returns how many requests a second a server could take by its report:
// qps / (utilization + eps/qps * penalty), the formula of gRPC's weighted round robin (gRFC A58). It is 0
// when the report does not tell, as with no requests or no utilization.
func (r Report) Weight(penalty float64) float64 {
	if !(r.QPS > 0 && r.Utilization > 0 && r.EPS >= 0) {
		return 0
	}
	w := r.QPS / (r.Utilization + r.EPS/r.QPS*penalty)
	if math.IsInf(w, 0) {
		return 0
	}
	return w
}

// report is what is kept of the reports of a server.
type report struct {
	weight      float64       // by the last usable report; 0 means that there was none
	first, last time.Duration // when reports began, and when the last came
	share       int64         // the weight it is picked by, in 1/scale of the median
}

// Report takes a report of a server. It returns false when the report tells nothing; then
// it is as if none had come. A caller should say so once, as the policy then has nothing to go by.
func (b *Balancer) Report(server int, r Report) bool {
	w := r.Weight(b.config.ErrorPenalty)
	if w == 0 {
		return false
	}
	now, s := b.now(), &b.servers[server].report
	if s.weight == 0 || now-s.last > b.config.Expiry {
		s.first = now
	}
	s.weight, s.last = w, now
	return true
}

// Forget drops the reports of a server, as of one that was restarted. The next one begins another
// blackout.
func (b *Balancer) Forget(server int) { b.servers[server].report.weight = 0 }

// Standing says whether a server is picked by its reports.
type Standing uint8

// The standings. In all but Believed a server has the median weight of those that are.
const (
	Unheard  Standing = iota // no usable report came
	Blackout                 // reports began to come, too short a time ago
	Believed
	Expired // the last came too long ago
)

// String returns the standing in lower case.
func (s Standing) String() string {
	return [...]string{"unheard", "blackout", "believed", "expired"}[s]
}

// Standing returns what the reports of a server are good for now. A policy of Reported whose
// servers are not Believed is round robin, of which somebody should be told.
func (b *Balancer) Standing(server int) Standing {
	return b.servers[server].report.standing(b.now(), &b.config)
}

func (r *report) standing(now time.Duration, c *Config) Standing {
	switch {
	case r.weight == 0:
		return Unheard
	case now-r.last > c.Expiry:
		return Expired
	case now-r.first < c.Blackout:
		return Blackout
	}
	return Believed
}

// reported is smooth weighted round robin by the weights that reports give. A server
// without a usable one has the median weight of the others; with none usable all are equal.
type reported struct{}

func (reported) pick(b *Balancer, candidates []int) int {
	if now := b.now(); now >= b.due {
		b.due = now + b.config.Update
		b.reweigh(now)
	}
	return b.smoothly(candidates, func(i int) int64 { return b.servers[i].report.share })
}

// reweigh works out all shares. They are relative to the median, so that what a server is
// owed keeps its meaning when all weights change together.
func (b *Balancer) reweigh(now time.Duration) {
	middle := b.medianWeight(now)
	for i := range b.servers {
		r := &b.servers[i].report
		r.share = scale
		if r.standing(now, &b.config) == Believed {
			r.share = int64(min(max(r.weight/middle, 1.0/scale), 1000) * scale)
		}
	}
}

// medianWeight returns the median weight of the usable reports; of two in the middle, their mean.
func (b *Balancer) medianWeight(now time.Duration) float64 {
	weights := b.weights[:0]
	for i := range b.servers {
		if r := &b.servers[i].report; r.standing(now, &b.config) == Believed {
			weights = append(weights, r.weight)
		}
	}
	if len(weights) == 0 {
		return 0
	}
	slices.Sort(weights)
	return weights[(len(weights)-1)/2]/2 + weights[len(weights)/2]/2
}
