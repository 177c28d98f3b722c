package balance

import (
	"math"
	"time"
)

// peak picks, of two random candidates, the one where a request will cost less: the moving average of
// its reply times, times the requests in flight and this one. The average follows a slow
// reply at once and a fast one slowly, as in Finagle's Peak EWMA, so that a server is avoided
// from its first slow reply on, and found again as the average decays while it idles.
type peak struct{}

func (peak) pick(b *Balancer, candidates []int) int {
	p, q := b.two(len(candidates))
	now := b.now()
	costP, costQ := b.cost(candidates[p], now), b.cost(candidates[q], now)
	if costQ < costP || costQ == costP && b.compare(candidates[q], candidates[p]) < 0 {
		return q
	}
	return p
}

// cost returns what a request would cost at a server. One that never replied is
// worth a try, but not a second before the first has ended.
func (b *Balancer) cost(i int, now time.Duration) float64 {
	s, active := &b.servers[i], b.active(i)
	switch {
	case s.known:
		if active == 0 {
			s.fade(now, b.config.Decay)
		}
		return s.ewma * float64(active+1)
	case active == 0:
		return 0
	}
	return float64(b.config.ErrorTime) * float64(active+1)
}

// observe takes a reply's time into the average.
func (s *server) observe(now, took, decay time.Duration) {
	t := float64(took)
	if s.known && t < s.ewma {
		keep := math.Exp(-float64(now-s.measured) / float64(decay))
		t += (s.ewma - t) * keep
	}
	s.ewma, s.known, s.measured = t, true, now
}

// fade lets an idle server's average decay. One that owes replies must not get better
// by not sending them.
func (s *server) fade(now, decay time.Duration) {
	s.ewma *= math.Exp(-float64(now-s.measured) / float64(decay))
	s.measured = now
}
