package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/router"
)

// examples are those of docs/examples, each with what it promises.
var examples = map[string]func(e *example, c *exampleClient){
	"one-pool.yml": func(e *example, c *exampleClient) {
		for i := range 30 {
			c.set(fmt.Sprint("k", i), "v")
		}
		if n := e.items("10.0.0."); n != 30 {
			e.t.Errorf("the servers hold %d items", n)
		}
		c.is("get k1", "k1=v")
	},
	"prefixes.yml": func(e *example, c *exampleClient) {
		c.set("user:1", "u")
		c.set("user:page:1", "p")
		c.set("other", "p")
		if u, p := e.items("10.0.1."), e.items("10.0.2."); u != 2 || p != 2 { // one, twice; and two
			e.t.Errorf("the pools hold %d and %d items", u, p)
		}
		c.is("get user:1", "user:1=u")
		e.servers["10.0.2.1"].Stop()
		e.servers["10.0.2.2"].Stop()
		c.is("get other", nothing)
		c.is("get user:1", "user:1=u")
	},
	"policies.yml": func(e *example, c *exampleClient) {
		c.is("get secret:1", "SERVER_ERROR route denies key")
		c.is("set config:1 0 0 1\r\nx", "SERVER_ERROR route is read only")
		c.is("get config:1", nothing)
		c.set("session:1", "s")
		if got := c.ask("mg session:1 t"); got == "HD t-1" || len(got) < 6 {
			e.t.Errorf("a session lives %q", got)
		}
		c.set("other", "o")
		c.is("mg other t", "HD t-1")
	},
	"limits.yml": func(e *example, c *exampleClient) {
		const many = 500
		refused := func(key string) (n int) {
			if _, err := io.WriteString(c.c, strings.Repeat("get "+key+"\r\n", many)); err != nil {
				e.t.Fatal(err)
			}
			for range many {
				switch line := c.line(); line {
				case nothing:
				case "SERVER_ERROR route is over its rate":
					n++
				default:
					e.t.Fatalf("%s is answered %q", key, line)
				}
			}
			return n
		}
		deadline := time.Now().Add(time.Minute)
		for refused("report:1") == 0 { // a machine that is slow enough keeps to the rate
			if time.Now().After(deadline) {
				e.t.Fatal("no request is beyond the rate")
			}
		}
		if n := refused("login:1") + refused("other"); n > 0 {
			e.t.Errorf("%d requests are refused on routes without a rate", n)
		}
		c.is("set login:1 0 0 1\r\nx", "STORED")
		c.is("get export:1", nothing)
	},
	"rename.yml": func(e *example, c *exampleClient) {
		c.set("v1:x", "new")
		c.is("get legacy:x", "legacy:x=new")
		c.is("delete legacy:x", "SERVER_ERROR route is read only")
	},
	"same-servers.yml": func(e *example, c *exampleClient) {
		for _, key := range []string{"n:1", "report:1", "other"} {
			c.is("get "+key, nothing)
			c.set(key, "1")
			c.is("get "+key, key+"=1")
		}
		if n := e.items("10.0.0."); n != 3 {
			e.t.Errorf("the servers hold %d items", n)
		}
	},
	"listeners.yml": func(e *example, c *exampleClient) {
		c.set("k", "web")
		e.clients[1].set("k", "batch")
		c.is("get k", "k=web")
		e.clients[1].is("get k", "k=batch")
	},
	"failover.yml": func(e *example, c *exampleClient) {
		for i := range 30 {
			c.set(fmt.Sprint("k", i), "v")
		}
		if n := e.items("10.0.9."); n != 0 {
			e.t.Errorf("the spare server holds %d items while all is well", n)
		}
		e.servers["10.0.0.1"].Stop()
		for i := range 30 {
			c.eventually(fmt.Sprintf("set k%d 0 0 1\r\nw", i), "STORED")
			c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=w", i))
		}
		if n := e.items("10.0.9."); n == 0 {
			e.t.Error("the spare server has not taken over")
		}
	},
	"warm-up.yml": func(e *example, c *exampleClient) {
		old := []*exampleClient{e.at("10.0.0.1"), e.at("10.0.0.2")}
		for i := range 20 {
			for _, o := range old { // wherever the placement of the old pool looks for it
				o.is(fmt.Sprintf("set k%d 0 1000 3\r\nold", i), "STORED")
			}
		}
		for i := range 10 {
			c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=old", i))
		}
		c.set("k10", "new")
		c.is("delete k11", "NOT_FOUND")
		c.is("incr k12 1", "CLIENT_ERROR cannot increment or decrement non-numeric value") // it was brought over
		c.is("add k13 0 0 1\r\nx", "NOT_STORED")
		c.is("get k10", "k10=new")
		c.is("get k11", nothing)
		c.eventually("get k1", "k1=old")
		deadline := time.Now().Add(time.Minute)
		for e.items("10.0.1.") < 13 && time.Now().Before(deadline) { // copies come behind the answers
			time.Sleep(10 * time.Millisecond)
		}
		if n := e.items("10.0.1."); n < 13 {
			e.t.Errorf("the new pool holds %d items, want the 10 that were read and those that were brought over", n)
		}
	},
	"large-values.yml": func(e *example, c *exampleClient) {
		v := strings.Repeat("0123456789", 1<<20) // ten times what a server takes
		c.set("report:1", v)
		c.is("get report:1", "report:1="+v)
		c.set("report:2", "small")
		held := 0
		for _, s := range e.servers {
			if s.Stat("curr_items") > 0 {
				held++
			}
		}
		if n := e.items("10.0.0."); n != 13 || held != 3 {
			e.t.Errorf("%d servers hold %d items, want a head, 11 parts and a value", held, n)
		}
		c.is("append report:1 0 0 1\r\n!", "STORED")
		c.is("get report:1", "report:1="+v+"!")
		c.is("delete report:1", "DELETED")
		c.is("get report:1", nothing)
		c.is(fmt.Sprintf("set page:1 0 0 %d\r\n%s", len(v), v), "SERVER_ERROR object too large for cache")
	},
	"leave-twemproxy.yml": func(e *example, c *exampleClient) {
		servers := []*exampleClient{e.at("10.0.0.1"), e.at("10.0.0.2"), e.at("10.0.0.3")}
		old := e.server.cfg.Pools["twemproxy"].table
		for i := range 30 {
			key := fmt.Sprint("k", i)
			servers[old.Picker.Pick(nil, old.KeyHash([]byte(key)), 1)[0]].set(key, "old")
		}
		for i := range 20 {
			c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=old", i))
		}
		for i := 20; i < 25; i++ {
			c.set(fmt.Sprint("k", i), "new")
			c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=new", i))
			c.ask(fmt.Sprint("delete k", i+5))
			c.is(fmt.Sprint("get k", i+5), nothing)
		}
		for _, s := range servers { // nothing of what was written or deleted is left anywhere
			for i := 20; i < 30; i++ {
				if got := s.ask(fmt.Sprint("get k", i)); strings.HasSuffix(got, "=old") {
					e.t.Errorf("a server still has %s", got)
				}
			}
		}
	},
	"zones.yml": func(e *example, c *exampleClient) {
		for i := range 20 {
			c.set(fmt.Sprint("k", i), "v")
		}
		if a, b := e.items("10.0.1."), e.items("10.0.2."); a != 20 || b != 20 {
			e.t.Errorf("the zones hold %d and %d items", a, b)
		}
		reads := func(hosts ...string) (n int) {
			for _, h := range hosts {
				n += e.servers[h].Stat("cmd_get")
			}
			return n
		}
		for deadline := time.Now().Add(time.Minute); ; { // a router that has just begun trusts no copies
			before := reads("10.0.1.1", "10.0.1.2")
			for i := range 20 {
				c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=v", i))
			}
			n := reads("10.0.1.1", "10.0.1.2") - before
			if n == 0 {
				break
			}
			if time.Now().After(deadline) {
				e.t.Fatalf("%d reads of 20 go to the other zone", n)
			}
		}
		e.servers["10.0.2.1"].Stop()
		e.servers["10.0.2.2"].Stop()
		for i := range 20 {
			c.eventually(fmt.Sprint("get k", i), fmt.Sprintf("k%d=v", i))
		}
	},
	"shadow.yml": func(e *example, c *exampleClient) {
		for i := range 200 {
			c.set(fmt.Sprint("k", i), "v")
		}
		deadline := time.Now().Add(time.Minute)
		for e.items("10.0.1.") < 5 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if n, seen := e.items("10.0.0."), e.items("10.0.1."); n != 200 || seen < 5 || seen > 45 {
			e.t.Errorf("the pool holds %d items, the one that sees a tenth %d", n, seen)
		}
		for i := range 200 {
			c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=v", i))
		}
		equal := func() (n int) {
			snaps, err := e.server.router.Snapshots(context.Background())
			if err != nil {
				e.t.Fatal(err)
			}
			for _, pool := range router.Total(snaps).Pools {
				n += int(pool.Compared[router.Equal])
			}
			return n
		}
		for equal() < 5 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if n := equal(); n < 5 || n > 45 {
			e.t.Errorf("%d answers of a tenth of 200 are equal", n)
		}
		e.servers["10.0.1.1"].Stop()
		for i := range 200 {
			c.is(fmt.Sprint("get k", i), fmt.Sprintf("k%d=v", i))
		}
	},
	"split.yml": func(e *example, c *exampleClient) {
		for i := range 200 {
			c.set(fmt.Sprint("k", i), "v")
		}
		if o, n := e.items("10.0.0."), e.items("10.0.1."); o+n != 200 || n < 5 || n > 45 {
			e.t.Errorf("the old pool holds %d items, the new one %d", o, n)
		}
	},
}

// Each example checks, without a warning, and does what it says with real servers.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../docs/examples/*.yml")
	if err != nil || len(files) < 10 || len(files) != len(examples) {
		t.Fatalf("%d examples, of which %d are run, %v", len(files), len(examples), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			status, out, errs := command("check", "--config", file)
			if status != 0 || errs != "" || !strings.Contains(out, ": ok, ") {
				t.Fatalf("check: status %d, %s%s", status, out, errs)
			}
			if b, _ := os.ReadFile(file); !bytes.HasPrefix(b, []byte("# ")) {
				t.Error("it does not say what it is for")
			}
			e := startExample(t, filepath.Base(file))
			examples[filepath.Base(file)](e, e.clients[0])
		})
	}
}
