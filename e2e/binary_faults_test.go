package e2e

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/memproto"
)

// TestBinaryFailure has one server dead: each of its requests, quiet ones too, gets one answer that says so, and the
// others are served in between.
func TestBinaryFailure(t *testing.T) {
	servers := memcachedtest.StartN(t, 3)
	backends := memcachedtest.Addrs(servers)
	r := startUnwatched(t, backends, "timeout: 15s", "connect_timeout: 15s")
	byHome := spread(t, connect(t, r.addr), backends, 60)
	dead, alive := byHome[1][0], byHome[0][0]
	servers[1].Stop()

	c := connect(t, r.addr).conn
	for _, op := range []memproto.Opcode{memproto.OpGet, memproto.OpGetQ, memproto.OpGetKQ, memproto.OpDeleteQ} {
		request := frame(op, 0, "", dead, "")
		a := wantCode(t, c, request, memproto.CodeTemporary)
		if a.op != byte(op) || a.value != "backend connection refused" || !strings.HasSuffix(request[:16], number32(a.opaque)) {
			t.Errorf("%02x on a dead server is answered with %s", op, a)
		}
		if a := wantCode(t, c, getFrame(alive), memproto.CodeOK); a.value != "value of "+alive {
			t.Errorf("%s is %q", alive, a.value)
		}
	}
	wantCode(t, c, frame(memproto.OpSetQ, 0, number32(0, 0), dead, "v"), memproto.CodeTemporary)
	wantCode(t, c, frame(memproto.OpIncrementQ, 0, counter(1, 1, 0), dead, ""), memproto.CodeTemporary)
	wantCode(t, c, frame(memproto.OpFlushQ, 0, "", "", ""), memproto.CodeTemporary)
	wantCode(t, c, frame(memproto.OpNoop, 0, "", "", ""), memproto.CodeOK)

	servers[1].Restart()
	waitFor(t, "the restarted server to be used", func() error {
		if a := call(t, c, setFrame(dead, "new")); a.code != 0 {
			return fmt.Errorf("answered with %s", a)
		}
		return nil
	})
	wantCode(t, c, getFrame(dead), memproto.CodeOK)
}

func TestBinaryFailureAsMiss(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	backends := memcachedtest.Addrs(servers)
	r := startUnwatched(t, backends, "on_failure: miss")
	byHome := spread(t, connect(t, r.addr), backends, 40)
	servers[0].Stop()
	c, dead := connect(t, r.addr).conn, byHome[0][0]
	wantCode(t, c, getFrame(dead), memproto.CodeNotFound)
	if a := wantCode(t, c, frame(memproto.OpGetK, 0, "", dead, ""), memproto.CodeNotFound); a.key != dead {
		t.Errorf("a miss of GETK tells key %q, want %q", a.key, dead)
	}
	for range 60 { // some of these have the dead server for their home
		io.WriteString(c, frame(memproto.OpGetKQ, 0, "", dead, ""))
	}
	wantCode(t, c, noopFrame, memproto.CodeOK)
	for i := range 20 {
		wantCode(t, c, getFrame(fmt.Sprintf("with space %d", i)), memproto.CodeNotFound)
	}
	wantCode(t, c, setFrame(dead, "x"), memproto.CodeTemporary)
}

// TestProtocolsShareKeys has a key written in one protocol read in the other, at its one home, however it is spelled.
func TestProtocolsShareKeys(t *testing.T) {
	r := startRouter(t, steadyBackends(t, 3))
	text, c := dialPlain(t, r.addr), connect(t, r.addr).conn
	for i := range 30 {
		key := fmt.Sprintf("plain%d", i)
		say(t, text, fmt.Sprintf("set %s 7 0 3\r\nabc\r\n", key), "STORED\r\n")
		if a := wantCode(t, c, getFrame(key), memproto.CodeOK); a.value != "abc" || a.extras != number32(7) {
			t.Fatalf("%s is %s", key, a)
		}
		wantCode(t, c, frame(memproto.OpIncrement, 0, counter(1, 41, 0), fmt.Sprintf("n%d", i), ""), memproto.CodeOK)
		say(t, text, fmt.Sprintf("incr n%d 1\r\n", i), "42\r\n")
	}
	wantCode(t, c, setFrame("a b", "spaced"), memproto.CodeOK)
	say(t, text, "mg YSBi v b\r\n", "VA 6\r\nspaced\r\n")
}

// TestLyingLengths has many clients announce values that never come. The router holds no memory for them and goes on.
func TestLyingLengths(t *testing.T) {
	r := startPlain(t, steadyBackends(t, 1)) // the race detector has memory of its own
	wantCode(t, connect(t, r.addr).conn, noopFrame, memproto.CodeOK)
	before := r.rss()
	for range 100 {
		c := connect(t, r.addr).conn
		io.WriteString(c, lying(setFrame("a", strings.Repeat("v", 1000)), 100<<20))
	}
	c := connect(t, r.addr).conn
	wantCode(t, c, lying(setFrame("b", ""), 1<<32-1), memproto.CodeTooLarge)
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Errorf("after a length that nobody can mean: %q, %v", rest, err)
	}
	c = connect(t, r.addr).conn
	wantCode(t, c, setFrame("a", "v"), memproto.CodeOK)
	if grown := r.rss() - before; grown > 32*mib {
		t.Errorf("100 clients that announce 100 MiB each take %d MiB", grown/mib)
	}
	waitFor(t, "the refusal to be counted", func() error { return metricAtLeast(r, `cacherouter_refused_total{kind="too_large"}`, 1) })
}

