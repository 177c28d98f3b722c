package router_test

import (
	"fmt"
	"testing"

	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/router"
)

// outcomes lists what was counted of replies, as "verb outcome" with how many.
func outcomes(r *router.Replies) map[string]uint64 {
	m := make(map[string]uint64)
	for v := range r {
		for o, n := range r[v] {
			if n > 0 {
				m[fmt.Sprint(memproto.Verb(v), " ", memproto.Outcome(o))] = n
			}
		}
	}
	return m
}

// What clients are answered is counted by verb and outcome, and what servers answer by server.
func TestOutcomes(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		r := start(t, cfg, addresses(t, 2)...)
		c := dial(t, r.addr)
		a, b := keyFor(0, 2, 0), keyFor(1, 2, 0)
		c.ask("get "+a+"\r\nset "+a+" 0 0 1\r\n1\r\nget "+a+"\r\nadd "+a+" 0 0 1 noreply\r\n1\r\nmg "+b+" v\r\nincr "+a+" 1\r\n"+
			"get "+a+" "+b+" none\r\nget "+b+" none\r\ndelete "+b+"\r\nset "+b+" 0 0 1\r\nx\r\nincr "+b+" 1\r\nversion\r\n",
			"END\r\nSTORED\r\n"+value(a, 0, "1")+"END\r\nEN\r\n2\r\n"+value(a, 0, "2")+"END\r\nEND\r\nNOT_FOUND\r\nSTORED\r\n"+
				"CLIENT_ERROR cannot increment or decrement non-numeric value\r\nVERSION 1.6.18\r\n")
		total := r.total()
		got := outcomes(&total.Replies)
		want := map[string]uint64{
			"get miss": 1, "get hit": 1, "get done": 2, "set stored": 2, "add not_stored": 1, "mg miss": 1, "incr stored": 1,
			"incr error": 1, "delete not_found": 1,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("counted %v, want %v", got, want)
		}
		if total.Faulty != 1 || total.Hits != 2 || total.Misses != 6 || total.Keys != 8 {
			t.Errorf("%d errors, %d hits and %d misses of %d keys", total.Faulty, total.Hits, total.Misses, total.Keys)
		}
		var servers backend.Stats
		for _, s := range total.Servers {
			servers.Add(s)
		}
		wantServers := [memproto.NumOutcomes]uint64{
			memproto.Hit: 2, memproto.Miss: 6, memproto.Stored: 3, memproto.NotStored: 1, memproto.NotFound: 1, memproto.Faulty: 1,
		}
		if servers.Outcomes != wantServers {
			t.Errorf("servers answered %v, want %v", servers.Outcomes, wantServers)
		}
	})
}

// What no server answers is counted by what became of it, and as an error.
func TestOutcomesOfFailures(t *testing.T) {
	engines(t, func(t *testing.T, cfg config) {
		dead := listen(t)
		r := start(t, cfg, dead.addr())
		p := dead.accept()
		c := dial(t, r.addr)
		c.send("set a 0 0 1\r\n1\r\n")
		p.want("set a 0 0 1\r\n1\r\n")
		p.nc.Close()
		c.want("SERVER_ERROR backend connection lost\r\n")
		total := r.total()
		if n := total.Replies[memproto.Set][memproto.Faulty]; n != 1 {
			t.Errorf("%d errors were counted: %v", n, outcomes(&total.Replies))
		}
		if total.Failures[backend.Lost] != 1 || total.Faulty != 0 {
			t.Errorf("failures are %v, errors of servers %d", total.Failures, total.Faulty)
		}
	})
}

// The verbs of binary clients are counted as theirs.
func TestOutcomesOfBinaryClients(t *testing.T) {
	r := start(t, config{}, addresses(t, 1)...)
	c := dial(t, r.addr)
	get := "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "k"
	c.send(get)
	r.until("the get is answered", func(s router.Snapshot) bool {
		return s.Replies[memproto.Get][memproto.Miss] == 1 && s.Latency.Count() == 1
	})
}
