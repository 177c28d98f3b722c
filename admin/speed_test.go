//go:build !race

package admin

import (
	"testing"
	"time"
)

// A scrape of a thousand servers takes less than a tenth of a second, packed as Prometheus
// wants it. What else the machine does makes it slower, so the fastest of some seconds counts.
func TestScrapeOf1000ServersIsFast(t *testing.T) {
	const limit = 100 * time.Millisecond
	s := newFleet(1000, 2).server()
	for name, accept := range scrapers {
		fastest := time.Hour
		for start := time.Now(); fastest > limit && time.Since(start) < 30*time.Second; {
			began := time.Now()
			s.scrapeAs(accept)
			fastest = min(fastest, time.Since(began))
		}
		if t.Logf("%s: a scrape takes %v", name, fastest); fastest > limit {
			t.Errorf("%s: a scrape of 1000 servers takes %v, want at most %v", name, fastest, limit)
		}
	}
}

func BenchmarkScrapeOf1000Servers(b *testing.B) {
	s := newFleet(1000, 2).server()
	for name, accept := range scrapers {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.ReportMetric(float64(s.scrapeAs(accept)), "B")
			}
		})
	}
}
