package router_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/internal/memcachedtest"
	"cacherouter/memproto"
	"cacherouter/router"
)

// long returns a value of n bytes that has no part twice.
func long(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}

func setOf(verb, key, flags, value, more string) string {
	return fmt.Sprintf("%s %s %s 0 %d%s\r\n%s\r\n", verb, key, flags, len(value), more, value)
}

func valueOf(key, flags, value string) string {
	return fmt.Sprintf("VALUE %s %s %d\r\n%s\r\n", key, flags, len(value), value)
}

// splitting are pools that split values over 1000 bytes.
var splitting = map[string]router.PoolConfig{
	"each get by itself": {SplitOver: 1000},
	"flights":            {SplitOver: 1000, Coalesce: &coalesce.Config{}},
	"leases":             {SplitOver: 1000, Coalesce: &coalesce.Config{Mode: coalesce.Inflight}, Lease: &coalesce.LeaseConfig{}},
}

// Whatever is done to a large value is done as if it were small.
func TestLargeValues(t *testing.T) {
	for name, pool := range splitting {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, config{Pool: pool}, addresses(t, 3)...)
			c := dial(t, r.addr)
			v, w := long(3500), long(2000)
			flags := fmt.Sprint(memproto.HeadFlags)
			all := valueOf("k", "7", v) + "END\r\n"
			for _, a := range []struct{ request, reply string }{
				{setOf("set", "k", "7", v, ""), "STORED\r\n"},
				{"get k\r\n", all},
				{"get k\r\nget k\r\nget k\r\n", all + all + all},
				{"get none k small k\r\n", valueOf("k", "7", v) + all},
				{"gat 100 k\r\n", all},
				{"gat 100 k k\r\n", valueOf("k", "7", v) + all},
				{"touch k 0\r\n", "TOUCHED\r\n"},
				{"mg k v\r\n", "VA 3500\r\n" + v + "\r\n"},
				{"mg k f v k t Oab s\r\n", "VA 3500 f7 kk t-1 Oab s3500\r\n" + v + "\r\n"},
				{"mg aw== b v k s q\r\n", "VA 3500 kk s3500\r\n" + v + "\r\n"},
				{"mg k s\r\n", "HD s3500\r\n"},
				{"mg k f s\r\n", "HD f7 s3500\r\n"},
				{"mg k f T100\r\n", "HD f7\r\n"},
				{"mg k v T0 s t\r\n", "VA 3500 s3500 t-1\r\n" + v + "\r\n"},
				{"mg k t\r\n", "HD t-1\r\n"},
				{"mg none v k\r\n", "EN knone\r\n"},
				{setOf("add", "k", "1", w, ""), "NOT_STORED\r\n"},
				{"incr k 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
				{setOf("append", "k", "0", "!", ""), "STORED\r\n"},
				{setOf("prepend", "k", "0", "?", ""), "STORED\r\n"},
				{"get k\r\n", valueOf("k", "7", "?"+v+"!") + "END\r\n"},
				{"mg k s\r\n", "HD s3502\r\n"},
				{setOf("replace", "k", "8", w, ""), "STORED\r\n"},
				{"get k\r\n", valueOf("k", "8", w) + "END\r\n"},
				{setOf("set", "k", "9", "small", ""), "STORED\r\n"},
				{"get k\r\nmg k v\r\n", valueOf("k", "9", "small") + "END\r\nVA 5\r\nsmall\r\n"},
				{setOf("append", "k", "0", "er", ""), "STORED\r\n"},
				{"mg k s v\r\n", "VA 7 s7\r\nsmaller\r\n"},
				{fmt.Sprintf("ms k 2000 F5 T0 k Oq\r\n%s\r\n", w), "HD kk Oq\r\n"},
				{"get k\r\n", valueOf("k", "5", w) + "END\r\n"},
				{fmt.Sprintf("ms k 2000 MS\r\n%s\r\nms k 1 MA\r\n!\r\n", w), "HD\r\nHD\r\n"},
				{"get k\r\n", valueOf("k", "0", w+"!") + "END\r\n"},
				{"delete k\r\nget k\r\n", "DELETED\r\nEND\r\n"},
				{setOf("replace", "k", "1", w, ""), "NOT_STORED\r\n"},
				{setOf("add", "k", "1", w, ""), "STORED\r\n"},
				{setOf("set", "k", "1", v, " noreply") + "get k\r\n", valueOf("k", "1", v) + "END\r\n"},
				// What has the flags of heads is no client's, nor are the keys of parts.
				{setOf("set", "k", flags, "mine", ""), "STORED\r\n"},
				{"get k\r\nget x k\r\n", valueOf("k", flags, "mine") + "END\r\n" + valueOf("k", flags, "mine") + "END\r\n"},
				{"mg k v f s\r\n", "VA 4 f" + flags + " s4\r\nmine\r\n"},
				{"ms k 0 F" + flags + "\r\n\r\nget k\r\n", "HD\r\n" + valueOf("k", flags, "") + "END\r\n"},
				{"ms n 1 MA N0 F" + flags + "\r\n1\r\n", "CLIENT_ERROR flags are those of values in parts\r\n"},
				{setOf("set", memproto.PartPrefix+"x", "0", "1", ""), "CLIENT_ERROR key is one of parts of values\r\n"},
				{"delete " + memproto.PartPrefix + "x\r\n", "CLIENT_ERROR key is one of parts of values\r\n"},
				{"delete k\r\n", "DELETED\r\n"},
			} {
				c.ask(a.request, a.reply)
			}
			if s := r.total(); s.Split < 8 || s.Joined < 10 || s.TornValues != 0 {
				t.Errorf("%d were split, %d joined, %d torn", s.Split, s.Joined, s.TornValues)
			}
		})
	}
}

