package view

import (
	"fmt"
	"testing"
	"time"

	"cacherouter/membership/health"
)

// BenchmarkTick is what a router pays ten times a second.
func BenchmarkTick(b *testing.B) {
	for _, servers := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(servers), func(b *testing.B) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			pool := health.NewPool(health.Config{}, now)
			for _, s := range names(servers) {
				pool.Add(s.Name, true, now)
			}
			n := New(Config{Router: "r"}, pool, names(servers), now)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(100 * time.Millisecond)
				for i := range 4 {
					n.Step(Message{Observers: []Observer{{Router: fmt.Sprint("p", i), Boot: 1, Seq: uint64(now.UnixMilli()), Sent: now, List: n.listed}}}, now)
				}
				pool.Tick(now)
				n.Tick(now)
			}
		})
	}
}
