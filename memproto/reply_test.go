package memproto

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// unitsOf reads the replies in a stream of chunks until one makes no sense, and checks
// each answer of NextUnit for what holds of all of them.
func unitsOf(t failer, chunks []string, v Verb, whole, patient bool) (units []string, last []bool, bad bool) {
	t.Helper()
	var buf []byte
	need := 0
	for _, c := range chunks {
		buf = append(buf, c...)
		for len(buf) > 0 && !(patient && len(buf) < need) {
			u, err := NextUnit(buf, v, whole)
			switch {
			case u.Size < 0 || u.Size > len(buf) || err != nil && u.Size != 0:
				t.Fatalf("%q: %+v, %v for %d bytes", buf, u, err, len(buf))
			case err == nil && u.Size == 0 && u.Need != 0 && u.Need <= len(buf):
				t.Fatalf("%q: needs %d bytes and has %d", buf, u.Need, len(buf))
			case u.Size > 0 && len(buf) < need:
				t.Fatalf("%q: said to need %d bytes, took %d", buf, need, u.Size)
			case u.Fault && !u.Last:
				t.Fatalf("%q: an error does not end the reply", buf)
			}
			if key := ValueKey(buf); key != nil && !whole && BlockOf(buf, v, key) != u.Size {
				t.Fatalf("%q: %+v, but %d bytes of the key", buf, u, BlockOf(buf, v, key))
			}
			if err != nil {
				return units, last, true
			}
			need = u.Need
			if u.Size == 0 {
				break
			}
			units, last = append(units, string(buf[:u.Size])), append(last, u.Last)
			buf = buf[u.Size:]
		}
	}
	return units, last, false
}

func checkReplies(t failer, stream string, v Verb, whole bool, cuts []byte) {
	t.Helper()
	for line := range strings.SplitSeq(stream, "\n") {
		if len(line) > maxReplyLine { // it matters how such a line arrives
			return
		}
	}
	units, last, bad := unitsOf(t, split(stream, nil), v, whole, false)
	for _, patient := range []bool{false, true} {
		u, l, b := unitsOf(t, split(stream, cuts), v, whole, patient)
		if diff := cmp.Diff(units, u) + cmp.Diff(last, l); diff != "" || b != bad {
			t.Fatalf("%v: %q in pieces: bad is %v, was %v (-whole +pieces)\n%s", v, stream, b, bad, diff)
		}
	}
}

var replyStreams = []string{
	"VALUE a 0 5\r\nhello\r\nEND\r\n", "VALUE a 0 0\r\n\r\nVALUE b 1 2 77\r\n\r\n\r\nEND\r\nEND\r\n", "END\r\n",
	"STORED\r\nNOT_STORED\r\nEXISTS\r\nNOT_FOUND\r\nDELETED\r\nTOUCHED\r\nOK\r\n", "18446744073709551615\r\n0\r\n",
	"VA 5 s5 kfoo\r\nhello\r\nEN\r\nHD c5\r\n", "HD\r\nNS\r\nEX O1\r\nNF kfoo\r\n", "ME a exp=-1 la=0\r\n",
	"STAT pid 1\r\nSTAT uptime 2\r\nEND\r\n", "RESET\r\n", "ITEM k [1 b; 0 s]\r\nEND\r\n", "VERSION 1.6.18\r\n",
	"ERROR\r\nCLIENT_ERROR bad data chunk\r\nSERVER_ERROR out of memory storing object\r\n",
	"VALUE a 0 99999999999\r\n", "VALUE a 0 -1\r\n", "VALUE a 0\r\n", "VALUE\r\n", "VA x\r\n", "\r\n", "\n", "stored\r\n", "VALUE a 0 2147483645\r\nx",
}

func FuzzReply(f *testing.F) {
	for _, s := range replyStreams {
		for _, v := range []Verb{Get, Set, MetaGet, Stats} {
			f.Add(s, uint8(v), true, []byte{0, 3})
		}
	}
	f.Fuzz(func(t *testing.T, stream string, v uint8, whole bool, cuts []byte) {
		checkReplies(t, stream, Verb(v)%NumVerbs, whole, cuts)
	})
}

