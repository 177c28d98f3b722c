package memproto

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

var someHead = Head{ID: [16]byte{1, 2, 0xff}, Size: 1000, Length: 3500, Flags: 1<<31 + 7, Sum: 0xfedcba9876543210}

func TestHeadIsReadAsWritten(t *testing.T) {
	record := someHead.Append(nil)
	if len(record) != HeadLen || fmt.Sprint(HeadFlags) != headFlagsText {
		t.Fatalf("the record has %d bytes, want %d; flags %d are %s", len(record), HeadLen, HeadFlags, headFlagsText)
	}
	for _, c := range []struct{ before, behind string }{{"", ""}, {"a", "b\r\n"}, {headMagic, headMagic}, {string(record[:HeadLen-1]), string(record)}} {
		h, before, behind, ok := ParseHead([]byte(c.before + string(record) + c.behind))
		if !ok || h != someHead || string(before) != c.before || string(behind) != c.behind {
			t.Errorf("%q and %q: %v, %+v, %q, %q", c.before, c.behind, ok, h, before, behind)
		}
	}
	if someHead.Parts() != 4 {
		t.Errorf("%d parts", someHead.Parts())
	}
	if from, to := someHead.Part(3); from != 3000 || to != 3500 {
		t.Errorf("the last part is %d to %d", from, to)
	}
	if k := string(someHead.AppendKey(nil, 12)); k != "cacherouter:part:0102ff00000000000000000000000000:12" {
		t.Errorf("a part's key is %s", k)
	}
	none := Head{Size: 1000}
	if h, _, _, ok := ParseHead(none.Append(nil)); !ok || h.Parts() != 0 {
		t.Errorf("an empty value has %d parts, %v", h.Parts(), ok)
	}
}

func TestNoHead(t *testing.T) {
	record := string(someHead.Append(nil))
	for _, s := range []string{"", "x", record[:HeadLen-1], strings.Replace(record, "0102ff", "0102fg", 1), strings.Replace(record, "000003e8", "00000000", 1), strings.Replace(record, " 00000dac", "000000dac", 1), strings.TrimSuffix(record, "\n") + "x"} {
		if h, _, _, ok := ParseHead([]byte(s)); ok {
			t.Errorf("%q is read as %+v", s, h)
		}
	}
}

func TestTellsHead(t *testing.T) {
	f := func(reply string, want bool) {
		t.Helper()
		if got := TellsHead([]byte(reply)); got != want {
			t.Errorf("%q: %v", reply, got)
		}
	}
	f("VALUE k "+headFlagsText+" 1\r\nx\r\nEND\r\n", true)
	f("VALUE k "+headFlagsText+" 1 77\r\nx\r\nEND\r\n", true)
	f("VALUE "+headFlagsText+" 0 1\r\nx\r\nEND\r\n", false)
	f("VALUE k 0 "+headFlagsText+"\r\n", false)
	f("VA 1 t5 f"+headFlagsText+"\r\nx\r\n", true)
	f("HD f"+headFlagsText+"\r\n", true)
	f("HD f"+headFlagsText+"0\r\n", false)
	f("HD k"+headFlagsText+"\r\n", false)
	f("END\r\n", false)
	f("EN\r\n", false)
	f("VA\r\n", false)
	f("STORED\r\n", false)
}

func TestReplyOfWholeValue(t *testing.T) {
	f := func(reply, want string) {
		t.Helper()
		if got := string(AppendReplyOf([]byte("_"), []byte(reply), 7, 5, []byte("whole"))); got != "_"+want {
			t.Errorf("%q becomes %q, want %q", reply, got, want)
		}
	}
	f("VALUE k 9 1\r\nx\r\nEND\r\n", "VALUE k 7 5\r\nwhole\r\nEND\r\n")
	f("VALUE k 9 1 44\r\nx\r\nEND\r\n", "VALUE k 7 5 44\r\nwhole\r\nEND\r\n")
	f("VA 1 f9 kk s1 c4 W\r\nx\r\n", "VA 5 f7 kk s5 c4 W\r\nwhole\r\n")
	f("HD f9 s1 t-1\r\n", "HD f7 s5 t-1\r\n")
	f("HD\r\n", "HD\r\n")
}

