package memproto

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

func TestParseItem(t *testing.T) {
	f := func(reply, flags, value string, want bool) {
		t.Helper()
		it, ok := ParseItem([]byte(reply))
		if ok != want || ok && (string(it.Flags) != flags || string(it.Value) != value) {
			t.Errorf("%q is an item %v with flags %q and value %q", reply, ok, it.Flags, it.Value)
		}
	}
	none := func(reply string) { t.Helper(); f(reply, "", "", false) }
	f("VALUE k 5 1\r\nx\r\nEND\r\n", "5", "x", true)
	f("VALUE k 4294967295 4 77\r\na\r\nb\r\nEND\r\n", "4294967295", "a\r\nb", true)
	f("VALUE k 0 0\r\n\r\nEND\r\n", "0", "", true)
	f("VA 1 f5\r\nx\r\n", "5", "x", true)
	f("VA 3 kk s3 f12 Of9\r\n f6\r\n", "12", " f6", true)
	none("VA 1 s1 Of9\r\nx\r\n") // no flags are told
	none("VA 1 f5 X W\r\nx\r\n") // is stale, which a copy could not tell
	none("VA 1 W X f5\r\nx\r\n")
	none("VA 1 f5 Z\r\nx\r\n")
	none("VA 5 f5\r\nx\r\n") // cut off
	none("VALUE k 5 2\r\nx\r\n")
	none("VALUE k 5\r\n")
	none("HD f5\r\n")
	none("END\r\n")
	none("EN\r\n")
	none("SERVER_ERROR VA 1 f5\r\n")
	none("VALUE k 5 1")
	none("")
}

func TestParseTTL(t *testing.T) {
	f := func(reply string, seconds int64, want bool) {
		t.Helper()
		if got, ok := ParseTTL([]byte(reply)); ok != want || ok && got != seconds {
			t.Errorf("%q is %d, %v", reply, got, ok)
		}
	}
	f("HD t30\r\n", 30, true)
	f("HD t-1\r\n", -1, true)
	f("HD b t2592000\r\n", 2592000, true)
	f("HD Ot5 kt6\r\n", 0, false)
	f("HD\r\n", 0, false)
	f("HD t\r\n", 0, false)
	f("EN\r\n", 0, false)
	f("ERROR\r\n", 0, false)
	f("VA 1 t30\r\nx\r\n", 0, false)
	f("", 0, false)
}

// What was read of one server can be stored on another, and asked for and deleted there,
// with keys that a line can say and with others.
func TestItemsMoveBetweenServers(t *testing.T) {
	from, to := connect(t, memcachedtest.Start(t).Addr()), connect(t, memcachedtest.Start(t).Addr())
	for i, value := range []string{"x", "", "a\r\nEND\r\n", strings.Repeat("v", 100_000)} {
		for _, coded := range []bool{false, true} {
			key, wire, b := fmt.Sprint("key", i), fmt.Sprint("key", i), ""
			if coded {
				key = fmt.Sprint("a b\x00\r\n", i)
				wire, b = base64.StdEncoding.EncodeToString([]byte(key)), " b"
			}
			from.ask(fmt.Sprintf("ms %s %d T100 F4294967295%s\r\n%s\r\n", wire, len(value), b, value))
			line, v := AppendGet(nil, []byte(key), coded)
			found := from.askOne(t, v, string(line))
			it, ok := ParseItem([]byte(found))
			if !ok {
				t.Fatalf("%q is answered %.80q, which is no item", line, found)
			}
			ttl, ok := ParseTTL([]byte(from.askOne(t, MetaGet, string(AppendAskTTL(nil, []byte(key), coded)))))
			if !ok || ttl < 98 || ttl > 100 {
				t.Errorf("%q lives for %d, %v", key, ttl, ok)
			}
			add, addVerb := AppendAdd(nil, []byte(key), coded, it, 10)
			want := map[Verb][2]string{Add: {"STORED\r\n", "NOT_STORED\r\n"}, MetaSet: {"HD\r\n", "NS\r\n"}}[addVerb]
			for turn, reply := range want { // the second must not replace what is there
				if got := to.askOne(t, addVerb, string(add)); got != reply {
					t.Errorf("add %d of %q is answered %q", turn, key, got)
				}
			}
			if got := to.askOne(t, v, string(line)); got != found {
				t.Errorf("the copy of %q is %.80q, was %.80q", key, got, found)
			}
			if ttl, ok := ParseTTL([]byte(to.askOne(t, MetaGet, string(AppendAskTTL(nil, []byte(key), coded))))); !ok || ttl < 8 || ttl > 10 {
				t.Errorf("the copy of %q lives for %d, %v", key, ttl, ok)
			}
			del, delVerb := AppendDelete(nil, []byte(key), coded)
			for range 2 {
				if got := to.askOne(t, delVerb, string(del)); !Changed(delVerb, []byte(got)) {
					t.Errorf("%q is answered %q, which is no change", del, got)
				}
				gone := to.askOne(t, v, string(line))
				if _, ok := ParseItem([]byte(gone)); ok || !Missed([]byte(gone)) {
					t.Errorf("%q is still there: %.80q", key, gone)
				}
			}
			if _, ok := ParseTTL([]byte(to.askOne(t, MetaGet, string(AppendAskTTL(nil, []byte(key), coded))))); ok {
				t.Errorf("%q has time left after its deletion", key)
			}
		}
	}
	from.ask("set ever 0 0 1\r\nx\r\n")
	if ttl, ok := ParseTTL([]byte(from.ask(string(AppendAskTTL(nil, []byte("ever"), false))))); !ok || ttl != -1 {
		t.Errorf("what does not expire lives for %d, %v", ttl, ok)
	}
}