func TestRepliesInPieces(t *testing.T) {
	for _, s := range replyStreams {
		for v := range NumVerbs {
			checkReplies(t, s, v, true, []byte{0})
			checkReplies(t, s, v, false, []byte{0})
		}
	}
}

// TestReplyKinds says which lines are replies to which verbs.
func TestReplyKinds(t *testing.T) {
	lines := []string{
		"STORED", "NOT_STORED", "EXISTS", "NOT_FOUND", "DELETED", "TOUCHED", "OK", "RESET", "5", "VERSION 1", "END", "STAT a b",
		"ITEM a", "HD", "EN", "NF", "NS", "EX", "ME a", "MN", "BUSY x", "stored", "", "-5", "5 ", " END", "ENDX", "VALUE a 0 0", "VA 0",
	}
	f := func(v Verb, want ...string) {
		t.Helper()
		var got []string
		for _, line := range lines {
			b := []byte(line + "\r\n")
			if line[:min(2, len(line))] == "VA" {
				b = append(b, "\r\n"...)
			}
			u, err := NextUnit(b, v, false)
			if err == nil && u.Size == len(b) {
				got = append(got, line)
			} else if err != ErrBadReply {
				t.Errorf("%v: %q gives %+v, %v", v, line, u, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("replies to %v (-want +got):\n%s", v, diff)
		}
	}
	for _, v := range []Verb{Get, Gets, Gat, Gats} {
		f(v, "END", "VALUE a 0 0")
	}
	for _, v := range []Verb{Set, Add, Replace, Append, Prepend} {
		f(v, "STORED", "NOT_STORED")
	}
	f(Cas, "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND")
	f(Incr, "NOT_FOUND", "5")
	f(Decr, "NOT_FOUND", "5")
	f(Delete, "NOT_FOUND", "DELETED")
	f(Touch, "NOT_FOUND", "TOUCHED")
	f(MetaGet, "HD", "EN", "VA 0")
	f(MetaSet, "HD", "NF", "NS", "EX")
	f(MetaDelete, "HD", "NF", "NS", "EX")
	f(MetaArithmetic, "HD", "NF", "NS", "EX", "VA 0")
	f(MetaDebug, "HD", "EN", "ME a")
	f(Version, "VERSION 1")
	f(FlushAll, "OK", "RESET")
	f(Stats, "OK", "RESET", "END", "STAT a b", "ITEM a")
	f(Quit)
}

func TestReplyUnits(t *testing.T) {
	f := func(v Verb, whole bool, b string, want Unit, wantErr error) {
		t.Helper()
		got, err := NextUnit([]byte(b), v, whole)
		if err != nil {
			got = Unit{} // says nothing
		}
		if got != want || err != wantErr {
			t.Errorf("%v: %.60q gives %+v, %v; want %+v, %v", v, b, got, err, want, wantErr)
		}
	}
	f(Get, true, "", Unit{}, nil)
	f(Get, true, "END", Unit{}, nil)
	f(Get, true, "END\r", Unit{}, nil)
	f(Get, true, "END\r\nEND\r\n", Unit{Size: 5, Last: true}, nil)
	f(Get, true, "END\n", Unit{}, ErrBadReply)
	f(Get, true, "\n", Unit{}, ErrBadReply)
	f(Get, true, "VALUE a 0 5\r\nhel", Unit{Need: 25, Last: true}, nil)
	f(Get, true, "VALUE a 0 5\r\nhello\r\nEND\r\nx", Unit{Size: 25, Last: true}, nil)
	f(Get, true, "VALUE a 0 5\r\nhello\r\nVALUE", Unit{}, ErrBadReply)
	f(Get, false, " VALUE a 0 0\r\n\r\n", Unit{}, ErrBadReply)
	f(Get, true, "VALUE a 0 5 9\r\nhello\r\nEND\r\n", Unit{Size: 27, Last: true}, nil)
	f(Get, false, "VALUE a 0 5\r\nhello\r\nEND\r\n", Unit{Size: 20}, nil)
	f(Get, false, "VALUE a 0 5\r\nhello\r\n", Unit{Size: 20}, nil)
	f(Get, false, "VALUE a 0 5\r\nhelloxx", Unit{}, ErrBadReply)
	f(Get, false, "VALUE a 0 x\r\n", Unit{}, ErrBadReply)
	for _, line := range []string{"VALUE a", "VALUE a ", "VALUE a 0", "VALUE a 0 ", "VALUE a  0", "VALUE  0 0", "VALUE a  0 0", "VALUE a 0  0"} {
		f(Get, false, line+"\r\n\r\n", Unit{}, ErrBadReply)
	}
	f(Get, false, "VALUE a 0 +5\r\n", Unit{}, ErrBadReply)
	f(Get, false, "VALUE a 0 2147483646\r\n", Unit{}, ErrBadReply)
	f(Get, false, "VALUE a 0 2147483645\r\n", Unit{Need: 22 + 2147483647}, nil)
	f(Get, false, "ERROR\r\n", Unit{Size: 7, Last: true, Fault: true}, nil)
	f(MetaGet, true, "VA 2 v\r\n", Unit{Need: 12}, nil)
	f(MetaGet, true, "VA 2 v\r\nhi\r\n", Unit{Size: 12, Last: true}, nil)
	f(MetaGet, true, "VA\r\n", Unit{}, ErrBadReply)
	f(Stats, false, "STAT a 1\r\n", Unit{Size: 10}, nil)
	f(Set, true, "SERVER_ERROR out of memory\r\n", Unit{Size: 28, Last: true, Fault: true}, nil)
	f(Set, true, strings.Repeat("x", maxReplyLine), Unit{}, nil)
	f(Set, true, strings.Repeat("x", maxReplyLine+1), Unit{}, ErrBadReply)
}

// Replies to a retrieval, with any bytes for values, are taken apart as they were put
// together.
func TestRetrievalUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []string
		for i, value := range rapid.SliceOfN(rapid.SliceOf(rapid.SampledFrom([]byte("\r\nENDVALUE 0\x00"))), 0, 5).Draw(t, "values") {
			cas := rapid.SampledFrom([]string{"", " 12345678901"}).Draw(t, "cas")
			want = append(want, fmt.Sprintf("VALUE key%d 4294967295 %d%s\r\n%s\r\n", i, len(value), cas, value))
		}
		want = append(want, "END\r\n")
		cuts := rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "cuts")
		got, last, bad := unitsOf(t, split(strings.Join(want, ""), cuts), Get, false, true)
		if diff := cmp.Diff(want, got); diff != "" || bad {
			t.Fatalf("bad is %v (-want +got):\n%s", bad, diff)
		}
		for i, l := range last {
			if l != (i == len(want)-1) {
				t.Fatalf("unit %d of %d: last is %v", i, len(want), l)
			}
		}
		for i, u := range got[:len(got)-1] {
			if key := string(ValueKey([]byte(u))); key != fmt.Sprint("key", i) {
				t.Fatalf("key of %q is %q", u, key)
			}
		}
	})
}

func TestValueKey(t *testing.T) {
	f := func(unit, want string) {
		t.Helper()
		if got := ValueKey([]byte(unit)); string(got) != want || IsValue([]byte(unit)) != (got != nil) {
			t.Errorf("key of %q is %q", unit, got)
		}
		for _, key := range []string{want, want + "b", want[:max(0, len(want)-1)]} {
			if got := IsValueOf([]byte(unit), []byte(key)); got != (key == want && want != "") {
				t.Errorf("%q of %q: %v", unit, key, got)
			}
		}
	}
	f("VALUE a 0 1\r\nx\r\n", "a")
	f("VALUE a\tb 0 1\r\nx\r\n", "a\tb")
	f("END\r\n", "")
	f("VALUE", "")
	f("", "")
	f("VALUES a 0 1\r\n", "")
}
