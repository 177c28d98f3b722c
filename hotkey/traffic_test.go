package hotkey

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// exact counts the first ranks exactly, and smooths the counts as the collector does: so
// what differs is due to the sketches and the names.
type exact struct {
	rates [400]rate // by rank
}

func (e *exact) count(rank int) {
	if rank < len(e.rates) {
		e.rates[rank].now++
	}
}

func (e *exact) tick(c *Config) {
	k, slow := weights(tick, c.Smooth)
	for i := range e.rates {
		e.rates[i].tick(tick.Seconds(), k, slow)
	}
}

// top returns the k ranks with the highest rates.
func (e *exact) top(k int) []int {
	ranks := make([]int, len(e.rates))
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortFunc(ranks, func(a, b int) int { return int(e.rates[b].fast - e.rates[a].fast) })
	return ranks[:k]
}

// zipfTraffic is a million requests a second, on ten million keys, on two loops.
func zipfTraffic(t *testing.T, s float64) (*traffic, *exact) {
	tr := newTraffic(t, 2, Config{Servers: 8})
	z := newZipf(s, population, 11)
	e := &exact{}
	buf := make([]byte, 0, 16)
	tr.each = func() {
		for i := range 100_000 {
			n := z.draw()
			e.count(n)
			tr.counters[i%2].Touch(hashOf(n), keyOf(buf, n))
		}
		e.tick(&tr.cfg)
	}
	return tr, e
}

// What is reported is the true top 100, at the true rates.
func TestReportOfZipf(t *testing.T) {
	for _, s := range []float64{0.99, 1.1} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			tr, e := zipfTraffic(t, s)
			tr.run(2 * second)
			top, good, off := e.top(100), 0, 0.0
			got := tr.Report(100).Keys
			for _, k := range got {
				rank := numberOf([]byte(k.Key))
				if slices.Contains(top, rank) {
					good++
				}
				if rank >= len(e.rates) {
					t.Fatalf("rank %d is in the top 100", rank)
				}
				off = max(off, math.Abs(k.Rate/e.rates[rank].fast-1))
			}
			recall, precision := float64(good)/100, float64(good)/float64(len(got))
			t.Logf("recall %.2f, precision %.2f, largest error of a rate %.4f", recall, precision, off)
			if recall < 0.98 || precision < 0.95 || off > 0.02 {
				t.Errorf("recall %.2f, precision %.2f, a rate is off by %.4f", recall, precision, off)
			}
		})
	}
}

// A key that comes to half a percent of a million requests a second is hot within 2 s,
// and no key of the steady traffic becomes so with it.
func TestHotKeyInZipf(t *testing.T) {
	tr, _ := zipfTraffic(t, 0.99)
	tr.SetServers(64) // the limit is 0.39 %
	tr.run(second)
	steady := tr.each
	tr.each = func() { steady(); tr.request("k", 500) }
	changes := ""
	for end := tr.now + 2*second; changes == "" && tr.now < end; {
		changes = tr.run(tick)
	}
	if changes != "k cold->hot" {
		t.Errorf("until %v: %q", tr.now, changes)
	}
}