// A cas stores a large value if nobody else has stored one, large or small.
func TestLargeCas(t *testing.T) {
	r := start(t, config{Pool: splitting["flights"]}, addresses(t, 2)...)
	c := dial(t, r.addr)
	v, w := long(3000), long(5000)
	token := func() string {
		c.send("gets k\r\n")
		line := c.lines("END")[0]
		return line[strings.LastIndexByte(line, ' '):]
	}
	c.ask(setOf("set", "k", "1", v, ""), "STORED\r\n")
	first := token()
	c.ask(setOf("cas", "k", "2", w, first), "STORED\r\n")
	c.ask(setOf("cas", "k", "3", v, first)+"get k\r\n", "EXISTS\r\n"+valueOf("k", "2", w)+"END\r\n")
	c.ask(setOf("cas", "k", "3", "small", token())+"get k\r\n", "STORED\r\n"+valueOf("k", "3", "small")+"END\r\n")
	c.ask(setOf("cas", "none", "3", v, first), "NOT_FOUND\r\n")
}

// parts returns the keys of all parts on a server.
func parts(t *testing.T, c *client) (keys []string) {
	t.Helper()
	c.send("lru_crawler metadump hash\r\n")
	for _, line := range c.lines("END") {
		if key, _, _ := strings.Cut(strings.TrimPrefix(line, "key="), " "); strings.HasPrefix(key, "cacherouter%3Apart%3A") {
			keys = append(keys, strings.ReplaceAll(key, "%3A", ":"))
		}
	}
	return keys
}

// A value of which a part is gone, or is not what was stored, is missed, and its head does not
// keep an add from storing.
func TestTornValueIsMissed(t *testing.T) {
	for name, pool := range splitting {
		for how, tear := range map[string]string{"gone": "delete %s\r\n", "short": "set %s 0 0 1\r\nx\r\n", "other": "set %s 0 0 1000\r\n" + strings.Repeat("y", 1000) + "\r\n"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s := memcachedtest.Start(t)
				r := start(t, config{Pool: pool}, s.Addr())
				c, direct := dial(t, r.addr), dial(t, s.Addr())
				v := long(3500)
				for _, get := range []string{"get k\r\n", "get none k\r\n", "gat 0 k\r\n"} {
					c.ask(setOf("set", "k", "7", v, ""), "STORED\r\n")
					keys := parts(t, direct)
					if len(keys) != 4 {
						t.Fatalf("the server has the parts %q", keys)
					}
					for _, key := range keys[:2] {
						direct.send(fmt.Sprintf(tear, key))
						direct.lines(map[bool]string{true: "DELETED", false: "STORED"}[how == "gone"])
					}
					c.ask(get, "END\r\n")
					c.ask(setOf("add", "k", "7", "v", ""), "STORED\r\n")
					for _, key := range keys {
						direct.send("delete " + key + "\r\nmn\r\n")
						direct.lines("MN")
					}
				}
				if s := r.total(); s.TornValues != 3 {
					t.Errorf("%d values were torn", s.TornValues)
				}
			})
		}
	}
}

// Parts live as long as their heads, also when that changes; those of a value that was not
// stored go.
func TestLifeOfParts(t *testing.T) {
	s := memcachedtest.Start(t)
	r := start(t, config{Pool: splitting["flights"]}, s.Addr())
	c, direct := dial(t, r.addr), dial(t, s.Addr())
	v := long(2500)
	c.ask("set k 0 109 2500\r\n"+v+"\r\n", "STORED\r\n")
	keys := parts(t, direct)
	lives := func(seconds string) {
		t.Helper()
		for _, key := range keys {
			for deadline := time.Now().Add(patience); ; { // parts are touched behind the answer
				direct.send("mg " + key + " t\r\nmn\r\n")
				if got := direct.lines("MN")[0]; strings.HasPrefix(got, "HD t"+seconds[:len(seconds)-1]) {
					break
				} else if time.Now().After(deadline) {
					t.Fatalf("a part has %s, not t%s", got, seconds)
				}
			}
		}
	}
	lives("10?")
	for i, touch := range []string{"touch k %d", "gat %d k", "mg k T%d", "mg k v T%d", "gat %d none k"} {
		c.send(fmt.Sprintf(touch+"\r\nmn\r\n", 1009+100*i))
		c.lines("MN")
		lives(fmt.Sprint(1009 + 100*i))
	}
	c.ask(setOf("add", "k", "0", v, ""), "NOT_STORED\r\n")
	for len(parts(t, direct)) != len(keys) { // those of the add go when it has been answered
		c.ask("get k\r\n", valueOf("k", "0", v)+"END\r\n")
	}
}

