package router_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"cacherouter/router"
)

// One client too many is turned away, with or without a word; the others stay, and when
// one goes there is room again.
func TestMaxClients(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops, cfg.MaxClients = 2, 2
		for _, cfg.TellFull = range []bool{true, false} {
			r := start(t, cfg, addresses(t, 1)...)
			a, b := dial(t, r.addr), dial(t, r.addr)
			a.ask("version\r\n", "VERSION 1.6.18\r\n")
			b.ask("version\r\n", "VERSION 1.6.18\r\n")
			c := dial(t, r.addr)
			if cfg.TellFull {
				c.want("ERROR Too many open connections\r\n")
			}
			c.wantEnd()
			a.ask("version\r\n", "VERSION 1.6.18\r\n")
			a.nc.Close()
			r.until("there is room", func(s router.Snapshot) bool { return s.Sessions == 1 })
			dial(t, r.addr).ask("version\r\n", "VERSION 1.6.18\r\n")
			if s := r.total(); s.TurnedAway != 1 {
				t.Errorf("%d clients were turned away", s.TurnedAway)
			}
		}
	})
}

// A client that asks nothing is closed; one that waits for its answer is not.
func TestIdleTimeout(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.IdleTimeout = 300 * time.Millisecond
		f := listen(t)
		r := start(t, cfg, f.addr())
		waits := dial(t, r.addr)
		waits.send("get a\r\n")
		p := f.accept()
		p.want("get a\r\n")
		idle := dial(t, r.addr)
		idle.wantEnd()
		r.until("it is counted", func(s router.Snapshot) bool { return s.ClosedIdle == 1 && s.Sessions == 1 })
		p.send("END\r\n")
		waits.want("END\r\n")
		waits.wantEnd() // idle at last
	})
}

// A client that takes none of its replies is closed; one that takes them slowly is not.
func TestSlowTimeout(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.SlowTimeout = 500 * time.Millisecond
		r := start(t, cfg, addresses(t, 1)...)
		value := strings.Repeat("v", 500_000)
		c, other := dial(t, r.addr), dial(t, r.addr)
		c.ask(set("k", value), "STORED\r\n")
		go c.nc.Write([]byte(strings.Repeat("get k\r\n", 200)))
		r.until("the slow client is closed", func(s router.Snapshot) bool { return s.ClosedSlow == 1 && s.Sessions == 1 })
		other.ask("get k\r\n", hit("k", value)+"END\r\n")
		c.nc.SetDeadline(time.Now().Add(patience))
		if n, err := io.Copy(io.Discard, c.r); err == nil && n >= 200*500_000 {
			t.Errorf("a closed client got all of its %d bytes", n)
		}
	})
}
