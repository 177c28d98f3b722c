package memproto

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParse names what is read of each shape. That the answers to refused requests are
// memcached's is tested against memcached.
func TestParse(t *testing.T) {
	f := func(request string, want seen) {
		t.Helper()
		want.Status = Complete
		if want.Forward == "" {
			want.Forward = request
		}
		var r Request
		n, status := new(Parser).Parse([]byte(request+"get next\r\n"), &r)
		if n != len(request) {
			t.Errorf("%q: took %d bytes of %d", request, n, len(request))
		}
		if diff := cmp.Diff(want, look(&r, status)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", request, diff)
		}
	}
	keys := func(k ...string) []string { return k }
	f("get a\r\n", seen{Verb: Get, Keys: keys("a")})
	f("get a\n", seen{Verb: Get, Keys: keys("a")})
	f("  get  a \r\n", seen{Verb: Get, Keys: keys("a"), Forward: "get  a \r\n"})
	f("get a b a\r\n", seen{Verb: Get, Keys: keys("a", "b", "a")})
	f("gets é\t\x01\r\n", seen{Verb: Gets, Keys: keys("é\t\x01")})
	f("gat -1 a\r\n", seen{Verb: Gat, Keys: keys("a")})
	f("gats 10  a  b \r\n", seen{Verb: Gats, Keys: keys("a", "b")})
	f("set a 0 0 2\r\nhi\r\n", seen{Verb: Set, Keys: keys("a"), Data: "hi\r\n"})
	f("set a 0 0 2 noreply\r\nhi\r\n", seen{Verb: Set, Keys: keys("a"), Data: "hi\r\n", NoReply: true, Forward: "set a 0 0 2 \r\nhi\r\n"})
	f("set a 0 0 2 noreply  \nhi\r\n", seen{Verb: Set, Keys: keys("a"), Data: "hi\r\n", NoReply: true, Forward: "set a 0 0 2   \r\nhi\r\n"})
	f("set noreply 0 0 0 noreply\r\n\r\n", seen{Verb: Set, Keys: keys("noreply"), Data: "\r\n", NoReply: true, Forward: "set noreply 0 0 0 \r\n\r\n"})
	f("set a 0 0 2 NOREPLY\r\nhi\r\n", seen{Verb: Set, Keys: keys("a"), Data: "hi\r\n"})
	f("add a 0 0 4\r\n\r\n\r\n\r\n", seen{Verb: Add, Keys: keys("a"), Data: "\r\n\r\n\r\n"})
	f("cas a 0 0 1 9 noreply\r\nx\r\n", seen{Verb: Cas, Keys: keys("a"), Data: "x\r\n", NoReply: true, Forward: "cas a 0 0 1 9 \r\nx\r\n"})
	f("incr a 1 noreply\r\n", seen{Verb: Incr, Keys: keys("a"), NoReply: true, Forward: "incr a 1 \r\n"})
	f("touch a 0\r\n", seen{Verb: Touch, Keys: keys("a")})
	f("delete a 0 noreply\r\n", seen{Verb: Delete, Keys: keys("a"), NoReply: true, Forward: "delete a 0 \r\n"})
	f("delete noreply\r\n", seen{Verb: Delete, Keys: keys("noreply")})
	f("delete noreply noreply\r\n", seen{Verb: Delete, Keys: keys("noreply"), NoReply: true, Forward: "delete noreply \r\n"})
	f("mg a v k\r\n", seen{Verb: MetaGet, Keys: keys("a")})
	f("mg q q v\r\n", seen{Verb: MetaGet, Keys: keys("q"), NoReply: true, Forward: "mg q  v\r\n"})
	f("mg a N30 q77 v\r\n", seen{Verb: MetaGet, Keys: keys("a"), NoReply: true, Vivify: true, Forward: "mg a N30  v\r\n"})
	f("mg a R30\r\n", seen{Verb: MetaGet, Keys: keys("a"), Vivify: true})
	f("mg AA== b\r\n", seen{Verb: MetaGet, Keys: keys("AA=="), Base64: true})
	f("ms a 1 q\r\nx\r\n", seen{Verb: MetaSet, Keys: keys("a"), Data: "x\r\n", NoReply: true, Forward: "ms a 1 \r\nx\r\n"})
	f("md a q Oq\r\n", seen{Verb: MetaDelete, Keys: keys("a"), NoReply: true, Forward: "md a  Oq\r\n"})
	f("ma a q\r\n", seen{Verb: MetaArithmetic, Keys: keys("a"), NoReply: true, Forward: "ma a \r\n"})
	f("me a q\r\n", seen{Verb: MetaDebug, Keys: keys("a")})
	f("mn x\r\n", seen{Verb: MetaNoop})
	f("version\r\n", seen{Verb: Version})
	f("verbosity 1 noreply\r\n", seen{Verb: Verbosity})
	f("flush_all 0 noreply\r\n", seen{Verb: FlushAll})
	f("stats \r\n", seen{Verb: Stats})
	f("cache_memlimit 64\r\n", seen{Verb: CacheMemlimit})
	f("shutdown graceful\r\n", seen{Verb: Shutdown})
	f("watch fetchers\r\n", seen{Verb: Denied})
	f("quit now\r\n", seen{Verb: Quit})
}