// TestTooLargeForRouter has a value over max_value refused by the router, without a server, and the old one dropped.
func TestTooLargeForRouter(t *testing.T) {
	r := startConfigured(t, steadyBackends(t, 2), "max_value: 100000")
	c := connect(t, r.addr).conn
	big := strings.Repeat("v", 100001)
	for _, key := range []string{"a", "a b"} {
		wantCode(t, c, setFrame(key, "old"), memproto.CodeOK)
		wantCode(t, c, frame(memproto.OpAdd, 0, number32(0, 0), key, big), memproto.CodeTooLarge)
		wantCode(t, c, getFrame(key), memproto.CodeOK)
		wantCode(t, c, setFrame(key, big), memproto.CodeTooLarge)
		wantCode(t, c, getFrame(key), memproto.CodeNotFound)
	}
}

func TestFlushNotAllowedInBinary(t *testing.T) {
	r := startRouter(t, steadyBackends(t, 1), "--no-flush-all")
	for _, addr := range []string{memcachedtest.Start(t, "-F").Addr(), r.addr} {
		c := connect(t, addr).conn
		for _, op := range []memproto.Opcode{memproto.OpFlush, memproto.OpFlushQ} {
			if a := wantCode(t, c, frame(op, 0, "", "", ""), memproto.CodeAuth); a.value != "Auth failure." {
				t.Errorf("%s: a flush is answered with %s", addr, a)
			}
		}
		wantCode(t, c, noopFrame, memproto.CodeOK)
	}
}

// TestBinaryStat reads statistics to their end and finds in them what clients look for.
func TestBinaryStat(t *testing.T) {
	plain, r := memcachedtest.Start(t), startRouter(t, steadyBackends(t, 3))
	for _, addr := range []string{plain.Addr(), r.addr} {
		c := connect(t, addr).conn
		wantCode(t, c, setFrame("a", "v"), memproto.CodeOK)
		for group, name := range map[string]string{"": "curr_items", "items": "items:1:number", "slabs": "active_slabs", "settings": "num_threads"} {
			if stats := readStats(t, c, group); stats[name] == "" {
				t.Errorf("%s: no %s in the statistics %q: %v", addr, name, group, stats)
			}
		}
		if stats := readStats(t, c, ""); stats["version"] != "1.6.18" || stats["pid"] == "" || stats["uptime"] == "" {
			t.Errorf("%s: statistics are %v", addr, stats)
		}
	}
	c := connect(t, r.addr).conn
	if stats := readStats(t, c, "conns"); len(stats) == 0 {
		t.Error("no connections, and this is one")
	}
}

func readStats(tb testing.TB, c net.Conn, group string) map[string]string {
	tb.Helper()
	stats := make(map[string]string)
	a := wantCode(tb, c, frame(memproto.OpStat, 0, "", group, ""), memproto.CodeOK)
	for ; a.key != ""; a, _ = readAnswer(c) {
		stats[a.key] = a.value
	}
	return stats
}

// TestSASL has a binary client prove who it is, beside text clients that do it their way.
func TestSASL(t *testing.T) {
	passwords := file(t, "passwords", "ann:secret\n")
	r := startWith(t, steadyBackends(t, 2), "listen:\n  - {address: 127.0.0.1:0, passwords: "+passwords+"}")
	sasl := func(op memproto.Opcode, mechanism, message string) string {
		return frame(op, 0, "", mechanism, message)
	}

	c := connect(t, r.addr).conn
	if a := wantCode(t, c, sasl(memproto.OpSASLMechanisms, "", ""), memproto.CodeOK); a.value != "PLAIN" {
		t.Errorf("the mechanisms are %q", a.value)
	}
	wantCode(t, c, frame(memproto.OpVersion, 0, "", "", ""), memproto.CodeOK)
	wantCode(t, c, sasl(memproto.OpSASLAuth, "PLAIN", "\x00ann\x00wrong"), memproto.CodeAuth)
	wantCode(t, c, sasl(memproto.OpSASLAuth, "CRAM-MD5", "x"), memproto.CodeAuth)
	wantCode(t, c, sasl(memproto.OpSASLStep, "PLAIN", "\x00ann\x00secret"), memproto.CodeAuth)
	if a := wantCode(t, c, sasl(memproto.OpSASLAuth, "PLAIN", "\x00ann\x00secret"), memproto.CodeOK); a.value != "Authenticated" {
		t.Errorf("a right password is answered with %s", a)
	}
	wantCode(t, c, setFrame("a", strings.Repeat("v", 5000)), memproto.CodeOK)

	closed := func(frames ...string) {
		t.Helper()
		c := connect(t, r.addr).conn
		for _, f := range frames {
			wantCode(t, c, f, memproto.CodeAuth)
		}
		if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
			t.Errorf("%q: the connection goes on with %q, %v", frames, rest, err)
		}
	}
	closed(getFrame("a"))
	closed(noopFrame)
	closed(frame(0x77, 0, "", "", ""))
	closed(getFrame(strings.Repeat("k", 251)))
	closed(lying(setFrame("a", "v"), 100<<20))
	wrong := sasl(memproto.OpSASLAuth, "PLAIN", "\x00ann\x00guess")
	closed(wrong, wrong, wrong)
}
