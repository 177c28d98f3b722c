package router_test

import (
	"testing"
	"time"

	"cacherouter/router"
)

// A reply that has to wait for an earlier one counts the wait, and what the router does for
// itself is not counted at all.
func TestLatency(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		const held = 20 * time.Millisecond
		slow, fast := listen(t), listen(t)
		cfg.Pool.MaxValue = 10
		r := start(t, cfg, slow.addr(), fast.addr())
		s, f := slow.accept(), fast.accept()
		a, b := keyFor(0, 2, 0), keyFor(1, 2, 0)
		c := dial(t, r.addr)
		before := time.Now()
		c.send("get " + a + "\r\nget " + b + "\r\nversion\r\nset " + b + " 0 0 11\r\nmuch too long\r\n")
		s.want("get " + a + "\r\n")
		f.want("get " + b + "\r\n")
		f.send("END\r\n")
		f.want("delete " + b + "\r\n") // the old value of what was refused
		f.send("DELETED\r\n")
		since := time.Now()
		r.until("time passes", func(router.Snapshot) bool { return time.Since(since) > held })
		s.send("END\r\n")
		c.want("END\r\nEND\r\nVERSION 1.6.18\r\nSERVER_ERROR object too large for cache\r\n")
		most := time.Since(before)
		h := r.total().Latency
		if h.Count() != 2 || h.Sum() < 2*held || h.Sum() > 2*most {
			t.Errorf("%d requests took %v, want two of %v to %v each", h.Count(), h.Sum(), held, most)
		}
	})
}
