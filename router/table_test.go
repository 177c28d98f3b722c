package router_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"cacherouter/router"
)

// load asks for one key after another until stopped, and checks each answer.
func load(t *testing.T, addr string, name int, stop <-chan struct{}) (asked int) {
	c := dial(t, addr)
	for ; ; asked++ {
		select {
		case <-stop:
			return asked
		default:
		}
		k, v := fmt.Sprintf("load%d-%d", name, asked%50), fmt.Sprint(asked)
		if _, err := io.WriteString(c.nc, set(k, v)+"get "+k+" "+k+"2\r\n"); err != nil {
			t.Errorf("cannot ask: %v", err)
			return asked
		}
		line, err := c.r.ReadString('\n')
		if line != "STORED\r\n" {
			t.Errorf("set is answered %q, %v", line, err)
			return asked
		}
		for line != "END\r\n" {
			if line, err = c.r.ReadString('\n'); err != nil || strings.Contains(line, "ERROR") {
				t.Errorf("get is answered %q, %v", line, err)
				return asked
			}
		}
	}
}

// Servers come and go while clients ask; none of them hears of it.
func TestSetTableUnderLoad(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		a := addresses(t, 4)
		r := start(t, cfg, a[:3]...)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if load(t, r.addr, i, stop) == 0 {
					t.Error("a client asked nothing")
				}
			})
		}
		tables := []*router.Table{table(a...), table(a[1:]...), table(a[3]), table(a[0], a[2]), table(a[:3]...)}
		for i := range 60 {
			next := tables[i%len(tables)]
			r.SetTable(next)
			if r.Table() != next {
				t.Error("another table is in force")
			}
			st := r.total()
			before := st.Total()
			r.until("requests are made", func(s router.Snapshot) bool { return s.Total() > before+20 })
		}
		close(stop)
		wg.Wait()
		if s := r.total(); s.Failed != 0 || s.Malformed() != 0 || len(s.Servers) != 3 {
			t.Errorf("failed %d, refused %d, %d servers", s.Failed, s.Malformed(), len(s.Servers))
		}
	})
}

// What was asked of a server before it left the table is still answered by it, and the
// connection is closed then; a server that stays keeps its connection.
func TestSetTableWithRequestsOutstanding(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		stays, leaves, comes := listen(t), listen(t), listen(t)
		r := start(t, cfg, stays.addr(), leaves.addr())
		s, l := stays.accept(), leaves.accept()
		k := keyFor(1, 2, 0)
		c := dial(t, r.addr)
		c.send("get " + k + "\r\n")
		l.want("get " + k + "\r\n")
		r.SetTable(table(stays.addr(), comes.addr()))
		n := comes.accept()
		c.send("get " + k + "\r\nget " + keyFor(0, 2, 0) + "\r\n")
		n.want("get " + k + "\r\n")
		n.send(hit(k, "new") + "END\r\n")
		s.want("get " + keyFor(0, 2, 0) + "\r\n")
		s.send("END\r\n")
		l.send(hit(k, "old") + "END\r\n")
		c.want(hit(k, "old") + "END\r\n" + hit(k, "new") + "END\r\nEND\r\n")
		l.wantEnd()
		if len(stays.peers) > 0 {
			t.Error("the server that stays was connected to again")
		}
	})
}

func TestNewRefusesNoServers(t *testing.T) {
	for _, table := range []*router.Table{nil, {}} {
		if _, err := (config{Pool: router.PoolConfig{Table: table}}).router(); err == nil {
			t.Errorf("a router was made of %v", table)
		}
	}
}

// drain begins to drain and returns what becomes of it.
func (r *running) drain(t *testing.T) <-chan error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	go func() { done <- r.Drain(ctx) }()
	return done
}

// Draining answers what has been asked, closes each client then, and takes no new one.
func TestDrain(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		f := listen(t)
		r := start(t, cfg, f.addr())
		s := []*client{f.accept(), f.accept()} // of each loop
		idle, busy, half := dial(t, r.addr), dial(t, r.addr), dial(t, r.addr)
		busy.send("get a\r\nget b\r\n")
		half.send("set h 0 0 5\r\nhe")
		idle.ask("version\r\n", "VERSION 1.6.18\r\n")
		r.until("all have been heard", func(st router.Snapshot) bool { return st.Servers[f.addr()].Calls == 2 && st.Sessions == 3 })
		done := r.drain(t)
		idle.wantEnd()
		half.send("llo\r\n") // a request that has begun is served
		answer := make(chan error, 2)
		for _, p := range s {
			go func() { answer <- serveDrain(p) }()
		}
		busy.want("END\r\nEND\r\n")
		busy.wantEnd()
		half.want("STORED\r\n")
		half.wantEnd()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if st := r.total(); st.Sessions != 0 {
			t.Errorf("%d clients are left", st.Sessions)
		}
		for _, p := range s {
			p.nc.Close()
		}
		<-answer
		<-answer
	})
}

// serveDrain answers whatever one connection is asked.
func serveDrain(p *client) error {
	for {
		line, err := p.r.ReadString('\n')
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(line, "get"):
			p.nc.Write([]byte("END\r\n"))
		case strings.HasPrefix(line, "set"):
			p.r.ReadString('\n')
			p.nc.Write([]byte("STORED\r\n"))
		}
	}
}

func TestDrainGivesUp(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		f := listen(t)
		r := start(t, cfg, f.addr())
		c := dial(t, r.addr)
		c.send("get a\r\n")
		f.accept().want("get a\r\n")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := r.Drain(ctx); err == nil {
			t.Error("drained with a request outstanding")
		}
	})
}
