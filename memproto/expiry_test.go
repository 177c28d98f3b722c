package memproto

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// capLine parses a request and caps what it forwards.
func capLine(t testing.TB, request string, limit, unix int64) (plain, capped string, v Verb) {
	t.Helper()
	var r Request
	if n, status := new(Parser).Parse([]byte(request), &r); status != Complete || n != len(request) {
		t.Fatalf("%q: status %d, took %d", request, status, n)
	}
	plain = string(r.Forward(nil))
	return plain, string(CapExpiry(nil, r.Verb, []byte(plain), limit, unix)), r.Verb
}

func TestCapExpiry(t *testing.T) {
	const limit, unix = 60, 1_800_000_000
	f := func(request, want string) {
		t.Helper()
		if _, got, _ := capLine(t, request, limit, unix); got != want {
			t.Errorf("%q is capped as %q, want %q", request, got, want)
		}
	}
	same := func(request string) { t.Helper(); f(request, request) }
	f("set k 5 0 1\r\nx\r\n", "set k 5 60 1\r\nx\r\n")
	f("set  k  5  0  1 \r\nx\r\n", "set  k  5  60  1 \r\nx\r\n")
	f(" set k 5 61 1 noreply\nx\r\n", "set k 5 60 1 \r\nx\r\n")
	f("set k\r 5 0 1\r\nx\r\n", "set k\r 5 60 1\r\nx\r\n") // a key may have that
	f("add k 5 2592001000 1\r\nx\r\n", "add k 5 60 1\r\nx\r\n")
	f("cas k 5 1800000061 1 9\r\nx\r\n", "cas k 5 60 1 9\r\nx\r\n")
	same("set k 5 60 1\r\nx\r\n")
	same("set k 5 59 3\r\n 0 \r\n")
	f("set k 5 1800000059 1\r\nx\r\n", "set k 5 59 1\r\nx\r\n")
	f("set k 5 1800000000 1\r\nx\r\n", "set k 5 -1 1\r\nx\r\n") // over
	f("set k 5 2592001 1\r\nx\r\n", "set k 5 -1 1\r\nx\r\n")
	f("set k 5 -9223372036854775808 1\r\nx\r\n", "set k 5 -1 1\r\nx\r\n") // 1.6.18 takes it for 0
	same("set k 5 -1 1\r\nx\r\n")
	f("touch k 0\r\n", "touch k 60\r\n")
	f("touch k 900 noreply\r\n", "touch k 60 \r\n")
	f("gat 0 k\r\n", "gat 60 k\r\n")
	f("gats 0 k 0\r\n", "gats 60 k 0\r\n")
	same("gat -1 k\r\n")
	same("get 900\r\n")
	same("incr 900 900\r\n")
	same("delete 900\r\n")
	f("ms k 1\r\nx\r\n", "ms k 1 T60\r\nx\r\n")
	f("ms k 1 F3 T0 c\r\nx\r\n", "ms k 1 F3 T60 c\r\nx\r\n")
	f("ms k 1 q MA N0\r\nx\r\n", "ms k 1 MA N60 T60\r\nx\r\n")
	f("mg k t T0 v\r\n", "mg k t T60 v\r\n")
	f("mg T900 N900\r\n", "mg T900 N60\r\n")
	same("mg k v OT900\r\n")
	f("ma k N0 J5 T900\r\n", "ma k N60 J5 T60\r\n")
	same("ma k N7\r\n")
	f("md k I T900\r\n", "md k I T60\r\n")
	same("md k I T30\r\n")
	same("md k\r\n")
	same("ma k\r \n")
	if got := string(CapExpiry(nil, Touch, []byte("touch k 0\r\n"), 1<<40, unix)); got != "touch k 2592000\r\n" {
		t.Errorf("a limit that would be taken for a date is written as %q", got)
	}
}

func TestLapses(t *testing.T) {
	f := func(v Verb, raw string, want bool) {
		t.Helper()
		if got := Lapses(v, []byte(raw), 1_800_000_000); got != want {
			t.Errorf("%q lapses: %v", raw, got)
		}
	}
	f(Set, "set -1 -1 -1 1\r\nx\r\n", true)
	f(Set, "set -1 -1 0 1\r\nx\r\n", false)
	f(Cas, "cas k 0 1800000000 1 -1\r\nx\r\n", true)
	f(Add, "add k 0 1800000001 1\r\n-1\r\n", false)
	f(Touch, "touch k -1\r\n", true)
	f(Touch, "touch -1 1\r\n", false)
	f(Gat, "gat -1 k\r\n", true)
	f(Gats, "gats 1 -1\r\n", false)
	f(MetaSet, "ms k 1 T-1\r\nx\r\n", true)
	f(MetaSet, "ms T-1 1\r\nx\r\n", false)
	f(MetaGet, "mg k v T2592001\r\n", true)
	f(MetaGet, "mg k N-1\r\n", false)
	f(MetaArithmetic, "ma k D1 T-1\r\n", true)
	f(Incr, "incr k -1\r\n", false)
	f(Delete, "delete -1\r\n", false)
	f(Get, "get -1\r\n", false)
}

