//go:build linux

package load

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"cacherouter/loadtest/workload"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// spaceOf is keys without versions.
func spaceOf(keys int, size workload.Sizes) *keyspace {
	p := DefaultPlan("x")
	p.Keys, p.ValueSize = keys, size
	return newKeyspace(p)
}

// inboxOf is one in a closed loop.
func inboxOf(k *keyspace, d dialect) inbox {
	b := newInbox(k, d)
	b.enter(&run{begin: time.Now(), series: newSeries(1, nil)}, 0)
	return b
}

var protocols = []Protocol{Text, Meta, Binary}

func TestRequestsAreSpelledAsTheProtocolWants(t *testing.T) {
	k := spaceOf(4, "30")
	h := k.head(2, 0, 0)
	value := string(h[:]) + "abcdefghijklmn"
	f := func(p Protocol, get, set string) {
		t.Helper()
		d := p.dialect(k)
		if diff := cmp.Diff(get, string(d.appendGet(nil, []call{{key: 2}}))); diff != "" {
			t.Errorf("%s get: %s", p, diff)
		}
		if diff := cmp.Diff(set, string(d.appendSet(nil, call{op: opSet, key: 2}))); diff != "" {
			t.Errorf("%s set: %s", p, diff)
		}
	}
	f(Text, "get lt:00000002\r\n", "set lt:00000002 0 0 30\r\n"+value+"\r\n")
	f(Meta, "mg lt:00000002 v\r\n", "ms lt:00000002 30\r\n"+value+"\r\n")
	f(Binary, "\x80\x00\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00lt:00000002",
		"\x80\x01\x00\x0b\x08\x00\x00\x00\x00\x00\x00\x31\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"+
			"\x00\x00\x00\x00\x00\x00\x00\x00lt:00000002"+value)
}

// hit is the reply to a get of key i.
func hit(p Protocol, k *keyspace, i uint32) []byte {
	value := string(k.appendValue(nil, i, 0))
	switch p {
	case Meta:
		return []byte("VA 100\r\n" + value + "\r\n")
	case Binary:
		return packet(binaryGet, 0, i, 4, "\x00\x00\x00\x00"+value)
	}
	return []byte("VALUE " + string(k.key(i)) + " 0 100\r\n" + value + afterValue)
}

// packet is a binary reply.
func packet(opcode byte, status uint16, opaque uint32, extras byte, body string) []byte {
	p := []byte{binaryReply, opcode, 0, 0, extras, 0}
	p = binary.BigEndian.AppendUint16(p, status)
	p = binary.BigEndian.AppendUint32(p, uint32(len(body)))
	p = binary.BigEndian.AppendUint32(p, opaque)
	return append(p, "\x00\x00\x00\x00\x00\x00\x00\x09"+body...) // a cas of 9
}

func TestScanMeta(t *testing.T) {
	f := func(in string, kind replyKind, taken int) {
		t.Helper()
		r, n, _, err := meta{}.scan([]byte(in), call{})
		if err != nil || r.kind != kind || n != taken {
			t.Errorf("scan(%q) = kind %d, %d bytes, %v; want kind %d, %d bytes", in, r.kind, n, err, kind, taken)
		}
	}
	f("EN\r\n", replyMiss, 4)
	f("HD\r\nEN\r\n", replyStored, 4)
	f("NS\r\n", replyRefused, 4)
	f("ERROR\r\n", replyRefused, 7)
	f("SERVER_ERROR timed out\r\n", replyRefused, 24)
	f("CLIENT_ERROR bad data chunk\r\n", replyRefused, 29)
	f("VA 3\r\nabc\r\nEN\r\n", replyHit, 11)
	f("VA 0\r\n\r\n", replyHit, 8)
	f("VA 5\r\nabcde\r", 0, 0)
	f("VA 5", 0, 0)
}

func TestScanMetaRefusesWhatMemcachedNeverSays(t *testing.T) {
	f := func(in string) {
		t.Helper()
		if r, n, _, err := (meta{}).scan([]byte(in), call{}); err == nil {
			t.Errorf("scan(%q) = %+v, %d bytes; want an error", in, r, n)
		}
	}
	f("END\r\n")
	f("VA \r\n")
	f("VA 3 f1\r\nabc\r\n")
	f("VA 3\r\nabcd\r\n")
	f("VA 99999999999999999999\r\n")
	f(strings.Repeat("x", longestLine+1))
}

