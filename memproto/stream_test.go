package memproto

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// testMaxValue makes values too large early.
const testMaxValue = 40

// failer is a test, a fuzzer or a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// reader is what a router does with a parser: it keeps what was not taken, waits until
// there is enough, and drops what belongs to refused requests.
type reader struct {
	t       failer
	parser  Parser
	buf     []byte
	need    int // as Parse has said
	skip    int
	patient bool // does not ask before need is there
	all     []seen
	hungUp  bool
}

func (d *reader) feed(chunk string) {
	d.buf = append(d.buf, chunk...)
	for !d.hungUp {
		n := min(d.skip, len(d.buf))
		d.skip -= n
		d.buf = d.buf[n:]
		if d.skip > 0 || len(d.buf) == 0 || d.patient && len(d.buf) < d.need || !d.step() {
			return
		}
	}
}

// step takes one request; false means that it is not whole.
func (d *reader) step() bool {
	d.t.Helper()
	var r Request
	n, status := d.parser.Parse(d.buf, &r)
	switch {
	case n < 0 || n > len(d.buf):
		d.t.Fatalf("%q: took %d of %d bytes", d.buf, n, len(d.buf))
	case status == Incomplete && (n != 0 || r.Need != 0 && r.Need <= len(d.buf)):
		d.t.Fatalf("%q: incomplete, took %d and needs %d", d.buf, n, r.Need)
	case status != Incomplete && len(d.buf) < d.need:
		d.t.Fatalf("%q: needed only %d bytes, not %d", d.buf, len(d.buf), d.need)
	case (status == Complete || status == Refused) && n == 0:
		d.t.Fatalf("%q: status %d took nothing", d.buf, status)
	}
	d.need = r.Need
	if status == Incomplete {
		return false
	}
	d.need = 0
	d.all = append(d.all, look(&r, status))
	d.hungUp = status == Hangup
	d.skip = r.Skip
	d.buf = d.buf[n:]
	return true
}

// look copies what counts of a request.
func look(r *Request, status Status) seen {
	if status == Refused {
		return seen{Status: status, Refusal: r.Refusal, Skip: r.Skip, Drops: r.Drops}
	}
	if status == Hangup {
		return seen{Status: status}
	}
	e := seen{
		Status: status, Verb: r.Verb, Data: string(r.Data),
		Forward: string(r.Forward(nil)), NoReply: r.NoReply, Base64: r.Base64, Vivify: r.Vivify,
	}
	switch {
	case r.Keys != nil:
		for w, rest := NextWord(r.Keys); len(w) > 0; w, rest = NextWord(rest) {
			e.Keys = append(e.Keys, string(w))
		}
	case r.Key != nil:
		e.Keys = []string{string(r.Key)}
	}
	return e
}

// split cuts a stream into chunks whose sizes are the bytes of cuts, in turn.
func split(stream string, cuts []byte) (chunks []string) {
	for i := 0; len(stream) > 0; i++ {
		n := len(stream)
		if len(cuts) > 0 {
			n = min(n, 1+int(cuts[i%len(cuts)])%97)
		}
		chunks = append(chunks, stream[:n])
		stream = stream[n:]
	}
	return chunks
}

// overlong reports whether a line is so long that it matters how it arrives: memcached
// gives up on one that has not ended in time.
func overlong(stream string) bool {
	for line := range strings.SplitSeq(stream, "\n") {
		if len(line) > maxShortLine {
			return true
		}
	}
	return false
}

// readAll reads a stream in chunks, asking whenever something has come or, patiently,
// when what was needed has.
func readAll(t failer, chunks []string, patient bool) []seen {
	t.Helper()
	d := reader{t: t, parser: Parser{MaxValue: testMaxValue}, patient: patient}
	for _, c := range chunks {
		d.feed(c)
	}
	return d.all
}

// checkStream reads a stream whole and in pieces and compares with the reference.
func checkStream(t failer, stream string, cuts []byte) {
	t.Helper()
	whole := readAll(t, split(stream, nil), false)
	pieces := readAll(t, split(stream, cuts), false)
	patient := readAll(t, split(stream, cuts), true)
	if overlong(stream) {
		return
	}
	want := (&reference{stream: stream, maxValue: testMaxValue}).all()
	for i, got := range [][]seen{whole, pieces, patient} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q read %s (-want +got):\n%s", stream, []string{"whole", "split", "patiently"}[i], diff)
		}
	}
	for _, e := range whole {
		checkNeverQuiet(t, e)
	}
}

// checkNeverQuiet parses again what a backend gets: it must ask for a reply.
func checkNeverQuiet(t failer, e seen) {
	t.Helper()
	if e.Status != Complete || !e.NoReply {
		return
	}
	var again Request
	_, status := new(Parser).Parse([]byte(e.Forward), &again)
	if status == Complete && again.NoReply {
		t.Fatalf("a backend gets a quiet request: %q", e.Forward)
	}
}

