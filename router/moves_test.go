package router_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"cacherouter/router"
)

// readOwnWrites asks for keys of its own until told to stop, and wants what it has stored.
func readOwnWrites(t *testing.T, addr string, name int, stop <-chan struct{}) (asked int) {
	c := dial(t, addr)
	for ; ; asked++ {
		select {
		case <-stop:
			return asked
		default:
		}
		k, v := fmt.Sprintf("own%d-%d", name, asked%20), fmt.Sprint(asked)
		c.ask(set(k, v), "STORED\r\n")
		switch asked % 4 {
		case 1:
			c.send("delete " + k + "\r\n")
			c.line() // where it is now need not be its home
			v = ""
		case 2:
			v = fmt.Sprint(asked + 1)
			c.ask("incr "+k+" 1\r\n", v+"\r\n")
		case 3:
			v += "!"
			c.ask("append "+k+" 0 0 1\r\n!\r\n", "STORED\r\n")
		}
		found := hit(k, v)
		if v == "" {
			found = ""
		}
		c.ask("get "+k+"\r\n", found+"END\r\n")
		c.ask("get "+k+" no "+k+"\r\n", found+found+"END\r\n")
	}
}

// Tables change while clients write and read; each reads what it has written last.
func TestTablesUnderLoad(t *testing.T) {
	t.Parallel()
	g := newRig(t, 3, config{})
	soon := time.Now().Add(time.Hour)
	here, there := modulo(3), order{2, 0, 1}
	tables := []func(*router.Table){
		func(t *router.Table) { t.Picker, t.Before, t.Until = here, before(there), soon },
		func(t *router.Table) { t.Picker, t.Before, t.Until, t.After = here, before(there), soon, after(there) },
		func(t *router.Table) { t.Picker, t.Before, t.Until, t.After = there, before(here), soon, after(here) },
		func(t *router.Table) { t.Picker, t.Before, t.Until = there, before(here), soon },
		func(t *router.Table) {
			t.Picker, t.Before, t.Until = there, before(here), soon
			t.Servers[2].Reads = router.ReadNext
		},
		func(t *router.Table) {
			t.Picker, t.Before, t.Until, t.After = there, before(here), soon, after(here)
			t.Servers[0].Moved, t.Servers[2].Reads = true, router.ReadOne
		},
	}
	first := g.well()
	tables[0](first)
	g.use(first)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			if readOwnWrites(t, g.addr, i, stop) == 0 {
				t.Error("a client asked nothing")
			}
		})
	}
	for i := range 200 {
		next := g.well()
		tables[(i*i/2+i)%len(tables)](next)
		before := g.total()
		asked := before.Total()
		g.SetTable(next)
		if i%10 == 0 {
			g.until("requests are made", func(s router.Snapshot) bool { return s.Total() > asked+20 })
		}
	}
	close(stop)
	clients.Wait()
	if s := g.total(); s.Failed != 0 || s.Malformed() != 0 || s.Uncleaned != 0 || s.Pulled == 0 {
		t.Errorf("failed %d, refused %d, not cleaned %d, pulled %d", s.Failed, s.Malformed(), s.Uncleaned, s.Pulled)
	}
}
