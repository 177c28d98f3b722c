package router_test

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/router"
)

// settled waits until the servers send the router nothing more, and returns how much
// they have sent.
func (r *running) settled() (bytes uint64) {
	r.t.Helper()
	same, last := 0, uint64(0)
	r.until("the servers rest", func(s router.Snapshot) bool {
		var in uint64
		waiting := 0
		for _, st := range s.Servers {
			in += st.BytesIn
			waiting += st.InFlight
		}
		if same++; in != last || waiting > 0 {
			same, last = 0, in
		}
		return same > 20
	})
	return last
}

// A client that asks and does not read costs a bounded number of bytes, whether it has
// been polite before or not, and is answered in full when it reads after all.
func TestClientThatDoesNotRead(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, addresses(t, 2)...)
		for _, size := range []int{100, 10_000, 500_000} {
			const asked = 3000
			// A newcomer may have 32 requests outstanding. The rest is a MiB and what the
			// sockets hold.
			bound := uint64(32*size + 10<<20)
			value := strings.Repeat("v", size)
			for _, polite := range []bool{true, false} {
				c := dial(t, r.addr)
				c.ask(set("k", value), "STORED\r\n")
				if !polite {
					c = dial(t, r.addr) // one that has seen no reply yet
				}
				before := r.settled()
				request := strings.Repeat("get k\r\n", asked)
				go c.nc.Write([]byte(request)) // blocks when the router reads no more
				took := r.settled() - before
				if took > bound {
					t.Errorf("%d bytes were taken for a client that does not read values of %d", took, size)
				}
				if size == 500_000 && took >= uint64(asked*size) {
					t.Error("nothing was held back")
				}
				for range 40 {
					c.want(hit("k", value) + "END\r\n")
				}
				c.nc.SetLinger(0)
				c.nc.Close()
			}
		}
	})
}

// The same for one multiget of much.
func TestMultigetThatIsNotRead(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, addresses(t, 2)...)
		c := dial(t, r.addr)
		value := strings.Repeat("v", 50_000)
		c.ask(set("a", value)+set("b", value), "STORED\r\nSTORED\r\n")
		before := r.settled()
		c.send("get" + strings.Repeat(" a b", 250) + "\r\nversion\r\n")
		if took := r.settled() - before; took > 256*50_100+10<<20 { // the first window
			t.Errorf("%d bytes were taken", took)
		}
		for range 250 {
			c.want(hit("a", value) + hit("b", value))
		}
		c.want("END\r\nVERSION 1.6.18\r\n")
	})
}

// One client's stall is not another's.
func TestStalledClientHoldsUpNobody(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, addresses(t, 2)...)
		value := strings.Repeat("v", 200_000)
		stalled, other := dial(t, r.addr), dial(t, r.addr)
		stalled.ask(set("k", value), "STORED\r\n")
		go stalled.nc.Write([]byte(strings.Repeat("get k\r\n", 5000)))
		half := dial(t, r.addr)
		half.send("set k 0 0 1000000\r\nhalf of a value")
		r.settled()
		for i := range 200 {
			k := fmt.Sprint("other", i)
			other.ask(set(k, "1")+"get "+k+" k\r\n", "STORED\r\n"+hit(k, "1")+hit("k", value)+"END\r\n")
		}
		stalled.nc.SetLinger(0)
		stalled.nc.Close()
	})
}

// Requests beyond what may be outstanding wait their turn and lose nothing.
func TestMaxOutstanding(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.MaxOutstanding = 4
		f := listen(t)
		r := start(t, cfg, f.addr())
		s := f.accept()
		c := dial(t, r.addr)
		c.send(strings.Repeat("get a\r\n", 4) + "get b\r\nget c\r\nversion\r\n")
		s.want(strings.Repeat("get a\r\n", 4))
		if n := r.total().Servers[f.addr()].Calls; n != 4 {
			t.Errorf("%d requests are outstanding", n)
		}
		s.send(strings.Repeat("END\r\n", 4))
		c.want(strings.Repeat("END\r\n", 4))
		s.want("get b\r\nget c\r\n")
		s.send("END\r\nEND\r\n")
		c.want("END\r\nEND\r\nVERSION 1.6.18\r\n")
	})
}