// expiries are exptimes in all forms.
func expiries(now int64) []string {
	return []string{
		"0", "-0", "1", "59", "60", "61", "+70", "3600", "2592000", "2592001", "-1", "-100000",
		fmt.Sprint(now + 30), fmt.Sprint(now + 61), fmt.Sprint(now + 7200), fmt.Sprint(now - 10), "2147483647", "4294967295",
		"4294967296", fmt.Sprint(1<<32 + now + 30), "9223372036854775807", "-9223372036854775808",
	}
}

// timed are requests that set an expiry, with where it stands.
var timed = []string{
	"set KEY 1 EXP 1\r\n5\r\n", "add KEY 1 EXP 1\r\n5\r\n", "replace KEY 1 EXP 1\r\n5\r\n", "append KEY 1 EXP 1\r\n5\r\n",
	"prepend KEY 1 EXP 1\r\n5\r\n", "cas KEY 1 EXP 1 5\r\n5\r\n", "touch KEY EXP\r\n", "gat EXP KEY\r\n", "gats EXP KEY\r\n",
	"ms KEY 1 TEXP\r\n5\r\n", "ms KEY 1 ME TEXP\r\n5\r\n", "ms KEY 1 MR TEXP\r\n5\r\n", "ms KEY 1 MA NEXP\r\n5\r\n", "ms KEY 1 MP NEXP TEXP\r\n5\r\n",
	"ms KEY 1 I C1 TEXP\r\n5\r\n", "ms KEY 1 C1 TEXP\r\n5\r\n", "mg KEY v TEXP\r\n", "mg KEY s NEXP\r\n", "mg KEY NEXP TEXP\r\n", "mg KEY REXP\r\n",
	"ma KEY NEXP\r\n", "ma KEY TEXP\r\n", "ma KEY NEXP TEXP J7\r\n", "md KEY I TEXP\r\n", "md KEY TEXP\r\n",
	// that set none
	"ms KEY 1\r\n5\r\n", "ms KEY 1 MA\r\n5\r\n", "incr KEY 1\r\n", "decr KEY 1\r\n", "ma KEY\r\n", "mg KEY v\r\n", "get KEY\r\n", "delete KEY\r\n", "md KEY I\r\n",
}

// ttlOf returns the seconds an item has left: never for one without end, 0 for none.
func ttlOf(s *server, key string) int64 {
	_, flags := NextWord([]byte(strings.TrimSuffix(s.ask("mg "+key+" t\r\n"), "\r\n")))
	seconds, _ := ParseInt(metaFlag(flags, 't'))
	if seconds < 0 {
		return never
	}
	return seconds
}

const never = 1 << 40

// A capped request does the same to a real memcached as it would have done, but what it
// leaves lives for as long or for the limit, whichever is less. What was there before lives
// for less.
func TestCapExpiryOnMemcached(t *testing.T) {
	s := connect(t, memcachedtest.Start(t, memcachedtest.Steady...).Addr())
	const limit = 60
	n := 0
	for _, there := range []bool{false, true} {
		for _, form := range timed {
			exptimes := []string{""}
			if strings.Contains(form, "EXP") {
				exptimes = expiries(time.Now().Unix())
			}
			for _, exptime := range exptimes {
				n++
				plainKey, cappedKey := fmt.Sprint("p", n), fmt.Sprint("c", n)
				request := strings.ReplaceAll(form, "EXP", exptime)
				if there {
					s.ask("set " + plainKey + " 1 50 1\r\n4\r\nset " + cappedKey + " 1 50 1\r\n4\r\n")
				}
				plain, _, v := capLine(t, strings.Replace(request, "KEY", plainKey, 1), limit, 0)
				_, capped, _ := capLine(t, strings.Replace(request, "KEY", cappedKey, 1), limit, time.Now().Unix())
				want := strings.ReplaceAll(s.askOne(t, v, plain), plainKey, cappedKey)
				if got := s.askOne(t, v, capped); withoutCAS(v, got) != withoutCAS(v, want) {
					t.Errorf("there %v, %q: capped as %q it is answered %q, want %q", there, plain, capped, got, want)
				}
				most := min(ttlOf(s, plainKey), limit)
				least := most - 10 // the test may be slow
				if n, _ := ParseInt([]byte(exptime)); int64(int32(n)) != n {
					most, least = limit, 0 // 1.6.18 takes the lower bits; others need not
				}
				if got := ttlOf(s, cappedKey); got > most+1 || got > limit || got < least {
					t.Errorf("there %v, %q: capped as %q it lives for %d s, want %d", there, plain, capped, got, most)
				}
			}
		}
	}
}