// A store that was put about the head of its value stores that, under the same condition.
func TestStoreOf(t *testing.T) {
	f := func(v Verb, raw, flags, exptime, value, want string) {
		t.Helper()
		s, ok := ParseStore(v, []byte(raw))
		if want == "" {
			if ok {
				t.Errorf("%q stores %+v", raw, s)
			}
			return
		}
		if !ok || fmt.Sprint(s.Flags) != flags || string(s.Exptime) != exptime || string(s.Value) != value {
			t.Errorf("%q: %v, %d, %q, %q", raw, ok, s.Flags, s.Exptime, s.Value)
		}
		if got := string(AppendStoreOf(nil, v, []byte(raw), 9, []byte("head"))); got != want {
			t.Errorf("%q becomes %q, want %q", raw, got, want)
		}
	}
	f(Set, "set k 7 100 1\r\nx\r\n", "7", "100", "x", "set k 9 100 4\r\nhead\r\n")
	f(Add, "add  k 4294967303 0 0\r\n\r\n", "7", "0", "", "add k 9 0 4\r\nhead\r\n")
	f(Cas, "cas k 7 -1 1 55\r\nx\r\n", "7", "-1", "x", "cas k 9 -1 4 55\r\nhead\r\n")
	f(MetaSet, "ms k 1\r\nx\r\n", "0", "0", "x", "ms k 4 F9\r\nhead\r\n")
	f(MetaSet, "ms aw== 1 b F7 T5 C5 MR k Oq I\r\nx\r\n", "7", "5", "x", "ms aw== 4 b T5 C5 MR k Oq I F9\r\nhead\r\n")
	f(MetaSet, "ms k 1 MA\r\nx\r\n", "", "", "", "")
	f(MetaSet, "ms k 1 Mprepend\r\nx\r\n", "", "", "", "")
	f(Append, "append k 0 0 1\r\nx\r\n", "", "", "", "")
	f(Incr, "incr k 1\r\n", "", "", "", "")
	if !UsesHeadFlags([]byte("ms k 1 MA F"+headFlagsText+"\r\nx\r\n")) || UsesHeadFlags([]byte("ms k 1 MA F1\r\nx\r\n")) {
		t.Error("UsesHeadFlags")
	}
}

func TestAskedAndHiddenFlags(t *testing.T) {
	for _, c := range []struct{ raw, asks, reply, shown string }{
		{"mg k v\r\n", "mg k v f\r\n", "VA 1 f7\r\nx\r\n", "VA 1\r\nx\r\n"},
		{"mg k s kx\n", "mg k s kx f\n", "HD s1 f7 kk\r\n", "HD s1 kk\r\n"},
		{"mg k v f\r\n", "", "", ""},
		{"mg k t\r\n", "", "", ""},
		{"mg k v\r\n", "mg k v f\r\n", "EN\r\n", "EN\r\n"},
		{"get k\r\n", "", "", ""},
	} {
		var p Parser
		var r Request
		p.Parse([]byte(c.raw), &r)
		if r.HidesFlags() != (c.asks != "") {
			t.Errorf("%q hides flags: %v", c.raw, r.HidesFlags())
		}
		if c.asks == "" {
			continue
		}
		if got := string(AppendAskFlags(nil, []byte(c.raw))); got != c.asks {
			t.Errorf("%q becomes %q", c.raw, got)
		}
		if got := string(AppendWithoutFlags(nil, []byte(c.reply))); got != c.shown {
			t.Errorf("%q becomes %q", c.reply, got)
		}
	}
	for raw, want := range map[string]string{"touch k 5\r\n": "5", "gat -1 k\r\n": "-1", "mg k v T7\r\n": "7", "mg k v\r\n": "", "delete k\r\n": ""} {
		var p Parser
		var r Request
		p.Parse([]byte(raw), &r)
		if got := string(Touches(r.Verb, []byte(raw))); got != want {
			t.Errorf("%q gives a life of %q", raw, got)
		}
	}
	if !TellsFlags([]byte("VALUE k 0 0\r\n\r\nEND\r\n")) || TellsFlags([]byte("TOUCHED\r\n")) || !TellsFlags([]byte("HD f0\r\n")) {
		t.Error("TellsFlags")
	}
}

// Whatever stands in a head's place, reading it ends, and what is read is what is written.
func FuzzParseHead(f *testing.F) {
	f.Add(someHead.Append(nil))
	f.Add(append([]byte(headMagic), someHead.Append([]byte("x"))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, before, behind, ok := ParseHead(b)
		if !ok {
			return
		}
		again, _, _, ok := ParseHead(h.Append(nil))
		if !ok || again != h || len(before)+HeadLen+len(behind) != len(b) || !bytes.HasPrefix(b, before) {
			t.Errorf("%q is %+v, then %+v", b, h, again)
		}
		if n := h.Parts(); n > 0 {
			if _, to := h.Part(n - 1); to != int(h.Length) {
				t.Errorf("%+v ends at %d", h, to)
			}
		}
	})
}

// Stores and replies of any form are put about a head without a fault.
func FuzzAboutHead(f *testing.F) {
	f.Add([]byte("ms k 1 F7 T5\r\nx\r\n"), []byte("VA 1 f9 kk s1\r\nx\r\n"))
	f.Add([]byte("cas k 7 -1 1 55\r\nx\r\n"), []byte("VALUE k 9 1\r\nx\r\nEND\r\n"))
	f.Fuzz(func(t *testing.T, raw, reply []byte) {
		var p Parser
		var r, again Request
		if n, status := p.Parse(raw, &r); status == Complete && !r.NoReply {
			raw = raw[:n]
			if s, ok := ParseStore(r.Verb, r.Forward(nil)); ok {
				about := AppendStoreOf(nil, r.Verb, r.Forward(nil), HeadFlags, []byte("head"))
				_, status := p.Parse(about, &again)
				if status != Complete || !bytes.Equal(again.Key, r.Key) || again.Verb != r.Verb || string(again.Data) != "head\r\n" || !bytes.Equal(s.Value, bytes.TrimSuffix(r.Data, []byte("\r\n"))) {
					t.Errorf("%q becomes %q", raw, about)
				}
			}
		}
		TellsHead(reply)
		AppendWithoutFlags(nil, reply)
		AppendReplyOf(nil, reply, 7, 5, []byte("whole"))
	})
}
