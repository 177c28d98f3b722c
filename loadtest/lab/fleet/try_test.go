package fleet

import (
	"flag"
	"fmt"
	"testing"
)

var load = flag.Float64("load", .55, "")
var wr = flag.Float64("writes", .01, "")
var slo = flag.Int("slow", 1, "")
var keys = flag.Int("keys", 100000, "")

func TestTry(t *testing.T) {
	for _, z := range []float64{.9, .99, 1.2} {
		w, err := NewWorld(8, *keys, z)
		if err != nil {
			t.Fatal(err)
		}
		for _, slow := range []int{*slo} {
			for _, r := range []int{1, 3, 20} {
				for _, p := range []Policy{Hot, Any, Auto} {
					o, err := Run(w, Config{Policy: p, Routers: r, Load: *load, Slow: slow, Depth: 2, Writes: *wr, Cached: .6, Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					fmt.Printf("zipf %.2f slow %2d R %2d %-10s fullest %.2f p99 %.2f inflight %5.1f spilled %5.2f%% copyhits %5.1f%% hits %.2f%% failed %.2f%% stale %d p50 %v p99 %v\n", z, slow, r, p, o.Fullest, o.Fullest99, o.InFlight, 100*o.Spilled, 100*o.CopyHits, 100*o.Hits, 100*o.Failed, o.Stale, o.P50, o.P99)
				}
			}
		}
	}
}