// A server that does not answer is no part that is gone.
func TestUnansweredPart(t *testing.T) {
	for _, miss := range []bool{false, true} {
		pool := splitting["flights"]
		pool.MissOnFailure = miss
		servers := memcachedtest.StartN(t, 2)
		r := start(t, config{Pool: pool}, servers[0].Addr(), servers[1].Addr())
		c := dial(t, r.addr)
		k := keyFor(0, 2, 0)
		v := long(20_000)
		c.ask(setOf("set", k, "0", v, ""), "STORED\r\n")
		servers[1].Stop()
		if miss {
			c.ask("get "+k+"\r\n", "END\r\n")
			c.ask("mg "+k+" v f k\r\n", "EN k"+k+"\r\n")
		} else {
			c.send("get " + k + "\r\nmn\r\n")
			if lines := c.lines("MN"); len(lines) != 2 || !strings.HasPrefix(lines[0], "SERVER_ERROR backend") {
				t.Errorf("answered %q", lines)
			}
		}
		c.ask(setOf("add", k, "0", "x", ""), "NOT_STORED\r\n")
		if n := r.total().TornValues; n != 0 {
			t.Errorf("%d values are taken for torn", n)
		}
	}
}

// Large values go by the binary protocol, by other names, and to pools that see them, as small
// ones do.
func TestLargeOtherwise(t *testing.T) {
	cfg := config{Pool: splitting["flights"]}
	cfg.Routes = []router.Route{{Prefix: "in:", Strip: true, Pool: "a", MaxTTL: 1000 * time.Second, Shadow: router.Split{Pool: "b", Share: 1}, Compare: true}}
	p := startPools(t, cfg)
	c := dial(t, p.addr)
	v := long(4500)
	c.ask(setOf("set", "in:k", "3", v, "")+"get in:k\r\nget in:none in:k\r\n", "STORED\r\n"+valueOf("in:k", "3", v)+"END\r\n"+valueOf("in:k", "3", v)+"END\r\n")
	c.ask("mg in:k v k s\r\n", "VA 4500 kin:k s4500\r\n"+v+"\r\n")
	b := dial(t, p.addr)
	b.send(packet(memproto.OpGet, 0, "in:k", "") + packet(memproto.OpSet, 8, "in:k", v[1:]) + packet(memproto.OpGetK, 0, "in:k", ""))
	for _, want := range []string{v, "", "in:k" + v[1:]} {
		if status, body := binaryReply(b); status != 0 || !strings.HasSuffix(body, want) {
			t.Errorf("status %d, %.50q, want %.50q", status, body, want)
		}
	}
	if has(p.a) != 6+5 {
		t.Errorf("the pool holds %d items, want two heads' parts and a head", has(p.a))
	}
	p.until("the shadow pool has split what it saw, and answers alike", func(s router.Snapshot) bool {
		return has(p.b) == has(p.a) && s.Compared[router.Equal]+s.Compared[router.Missing] >= 5
	})
	for _, s := range p.a { // the route's bound holds for parts
		for _, key := range parts(t, dial(t, s.Addr())) {
			if left := dial(t, s.Addr()).ttl(key); left < 0 || left > 1000 {
				t.Errorf("a part has %d s left", left)
			}
		}
	}
}

// While others are put together a value waits, and a multiget has no more at a time than that.
func TestLargeValuesWaitForTheirTurn(t *testing.T) {
	r := start(t, config{Pool: splitting["flights"]}, addresses(t, 2)...)
	router.JoinAtMost(r.Router, 5000)
	r.total() // so all loops know
	a, b := dial(t, r.addr), dial(t, r.addr)
	v, w := long(4000), long(9000)
	a.ask(setOf("set", "k", "0", v, "")+setOf("set", "l", "0", v[1:], "")+setOf("set", "m", "0", w, ""), "STORED\r\nSTORED\r\nSTORED\r\n")
	var requests, replies string
	for _, key := range []struct{ k, v string }{{"k", v}, {"l", v[1:]}, {"m", w}} {
		requests += "get " + key.k + "\r\n"
		replies += hit(key.k, key.v) + "END\r\n"
	}
	for range 20 {
		a.send(strings.Repeat(requests, 5))
		b.send(strings.Repeat(requests, 5))
		a.want(strings.Repeat(replies, 5))
		b.want(strings.Repeat(replies, 5))
	}
	a.ask("get k none\r\nget k l\r\nget l\r\n", hit("k", v)+"END\r\nSERVER_ERROR too many large values at once\r\n"+hit("l", v[1:])+"END\r\n")
}