// What the router refuses although memcached 1.6.18 does not, or differently: the data
// block of a bad line is swallowed, a NUL never goes further, lengths do not wrap, and
// the router has its own limit on values.
func TestRefusals(t *testing.T) {
	f := func(request string, want seen) {
		t.Helper()
		want.Status = Refused
		var r Request
		p := Parser{MaxValue: 10}
		n, status := p.Parse([]byte(request+"\r\nget next\r\n"), &r)
		if n != len(request)+2 {
			t.Errorf("%q: took %d bytes of %d", request, n, len(request)+2)
		}
		if diff := cmp.Diff(want, look(&r, status)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", request, diff)
		}
	}
	long := strings.Repeat("k", MaxKey+1)
	f("set "+long+" 0 0 5", seen{Refusal: LineBadFormat, Skip: 7})
	f("set "+long+" 0 0 5 noreply", seen{Skip: 7})
	f("set a -1 0 5", seen{Refusal: LineBadFormat, Skip: 7})
	f("set a 0 x 5", seen{Refusal: LineBadFormat, Skip: 7})
	f("cas a 0 0 5 x", seen{Refusal: LineBadFormat, Skip: 7})
	f("cas a 0 0 5 noreply", seen{Skip: 7})
	f("ms "+long+" 5", seen{Refusal: LineBadFormat, Skip: 7})
	f("ms a 5 q q", seen{Refusal: "CLIENT_ERROR duplicate flag", Skip: 7})
	f("ms a 5"+strings.Repeat(" v", 17), seen{Refusal: "CLIENT_ERROR options flags too long", Skip: 7})
	f("set a 0 0 11", seen{Refusal: LineTooLarge, Skip: 13, Drops: true})
	f("set a 0 0 11 noreply", seen{Skip: 13, Drops: true})
	f("add a 0 0 11", seen{Refusal: LineTooLarge, Skip: 13})
	f("append a 0 0 11", seen{Refusal: LineTooLarge, Skip: 13})
	f("ms a 11 MA", seen{Refusal: LineTooLarge, Skip: 13, Drops: true})
	f("set a 0 0 2147483646", seen{Refusal: LineBadFormat})
	f("set a 0 0 4294967297", seen{Refusal: LineBadFormat})
	f("get a\x00b", seen{Refusal: LineBadFormat})
	f("get a b\x00", seen{Refusal: LineBadFormat})
	f("set a\x00 0 0 1", seen{Refusal: LineBadFormat, Skip: 3})
	f("set a 0 0 1\t\x00", seen{Refusal: LineBadFormat, Skip: 3})
	f("incr a 1\t\x00", seen{Refusal: LineBadFormat})
	f("delete a\x00", seen{Refusal: LineBadFormat})
	f("mg a O\x00", seen{Refusal: LineBadFormat})
	f("ms a 1 O\x00", seen{Refusal: LineBadFormat, Skip: 3})
}

