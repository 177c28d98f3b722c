package view

import (
	"encoding/binary"
	"testing"
	"time"

	"cacherouter/rendezvous"
	"github.com/cespare/xxhash/v2"
)

// numKeys is how many keys stand for all.
const numKeys = 20_000

// homes returns the name of each key's home.
func homes(t *testing.T, servers []Placed) []string {
	t.Helper()
	names, weights := make([]string, len(servers)), make([]int, len(servers))
	for i, s := range servers {
		names[i], weights[i] = s.Name, s.Weight
	}
	p, err := rendezvous.New(names, weights)
	if err != nil {
		t.Fatal(err)
	}
	all, pick := make([]string, numKeys), []int{}
	for k := range all {
		pick = p.Pick(pick[:0], xxhash.Sum64(binary.BigEndian.AppendUint64(nil, uint64(k))), 1)
		all[k] = names[pick[0]]
	}
	return all
}

// origin is what reaches the database behind the caches per second when a share of keys has
// just moved: 200,000 requests a second, of which 95 % hit where nothing has moved.
func origin(moved float64) float64 { return 200_000 * (moved + (1-moved)*0.05) }

func share(n, of int) float64 { return float64(n) / float64(of) }

// TestRemapStorm has the figures for one server more than ten: the database sees 10,000
// requests a second before, 18 times as many if places are counted modulo the number of
// servers, 2.7 times with a consistent placement as this one is. Each flap of a server would
// be such a storm, twice; here a server that flaps every 2 s for a minute costs one.
func TestRemapStorm(t *testing.T) {
	w := newWorld(t, 1, 3, 10, Config{})
	for _, r := range w.routers {
		r.node.SetList(names(11), w.now)
		r.pool.Add("s10", true, w.now)
	}
	w.servers["s10"] = &server{}
	before := homes(t, w.routers[0].node.View().Members())
	w.until(5*time.Second, "the new list", func() bool { return len(w.changes) == 3 })
	after := homes(t, w.routers[0].node.View().Members())
	moved, modulo := 0, 0
	for k := range before {
		if before[k] != after[k] {
			moved++
		}
		if k%10 != k%11 {
			modulo++
		}
	}
	f := func(what string, got, want, off float64) {
		t.Helper()
		if got < want-off || got > want+off {
			t.Errorf("%s: %.0f requests a second at the database, want %.0f", what, got, want)
		}
	}
	f("before", origin(0), 10_000, 0)
	f("modulo", origin(share(modulo, numKeys)), 183_000, 1000)
	f("consistent", origin(share(moved, numKeys)), 27_000, 1500)

	w.run(5 * time.Second)
	w.changes = nil
	storms, now := 0, after
	for range 15 {
		for _, dead := range []bool{true, false} {
			w.servers["s05"].killed = dead
			w.run(2 * time.Second)
			next := homes(t, w.routers[0].node.View().Members())
			for k := range next {
				if next[k] != now[k] {
					storms++
					break
				}
			}
			now = next
		}
	}
	if storms > 1 {
		t.Errorf("a server that flaps 15 times moved keys %d times, want at most once", storms)
	}
}
