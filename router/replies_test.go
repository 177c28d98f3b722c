package router_test

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/router"
)

// A server that answers first does not put its reply first.
func TestRepliesInOrderAcrossServers(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		slow, fast := listen(t), listen(t)
		r := start(t, cfg, slow.addr(), fast.addr())
		s, f := slow.accept(), fast.accept()
		a, b := keyFor(0, 2, 0), keyFor(1, 2, 0)
		c := dial(t, r.addr)
		c.send("get " + a + "\r\nget " + b + "\r\nversion\r\nget " + b + "x y\r\nincr " + a + " 1\r\n")
		f.want("get " + b + "\r\n")
		f.send("VALUE " + b + " 0 1\r\n2\r\nEND\r\n")
		s.want("get " + a + "\r\n")
		r.until("the fast reply is in", func(st router.Snapshot) bool { return st.Servers[fast.addr()].BytesIn > 0 })
		s.send("VALUE " + a + " 0 1\r\n1\r\nEND\r\n")
		c.want("VALUE " + a + " 0 1\r\n1\r\nEND\r\nVALUE " + b + " 0 1\r\n2\r\nEND\r\nVERSION 1.6.18\r\n")
	})
}

// pipeline returns requests of many kinds on many keys and sizes, and their replies.
func pipeline(n int) (requests, replies string) {
	var q, p strings.Builder
	say := func(request, reply string) { q.WriteString(request); p.WriteString(reply) }
	for i := range n {
		k, v := fmt.Sprintf("k%d", i), strings.Repeat(string(rune('a'+i%26)), i*37%2000)
		say(set(k, v), "STORED\r\n")
		say("get "+k+"\r\n", hit(k, v)+"END\r\n")
		say("add "+k+" 0 0 1 noreply\r\nx\r\n", "")
		say("mg "+k+" s O"+k+"\r\n", fmt.Sprintf("HD s%d O%s\r\n", len(v), k))
		say("get nothing "+k+" "+k+"\r\n", hit(k, v)+hit(k, v)+"END\r\n")
		say("md "+k+" q\r\nmn\r\n", "MN\r\n")
		say("touch "+k+" 0\r\nbogus\r\n", "NOT_FOUND\r\nERROR\r\n")
		say("set n"+k+" 0 0 1\r\n7\r\nincr n"+k+" 5\r\n", "STORED\r\n12\r\n")
	}
	return q.String(), p.String()
}

// A long pipeline over three real servers, on one connection and on several at once.
func TestPipelineOverServers(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Loops = 2
		cfg.Pool.BulkSize = 1000 // so that both lanes are used
		r := start(t, cfg, addresses(t, 3)...)
		requests, replies := pipeline(400)
		dial(t, r.addr).ask(requests, replies)
		dial(t, r.addr).ask(requests, replies)
	})
}

func TestMultigetKeepsOrder(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, addresses(t, 3)...)
		c := dial(t, r.addr)
		var sets, stored, keys, values strings.Builder
		for i := range 3000 { // several windows
			k, v := fmt.Sprintf("k%d", i), strings.Repeat("v", i%300)
			fmt.Fprintf(&keys, " %s miss%d %s", k, i, k)
			if i%7 == 0 {
				continue
			}
			sets.WriteString(set(k, v))
			stored.WriteString("STORED\r\n")
			values.WriteString(hit(k, v) + hit(k, v))
		}
		c.ask(sets.String(), stored.String())
		c.ask("get"+keys.String()+"\r\n", values.String()+"END\r\n")
		c.ask("gat 0"+keys.String()+"\r\nversion\r\n", values.String()+"END\r\nVERSION 1.6.18\r\n")
	})
}

// Windows of large values are made smaller, and none is lost on the way.
func TestMultigetOfLargeValues(t *testing.T) {
	r := start(t, config{}, addresses(t, 2)...)
	c := dial(t, r.addr)
	var keys, values strings.Builder
	for i := range 300 {
		k, v := fmt.Sprintf("k%d", i), strings.Repeat("v", 40_000+i)
		c.ask(set(k, v), "STORED\r\n")
		keys.WriteString(" " + k)
		values.WriteString(hit(k, v))
	}
	c.ask("get"+keys.String()+"\r\nmn\r\n", values.String()+"END\r\nMN\r\n")
}

