package balance

import (
	"testing"
	"time"
)

// round is what one request costs a balancer.
func round(b *Balancer, candidates []int) {
	server := candidates[b.Pick(candidates)]
	b.Started(server)
	b.Done(server, time.Millisecond, false)
}

func TestNoAllocations(t *testing.T) {
	for _, policy := range Policies() {
		b := must(t, withPolicy(policy, 12))
		all := upTo(12)
		for i := range all {
			b.Report(i, Report{QPS: 1, Utilization: 0.5})
		}
		b.config.Update = 1 // weights anew at every pick
		if n := testing.AllocsPerRun(1000, func() { round(b, all) }); n != 0 {
			t.Errorf("%s: %v allocations per request", policy, n)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, policy := range Policies() {
		b.Run(policy, func(b *testing.B) {
			balancer := must(b, withPolicy(policy, 12))
			candidates := []int{3, 7, 11}
			b.ReportAllocs()
			for b.Loop() {
				round(balancer, candidates)
			}
		})
	}
}