// withoutCAS cuts the cas, which no two items share, from the reply to a gats.
func withoutCAS(v Verb, reply string) string {
	if words := strings.Fields(reply); v == Gats && len(words) > 4 {
		return strings.Join(slices.Delete(words, 4, 5), " ")
	}
	return reply
}

// wantCapped caps the words of a line in another way than CapExpiry does.
func wantCapped(v Verb, words []string, limit, unix int64) []string {
	end := func(s string) string {
		n, ok := ParseInt([]byte(s))
		switch month := int64(60 * 60 * 24 * 30); {
		case !ok:
			return s
		case n < 0 || n > month && n <= unix:
			return "-1"
		case n > month && n < unix+limit:
			return strconv.FormatInt(n-unix, 10)
		case n > 0 && n < limit && n <= month:
			return strconv.FormatInt(n, 10)
		}
		return strconv.FormatInt(limit, 10)
	}
	words = slices.Clone(words)
	at := map[shape]int{shapeStore: 3, shapeGat: 1}[verbs[v].shape]
	if v == Touch {
		at = 2
	}
	if at > 0 {
		words[at] = end(words[at])
		return words
	}
	first := map[Verb]int{MetaSet: 3, MetaGet: 2, MetaArithmetic: 2, MetaDelete: 2}[v]
	if first == 0 {
		return words
	}
	timed := false
	for i := first; i < len(words); i++ {
		if c := words[i][0]; c == 'T' || c == 'N' {
			_, ok := ParseInt([]byte(words[i][1:]))
			timed = timed || ok && c == 'T'
			words[i] = words[i][:1] + end(words[i][1:])
		}
	}
	if v == MetaSet && !timed {
		words = append(words, fmt.Sprint("T", limit))
	}
	return words
}

// normal spells numbers in one way, as capping respells those that it keeps.
func normal(words []string) string {
	var b strings.Builder
	for _, w := range words {
		if n, ok := ParseInt([]byte(w)); ok {
			w = fmt.Sprint(n)
		} else if n, ok := ParseInt([]byte(w[1:])); ok {
			w = w[:1] + fmt.Sprint(n)
		}
		b.WriteString(" " + w)
	}
	return b.String()
}

// checkCap caps the first request of a stream.
func checkCap(t failer, stream string, limit int64) {
	t.Helper()
	const unix = 1_800_000_000
	var r Request
	if _, status := new(Parser).Parse([]byte(stream), &r); status != Complete || r.Key == nil {
		return
	}
	raw := r.Forward(nil)
	got := string(CapExpiry([]byte("before "), r.Verb, raw, limit, unix))
	after, found := strings.CutPrefix(got, "before ")
	if !found {
		t.Fatalf("%q: %q overwrites what was there", raw, got)
	}
	if again := string(CapExpiry(nil, r.Verb, []byte(after), limit, unix)); again != after {
		t.Fatalf("%q is capped as %q and then as %q", raw, after, again)
	}
	line, data, _ := strings.Cut(string(raw), "\n")
	gotLine, gotData, _ := strings.Cut(after, "\n")
	if gotData != data || strings.HasSuffix(line, "\r") != strings.HasSuffix(gotLine, "\r") {
		t.Fatalf("%q is capped as %q", raw, after)
	}
	want := wantCapped(r.Verb, spaced(strings.TrimSuffix(line, "\r")), limit, unix)
	if got := spaced(strings.TrimSuffix(gotLine, "\r")); normal(got) != normal(want) {
		t.Fatalf("%q is capped as %q, want %q", raw, got, want)
	}
}

func FuzzCapExpiry(f *testing.F) {
	for _, form := range timed {
		for _, exptime := range []string{"0", "61", "-1", "1800000061"} {
			f.Add(strings.NewReplacer("KEY", "k", "EXP", exptime).Replace(form), uint32(60))
		}
	}
	f.Fuzz(func(t *testing.T, stream string, limit uint32) { checkCap(t, stream, int64(limit%3600)+1) })
}