// A line that does not end must not be kept for ever, but gets may be long.
func TestUnendedLine(t *testing.T) {
	f := func(line string, want Status) {
		t.Helper()
		var r Request
		p := Parser{MaxLine: 10_000}
		if n, status := p.Parse([]byte(line), &r); n != 0 || status != want {
			t.Errorf("%.20q, %d bytes: took %d, status %d; want %d", line, len(line), n, status, want)
		}
	}
	fill := func(start string, n int) string { return start + strings.Repeat("k", n-len(start)) }
	f(fill("set ", maxShortLine), Incomplete)
	f(fill("set ", maxShortLine+1), Hangup)
	f(fill("", maxShortLine+1), Hangup)
	f(fill("getx ", maxShortLine+1), Hangup)
	for _, verb := range []string{"get ", "gets ", "gat ", "gats ", "  get "} {
		f(fill(verb, 10_000), Incomplete)
		f(fill(verb, 10_001), Hangup)
	}
	var r Request
	if _, status := new(Parser).Parse([]byte(fill("get ", 1<<20)), &r); status != Incomplete {
		t.Errorf("without a limit: status %d", status)
	}
}

func TestParseNeeds(t *testing.T) {
	var r Request
	n, status := new(Parser).Parse([]byte("set a 0 0 100\r\nabc"), &r)
	if want := len("set a 0 0 100\r\n") + 102; n != 0 || status != Incomplete || r.Need != want {
		t.Errorf("took %d, status %d, needs %d; want %d", n, status, r.Need, want)
	}
	if _, status := new(Parser).Parse([]byte("get a"), &r); status != Incomplete || r.Need != 0 {
		t.Errorf("half a line: status %d, needs %d", status, r.Need)
	}
}

func TestRepeatable(t *testing.T) {
	f := func(request string, want bool) {
		t.Helper()
		var r Request
		if _, status := new(Parser).Parse([]byte(request+"\r\n"), &r); status != Complete {
			t.Fatalf("%q: status %d", request, status)
		}
		if got := r.Repeatable(); got != want {
			t.Errorf("%q: repeatable is %v", request, got)
		}
	}
	for _, read := range []string{"get a", "gets a b", "gat 1 a", "gats 1 a", "touch a 1", "mg a v", "mg a T30", "me a", "version", "stats"} {
		f(read, true)
	}
	for _, write := range []string{"mg a N3", "mg a v R3", "md a", "ma a", "incr a 1", "decr a 1", "delete a", "flush_all"} {
		f(write, false)
	}
	for v := Set; v <= Delete; v++ {
		if v.Repeatable() {
			t.Errorf("%v is repeatable", v)
		}
	}
}

func TestRouteKey(t *testing.T) {
	f := func(request, want string) {
		t.Helper()
		var r Request
		new(Parser).Parse([]byte(request+"\r\n"), &r)
		if got := string(r.RouteKey(make([]byte, MaxKey))); got != want {
			t.Errorf("%q goes by %q, want %q", request, got, want)
		}
	}
	f("get aGk=", "aGk=")
	f("mg aGk=", "aGk=")
	f("mg aGk= b", "hi")
	f("mg aGk= v b k", "hi")
	f("mg a b", "a")
	f("mg ==== b", "====")
	f("mg aGk b", "aGk")
	f("get a b", "a")
	f("mg "+strings.Repeat("AAAA", 62)+" b", strings.Repeat("\x00", 186))
}

// The decoded key never outgrows the room that RouteKey asks for.
func TestRouteKeyFits(t *testing.T) {
	for n := 1; n <= MaxKey; n++ {
		for _, c := range []string{"A", "=", "-", "\r"} {
			var r Request
			new(Parser).Parse([]byte("mg "+strings.Repeat(c, n)+" b\r\n"), &r)
			r.RouteKey(make([]byte, MaxKey))
		}
	}
}

// Forward into a buffer that is used again leaves what it gave before as it was told.
func TestForwardReusesScratch(t *testing.T) {
	scratch := make([]byte, 0, 64)
	var r Request
	for _, request := range []string{"incr a 1 noreply\r\n", "set b 0 0 1 noreply\r\nx\r\n"} {
		new(Parser).Parse([]byte(request), &r)
		got := r.Forward(scratch)
		if want := strings.Replace(request, "noreply", "", 1); string(got) != want || &got[0] != &scratch[:1][0] {
			t.Errorf("%q forwarded as %q", request, got)
		}
	}
	new(Parser).Parse([]byte("get a\r\n"), &r)
	if got := r.Forward(scratch); &got[0] == &scratch[:1][0] {
		t.Error("a request that is not quiet was copied")
	}
}

func TestVerbNames(t *testing.T) {
	for v := Get; v < NumVerbs; v++ {
		if got := verbOf([]byte(v.String())); got != v && v != Denied {
			t.Errorf("%q is read as %v", v.String(), got)
		}
	}
}
