package memproto

import (
	"math/bits"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// mgFlags are all flags of mg, those that want a token with one.
var mgFlags = []string{"v", "f", "k", "O123", "q", "s", "b", "t", "c", "h", "l", "N30", "R30", "T30", "E5", "x", "u", "M0", "I", "C5"}

// kindOf parses an mg with flags.
func kindOf(flags string) Kind {
	var r Request
	new(Parser).Parse([]byte("mg a2V5"+flags+"\r\n"), &r)
	return r.Kind()
}

func TestKindOfFlags(t *testing.T) {
	for bit, flag := range mgFlags {
		want, wantWith := Reads, Changes
		switch {
		case bit > 10:
			want = Changes
		case bit <= 6:
			wantWith = Copyable
		default:
			wantWith = Reads
		}
		if got := kindOf(" " + flag); got != want {
			t.Errorf("mg with %s is %d, want %d", flag, got, want)
		}
		for _, line := range []string{" v f " + flag, " " + flag + " f v", " f  " + flag + "  v "} {
			if got := kindOf(line); got != wantWith {
				t.Errorf("mg with%s is %d, want %d", line, got, wantWith)
			}
		}
	}
	f := func(line string, want Kind) {
		t.Helper()
		var r Request
		new(Parser).Parse([]byte(line), &r)
		if r.Kind() != want {
			t.Errorf("%q is %d, want %d", line, r.Kind(), want)
		}
	}
	f("get k\r\n", Copyable)
	f("gets k\r\n", Reads)
	f("mg k\r\n", Reads)
	f("mg vf v\r\n", Reads)
	f("me k\r\n", Reads)
	for _, line := range []string{"gat 1 k\r\n", "gats 1 k\r\n", "touch k 1\r\n", "md k\r\n", "ma k\r\n", "ms k 1\r\nx\r\n", "incr k 1\r\n", "delete k\r\n", "set k 0 0 1\r\nx\r\n"} {
		f(line, Changes)
	}
}

// In every combination of its flags an mg that reads leaves the item as it is, and one
// that a copy may answer is answered by a copy as by the original.
func TestKindOnMemcached(t *testing.T) {
	home, other := connect(t, memcachedtest.Start(t).Addr()), connect(t, memcachedtest.Start(t).Addr())
	home.ask("ms a2V5 1 F7 T500 b\r\n4\r\nms a2V5 1 F7 T500\r\n4\r\n")
	other.ask("set a2V5 0 0 1\r\n9\r\n")
	copyable := 0
	for set := range 1 << 11 {
		if bits.OnesCount(uint(set)) > 5 && set>>7 > 0 { // the larger ones teach little
			continue
		}
		var flags strings.Builder
		for bit, flag := range mgFlags[:11] {
			if set&(1<<bit) != 0 {
				flags.WriteString(" " + flag)
			}
		}
		var r Request
		new(Parser).Parse([]byte("mg a2V5"+flags.String()+"\r\n"), &r)
		if r.Kind() == Changes {
			t.Errorf("mg with%s is no read", flags.String())
		}
		raw := string(r.Forward(nil))
		before := itemState(home, string(r.RouteKey(make([]byte, MaxKey))))
		reply := home.askOne(t, MetaGet, raw)
		if after := itemState(home, string(r.RouteKey(make([]byte, MaxKey)))); sameButRead(after) != sameButRead(before) {
			t.Errorf("%q has changed %q to %q", raw, before, after)
		}
		if r.Kind() != Copyable {
			continue
		}
		copyable++
		it, ok := ParseItem([]byte(reply))
		if !ok {
			t.Fatalf("%q is answered %q, which tells no item", raw, reply)
		}
		key := r.RouteKey(make([]byte, MaxKey))
		del, v := AppendDelete(nil, key, r.Base64)
		other.askOne(t, v, string(del))
		add, v := AppendAdd(nil, key, r.Base64, it, 10)
		other.askOne(t, v, string(add))
		if got := other.askOne(t, MetaGet, raw); got != reply {
			t.Errorf("%q: a copy answers %q, the original %q", raw, got, reply)
		}
	}
	if copyable != 32 {
		t.Errorf("%d of the combinations are answered by copies", copyable)
	}
}