// Silence is kept where memcached keeps it, and broken where memcached breaks it.
func TestQuiet(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		cfg.Pool.FlushAll = true
		cfg.Pool.MaxValue = 1000
		r := start(t, cfg, addresses(t, 3)...)
		c := dial(t, r.addr)
		f := func(request, reply string) {
			t.Helper()
			c.ask(request+"mn\r\n", reply+"MN\r\n")
		}
		f("set a 0 0 1 noreply\r\n1\r\nget a\r\n", hit("a", "1")+"END\r\n")
		f("incr a 1 noreply\r\nincr b 1 noreply\r\nincr a x noreply\r\ntouch a noreply noreply\r\n", "")
		f("touch a 0 noreply\r\ndelete b noreply\r\nadd a 0 0 1 noreply\r\nx\r\ncas a 0 0 1 1 noreply\r\nx\r\n", "")
		f("verbosity 1 noreply\r\nset "+strings.Repeat("k", 251)+" 0 0 1 noreply\r\nx\r\ndelete a 7 noreply\r\n", "")
		f("mg b q v\r\nmg a q v\r\nms b 1 q\r\nx\r\nmd b q\r\nmd b q\r\n", "VA 1\r\n2\r\nNF\r\n")
		f("ms b 1 q C77\r\nx\r\nms a 1 q ME\r\nx\r\nma n N0 q\r\nma a q O5\r\nma zz q\r\n", "NF\r\nNS\r\nNF\r\n")
		f("mg a q z\r\nmg a q q\r\n", "CLIENT_ERROR invalid flag\r\nCLIENT_ERROR duplicate flag\r\n")
		f("set a 0 0 2000 noreply\r\n"+strings.Repeat("x", 2000)+"\r\nget a\r\n", "END\r\n") // too large: the old value goes
		f("flush_all noreply\r\nget a\r\n", "END\r\n")
	})
}

// A request whose server fails is one error line, or a miss where that is wanted.
func TestServerDown(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		up := memcachedtest.Start(t).Addr()
		for _, cfg.Pool.MissOnFailure = range []bool{false, true} {
			r := start(t, cfg, up, memcachedtest.Reserve(t))
			c := dial(t, r.addr)
			a, b := keyFor(0, 2, 0), keyFor(1, 2, 0)
			fault := "SERVER_ERROR backend connection refused\r\n"
			miss, metaMiss, multi := fault, fault, fault
			if cfg.Pool.MissOnFailure {
				miss, metaMiss, multi = "END\r\n", "EN k"+b+" O1\r\n", hit(a, "1")+"END\r\n"
			}
			c.ask(set(a, "1"), "STORED\r\n")
			c.ask(set(b, "1"), fault)
			c.ask("get "+b+"\r\n", miss)
			c.ask("mg "+b+" v k O1\r\n", metaMiss)
			c.ask("mg "+b+" N30\r\n", fault) // might have made the item
			c.ask("get "+a+" "+b+"\r\n", multi)
			c.ask("delete "+b+"\r\nincr "+b+" 1\r\n", fault+fault)
			c.ask("delete "+b+" noreply\r\nmg "+b+" q\r\nget "+a+"\r\n", quietMiss(cfg.Pool.MissOnFailure, fault)+hit(a, "1")+"END\r\n")
		}
	})
}

// quietMiss is what a quiet mg of a lost key says.
func quietMiss(missOnFailure bool, fault string) string {
	if missOnFailure {
		return ""
	}
	return fault
}

// A client that goes away with requests outstanding harms no other.
func TestClientGoesAway(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		f := listen(t)
		r := start(t, cfg, f.addr())
		s := f.accept()
		rude, other := dial(t, r.addr), dial(t, r.addr)
		rude.send("get a\r\nget b c\r\nset d 0 0 1\r\nx\r\n")
		s.want("get a\r\nget b c\r\nset d 0 0 1\r\nx\r\n")
		other.send("get e\r\n")
		s.want("get e\r\n")
		rude.nc.SetLinger(0)
		rude.nc.Close()
		r.until("the router notices", func(st router.Snapshot) bool { return st.Sessions == 1 })
		s.send(hit("a", "1") + "END\r\n" + hit("b", "2") + "END\r\nSTORED\r\n" + hit("e", "5") + "END\r\n")
		other.want(hit("e", "5") + "END\r\n")
		other.send("get f\r\n")
		s.want("get f\r\n")
	})
}

// What was asked before the client closed its half is answered.
func TestHalfClose(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, addresses(t, 2)...)
		c := dial(t, r.addr)
		requests, replies := pipeline(100)
		c.send(requests + "get half")
		c.nc.CloseWrite()
		c.want(replies)
		c.wantEnd()
	})
}