func TestScanBinary(t *testing.T) {
	get, set := call{op: opGet, key: 7}, call{op: opSet, key: 7}
	f := func(q call, in []byte, kind replyKind, taken int) {
		t.Helper()
		r, n, _, err := packets{}.scan(in, q)
		if err != nil || r.kind != kind || n != taken {
			t.Errorf("scan(%q) = kind %d, %d bytes, %v; want kind %d, %d bytes", in, r.kind, n, err, kind, taken)
		}
	}
	whole := packet(binaryGet, 0, 7, 4, "\x00\x00\x00\x00abc")
	f(get, whole, replyHit, 31)
	f(get, append(bytes.Clone(whole), whole...), replyHit, 31)
	f(get, whole[:30], 0, 0)
	f(get, whole[:23], 0, 0)
	f(get, packet(binaryGet, 1, 7, 0, "Not found"), replyMiss, 33)
	f(set, packet(binarySet, 0, 7, 0, ""), replyStored, 24)
	f(set, packet(binarySet, 0x82, 7, 0, "Out of memory"), replyRefused, 37)
	f(set, packet(binarySet, 1, 7, 0, "Not found"), replyRefused, 33)
	f(get, packet(binaryGet, 0x84, 7, 0, ""), replyRefused, 24)
	f(get, packet(binaryGet, 0, 8, 4, "\x00\x00\x00\x00abc"), replyOther, 31)
	f(get, packet(binaryGet, 1, 8, 0, ""), replyOther, 24)
	f(get, packet(binarySet, 0, 7, 0, ""), replyOther, 24)
	f(get, packet(binaryGet, 0, 7, 0, "abcd"), replyOther, 28)
	f(get, packet(binaryGet, 0, 7, 4, "abc"), replyOther, 27)
	f(set, packet(binarySet, 0, 7, 0, "x"), replyOther, 25)
}

func TestScanBinaryRefusesWhatMemcachedNeverSays(t *testing.T) {
	long := packet(binaryGet, 0, 7, 4, "")
	long[8] = 1
	for _, in := range [][]byte{[]byte("ERROR\r\n"), {binaryRequest}, long} {
		if r, n, _, err := (packets{}).scan(in, call{op: opGet, key: 7}); err == nil {
			t.Errorf("scan(%q) = %+v, %d bytes; want an error", in, r, n)
		}
	}
}

// No reply to another key, and no changed byte of a value, passes for a hit.
func TestOnlyTheRightHitIsCounted(t *testing.T) {
	k := spaceOf(20, "100")
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(protocols).Draw(t, "protocol")
		i := rapid.Uint32Range(0, 19).Draw(t, "key")
		hits := func(key uint32, in []byte) uint64 {
			b := inboxOf(k, p.dialect(k))
			c := &client{asked: []call{{op: opGet, key: key}}}
			if err := b.digest(c, copy(b.space(c), in)); err != nil {
				return 0
			}
			return b.tally.Hits
		}
		in := hit(p, k, i)
		if hits(i, in) != 1 {
			t.Fatalf("%q is no hit", in)
		}
		if hits((i+1)%20, in) != 0 {
			t.Fatalf("%q is a hit of another key", in)
		}
		begin := bytes.Index(in, k.appendValue(nil, i, 0))
		at := rapid.IntRange(begin, begin+99).Draw(t, "at")
		in[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if hits(i, in) != 0 {
			t.Fatalf("%q is a hit, with a changed byte %d", in, at)
		}
	})
}

func TestARequestAllocatesNothing(t *testing.T) {
	for _, p := range protocols {
		for _, writes := range []*versions{nil, newVersions(100)} {
			k := spaceOf(100, "100")
			b := inboxOf(k, p.dialect(k))
			next := mix(Plan{Keys: 1, Choice: "zipf:0.99", Ratio: workload.Ratio{Gets: 1}}, 0, 1, -1)
			answer, c := hit(p, k, 0), &client{}
			k.writes = writes
			got := testing.AllocsPerRun(1000, func() {
				b.compose(c, 1, next, 0)
				c.sent = len(c.out)
				if err := b.digest(c, copy(b.space(c), answer)); err != nil {
					t.Fatal(err)
				}
			})
			if got != 0 || b.tally.Hits != b.tally.Gets {
				t.Errorf("%s: %v allocations per request, %d hits of %d gets", p, got, b.tally.Hits, b.tally.Gets)
			}
		}
	}
}
