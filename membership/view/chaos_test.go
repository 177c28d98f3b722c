package view

import (
	"fmt"
	"testing"
	"time"
)

// mishap breaks or mends something at random.
func (w *world) mishap(c Config) {
	r := w.routers[w.rng.IntN(len(w.routers))]
	s := fmt.Sprintf("s%02d", w.rng.IntN(len(w.servers)))
	switch w.rng.IntN(10) {
	case 0:
		w.servers[s].killed = true
	case 1:
		w.servers[s].stopped = true
	case 2, 3, 4:
		*w.servers[s] = server{}
	case 5:
		r.paused = !r.paused
	case 6:
		r.group = 1 - r.group
	case 7:
		r.deaf[s] = !r.deaf[s]
	case 8:
		w.loss = w.rng.Float64() / 2
	case 9:
		w.boot(r.i, c, len(w.servers))
	}
}

func (w *world) mend() {
	for _, s := range w.servers {
		*s = server{}
	}
	w.loss = 0
	for _, r := range w.routers {
		r.paused, r.group, r.deaf = false, 0, map[string]bool{}
	}
}

// TestChaos: whatever happens, no router ever places keys on less than seven tenths of the
// servers, and when all is well again, all agree and all servers have their keys back. The
// limit is eight tenths, but a router that is cut off between two decisions that belong
// together may know only the first.
func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		c := Config{Expected: 5}
		w := newWorld(t, seed, 5, 10, c)
		for range 60 {
			w.mishap(c)
			w.run(w.jitter(6 * time.Second))
			for _, r := range w.routers {
				if n := len(r.node.View().Members()); n < 7 {
					t.Fatalf("seed %d: router %d places keys on %d of 10 servers", seed, r.i, n)
				}
			}
		}
		w.mend()
		w.until(10*time.Minute, fmt.Sprintf("all servers back everywhere, seed %d", seed), func() bool {
			for name := range w.servers {
				if !w.status(name, In) {
					return false
				}
			}
			return w.agreed()
		})
		w.run(10 * time.Second)
		for _, r := range w.routers {
			if st := r.node.Stats(); !st.Agreed || st.Frozen || st.Abstains || st.Voters != 5 {
				t.Errorf("seed %d: router %d: %+v", seed, r.i, st)
			}
		}
	}
}