// itemState tells all of an item that a change would alter.
func itemState(s *server, key string) string {
	return s.ask("me " + key + "\r\nmg " + key + " v f c s\r\n")
}

// sameButRead cuts from a state what every read alters.
func sameButRead(state string) string {
	debug, rest, _ := strings.Cut(state, "\r\n")
	var kept []string
	for _, word := range strings.Fields(debug) {
		if !strings.HasPrefix(word, "la=") && !strings.HasPrefix(word, "fetch=") && !strings.HasPrefix(word, "exp=") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ") + rest
}

// A reply tells what has become of the item: whether it may have changed, and whether the
// request found nothing to act upon.
func TestChangedAndAbsent(t *testing.T) {
	s := connect(t, memcachedtest.Start(t, memcachedtest.Steady...).Addr())
	const changed, absent, neither = "changed", "absent", "neither"
	n := 0
	f := func(request, whenThere, whenNot string) {
		t.Helper()
		for _, there := range []bool{true, false} {
			n++
			key, want := fmt.Sprint("k", n), whenNot
			if there {
				want = whenThere
				s.ask("set " + key + " 1 500 1\r\n4\r\n")
			}
			before, ttl := itemState(s, key), ttlOf(s, key)
			var r Request
			new(Parser).Parse([]byte(strings.Replace(request, "KEY", key, 1)), &r)
			reply := []byte(s.askOne(t, r.Verb, string(r.Forward(nil))))
			got := neither
			switch isChanged, isAbsent := Changed(r.Verb, reply), Absent(r.Verb, reply); {
			case isChanged && isAbsent:
				got = "both"
			case isChanged:
				got = changed
			case isAbsent:
				got = absent
			}
			if got != want {
				t.Errorf("there %v, %q is answered %q: %s, want %s", there, request, reply, got, want)
			}
			after := ttlOf(s, key)
			really := sameButRead(itemState(s, key)) != sameButRead(before) || after > ttl || after < ttl-2
			if really && got != changed {
				t.Errorf("there %v, %q is answered %q and has changed the item: %s", there, request, reply, got)
			}
		}
	}
	f("set KEY 0 0 1\r\nx\r\n", changed, changed)
	f("set KEY 0 -1 1\r\nx\r\n", changed, changed)
	f("set KEY 0 0 2000000\r\n"+strings.Repeat("x", 2_000_000)+"\r\n", changed, changed) // too large: the old one is gone
	f("add KEY 0 0 1\r\nx\r\n", neither, changed)
	f("replace KEY 0 0 1\r\nx\r\n", changed, absent)
	f("append KEY 0 0 1\r\nx\r\n", changed, absent)
	f("prepend KEY 0 0 1\r\nx\r\n", changed, absent)
	f("cas KEY 0 0 1 999999999\r\nx\r\n", neither, absent)
	f("incr KEY 1\r\n", changed, absent)
	f("decr KEY 1\r\n", changed, absent)
	f("incr KEY x\r\n", neither, neither)
	f("delete KEY\r\n", changed, changed) // copies of what is not there may be
	f("touch KEY 900\r\n", changed, absent)
	f("gat 900 KEY\r\n", changed, absent)
	f("gats 900 KEY\r\n", changed, absent)
	f("mg KEY T900\r\n", changed, absent)
	f("mg KEY v T900\r\n", changed, absent)
	f("mg KEY v N900\r\n", changed, changed)
	f("ms KEY 1\r\nx\r\n", changed, changed)
	f("ms KEY 1 ME\r\nx\r\n", absent, changed) // which NS does not tell apart
	f("ms KEY 1 MR\r\nx\r\n", changed, absent)
	f("ms KEY 1 MA\r\nx\r\n", changed, absent)
	f("ms KEY 1 MP\r\nx\r\n", changed, absent)
	f("ms KEY 1 C999999999\r\nx\r\n", neither, absent)
	f("ms KEY 1 TX\r\nx\r\n", neither, neither)
	f("md KEY\r\n", changed, changed)
	f("md KEY I T30\r\n", changed, changed)
	f("md KEY C999999999\r\n", neither, changed)
	f("ma KEY\r\n", changed, absent)
	f("ma KEY v t T90\r\n", changed, absent)
	f("ma KEY N90 J3\r\n", changed, changed)
	f("ma KEY DX\r\n", neither, neither)
	f("ma KEY C999999999\r\n", neither, absent)
}

func TestIsFault(t *testing.T) {
	for reply, want := range map[string]bool{
		"ERROR\r\n": true, "SERVER_ERROR x\r\n": true, "CLIENT_ERROR bad\r\n": true, "ERRORS\r\n": false, "STORED\r\n": false, "EN\r\n": false, "": false,
	} {
		if IsFault([]byte(reply)) != want {
			t.Errorf("%q is a fault: %v", reply, !want)
		}
	}
}

// Errors of a server leave open what it has done.
func TestChangedAfterErrors(t *testing.T) {
	for _, reply := range []string{"SERVER_ERROR out of memory storing object\r\n", "ERROR\r\n", "", "S"} {
		for _, v := range []Verb{Set, MetaSet, Incr, Delete} {
			if !Changed(v, []byte(reply)) || Absent(v, []byte(reply)) {
				t.Errorf("%v answered %q has changed nothing, or found nothing", v, reply)
			}
		}
	}
}

// A stale item must not be copied, as the copy would be fresh: mg tells it, and so does
// the question for the time that is left.
func TestStaleItemsAreNotCopied(t *testing.T) {
	s := connect(t, memcachedtest.Start(t).Addr())
	for _, first := range []string{"", "mg k v\r\n"} { // whoever asks first has won the right to renew it
		s.ask("set k 7 0 1\r\nx\r\nmd k I T100\r\n" + first)
		reply := s.askOne(t, MetaGet, "mg k v f\r\n")
		if it, ok := ParseItem([]byte(reply)); ok {
			t.Errorf("%q is taken for an item to copy: %+v", reply, it)
		}
		reply = s.askOne(t, MetaGet, string(AppendAskTTL(nil, []byte("k"), false)))
		if ttl, ok := ParseTTL([]byte(reply)); ok {
			t.Errorf("%q lets an item be copied for %d s", reply, ttl)
		}
	}
}

func FuzzParseItem(f *testing.F) {
	for _, s := range []string{"VALUE k 5 1\r\nx\r\nEND\r\n", "VA 1 f5\r\nx\r\n", "VA 0 s0 f1 Ox\r\n\r\n", "HD t5\r\n", "EN\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		for _, v := range []Verb{Get, MetaGet} {
			u, err := NextUnit([]byte(reply), v, true)
			whole := err == nil && u.Size == len(reply)
			it, ok := ParseItem([]byte(reply))
			if !ok || !whole {
				continue
			}
			for _, coded := range []bool{false, true} {
				add, verb := AppendAdd(nil, []byte("key"), coded, it, 5)
				var r Request
				n, status := new(Parser).Parse(add, &r)
				if !digitsOnly(it.Flags) { // no server sends such
					continue
				}
				if n != len(add) || status != Complete || r.Verb != verb || string(r.Data) != string(it.Value)+"\r\n" {
					t.Fatalf("%q is copied by %q, which is status %d, %+v", reply, add, status, r)
				}
			}
		}
		ParseTTL([]byte(reply))
	})
}

func digitsOnly(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0 && len(b) < 11
}

// Neither allocates: they are on the way of every request to a server that is away.
func TestCopyingDoesNotAllocate(t *testing.T) {
	dst, key := make([]byte, 0, 1024), []byte("user:42")
	unix := time.Now().Unix()
	set, reply, ttl := []byte("set user:42 0 0 1\r\nx\r\n"), []byte("VA 1 f5\r\nx\r\n"), []byte("HD t30\r\n")
	if n := testing.AllocsPerRun(100, func() {
		for _, coded := range []bool{false, true} {
			AppendGet(dst, key, coded)
			AppendDelete(dst, key, coded)
			AppendAskTTL(dst, key, coded)
			it, _ := ParseItem(reply)
			AppendAdd(dst, key, coded, it, 10)
		}
		CapExpiry(dst, Set, set, 60, unix)
		ParseTTL(ttl)
		Changed(Set, reply)
		Absent(Cas, reply)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