// conversations are streams of requests of every shape, good and bad.
var conversations = []string{
	"get a\r\nget a  b \r\ngets a a\ngat 10 a b\r\ngats -1 a\r\n",
	"set a 0 0 5\r\nhello\r\nadd b 1 -1 0 noreply\r\n\r\nget a\r\n",
	"cas a 0 0 3 77 noreply\r\na\r\n\r\nappend a 0 0 1\r\nx\r\nprepend a 0 0 1 NOREPLY\r\nx\r\n",
	"incr n 1\r\ndecr n 1 noreply\r\ntouch a 10\r\ntouch a noreply\r\ntouch a noreply noreply\r\ndelete a\r\ndelete a 0 noreply\r\n",
	"mg a v\r\nmg a q v k\r\nms a 3 q T0\r\nabc\r\nmd a q2 O1\r\nma n N0 q\r\nme a\r\nmn\r\n",
	"mg AA== b k N9 R3\r\nms AA== 1 b\r\nx\r\nmg a q q\r\nma a q q\r\nme a q q\r\n",
	"version\r\nverbosity 1\r\nflush_all 0 noreply\r\nstats \r\nquit x\r\nlru tune\r\nshutdown\r\n",
	"set a 0 0 500\r\n" + strings.Repeat("v", 500) + "\r\nms a 500\r\n" + strings.Repeat("v", 500) + "\r\nget a\r\n",
	"set " + strings.Repeat("k", 251) + " 0 0 3 noreply\r\nabc\r\nset a x 0 3\r\nabc\r\nget a\r\n",
	"set a 0 0 3\r\nabcdef\r\nset a 0 0 3\nabc\nget a\r\nset a 0 0 x\r\nset a 0 0 -1 noreply\r\n",
	"get\r\nget " + strings.Repeat("k", 251) + " a\r\nget a\x00b\r\ngat 10\r\ngat x a\r\n\r\n\n \r\nx\r\nGET a\r\n",
	" get a\r\n\tget a\r\nget a\tb\r\nget a\r\r\ndelete a 5\r\ndelete a 0 0\r\ndelete a 5 noreply\r\n",
	"mg a 1 2 3 4 5 6 7 8 9 a c d e f g h i j\r\nms a 1 1 2 3 4 5 6 7 8 9 a c d e f g h i j\r\nx\r\nms a S1\r\nms a\r\n",
	"get a\r\nGET / HTTP/1.1\r\nget a\r\n",
}

func FuzzParse(f *testing.F) {
	for _, s := range conversations {
		f.Add(s, []byte{0, 6, 1, 30})
	}
	f.Fuzz(func(t *testing.T, stream string, cuts []byte) { checkStream(t, stream, cuts) })
}

// Every stream in every way to cut it in two, and byte by byte.
func TestSplitReads(t *testing.T) {
	for _, s := range conversations {
		checkStream(t, s, []byte{0})
		want := readAll(t, []string{s}, false)
		for i := range s {
			if diff := cmp.Diff(want, readAll(t, []string{s[:i], s[i:]}, true)); diff != "" {
				t.Fatalf("cut at %d of %q (-whole +cut):\n%s", i, s, diff)
			}
		}
	}
}

// anyOf draws each of up to 64 values about as often as the others; rapid by itself
// prefers the first and the last.
func anyOf[T any](values []T) *rapid.Generator[T] {
	bits := rapid.SliceOfN(rapid.Bool(), 8, 8)
	return rapid.Custom(func(t *rapid.T) T {
		n := 0
		for _, bit := range bits.Draw(t, "bits") {
			n *= 2
			if bit {
				n++
			}
		}
		return values[n%len(values)]
	})
}

// lines draws streams of lines that are nearly right: the fuzzer needs long to find
// them, and all the decisions are in them.
func lines() *rapid.Generator[string] {
	names := append(slices.Sorted(maps.Keys(wordLimits)), "", "G", "mget", "GET", "HTTP/1.1")
	word := rapid.OneOf(
		anyOf([]string{
			"k", "0", "1", "3", "-1", "-0", "+2", "41", "noreply", "q", "q1", "b", "N900", "R", "v", "Oq", "k", "a\x00b", "AA==", "S1",
			"4294967296", "9223372036854775808", "-9223372036854775808", "18446744073709551615", "-18446744073709551615",
			"1\t-", "\t5", "\t", "1x", "HTTP/1.0", strings.Repeat("k", 250), strings.Repeat("k", 251),
		}),
		rapid.StringN(1, 8, 8))
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString(anyOf([]string{"", "", "", " "}).Draw(t, "lead"))
		b.WriteString(anyOf(names).Draw(t, "verb"))
		most := anyOf([]int{2, 4, 5, 6, 7, 24}).Draw(t, "most")
		for _, w := range rapid.SliceOfN(word, 0, most).Draw(t, "words") {
			b.WriteString(anyOf([]string{" ", " ", " ", "  "}).Draw(t, "gap"))
			b.WriteString(w)
		}
		b.WriteString(anyOf([]string{"\r\n", "\r\n", "\r\n", "\n", " \r\n", "\r\r\n"}).Draw(t, "end"))
		b.WriteString(anyOf([]string{"", "x\r\n", "abc\r\n", "abcd\n", "\r\n"}).Draw(t, "block"))
		return b.String()
	})
}

func TestParseAgreesWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := strings.Join(rapid.SliceOfN(lines(), 1, 6).Draw(t, "lines"), "")
		checkStream(t, stream, rapid.SliceOfN(rapid.Byte(), 1, 5).Draw(t, "cuts"))
	})
}
