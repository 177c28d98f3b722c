package memproto

import (
	"bytes"
	"strings"
	"testing"
)

const key24 = "user:profile:00000001234"

// hotRequests are the ones that come by the million; hotReplies what is answered.
var hotRequests = map[string][]byte{
	"get":      []byte("get " + key24 + "\r\n"),
	"set":      []byte("set " + key24 + " 0 300 100\r\n" + strings.Repeat("v", 100) + "\r\n"),
	"noreply":  []byte("set " + key24 + " 0 300 100 noreply\r\n" + strings.Repeat("v", 100) + "\r\n"),
	"mg":       []byte("mg " + key24 + " v f t k q O123\r\n"),
	"mgBase64": []byte("mg aGVsbG8= b v\r\n"),
	"get100":   []byte("get" + strings.Repeat(" "+key24, 100) + "\r\n"),
	"refused":  []byte("set " + key24 + " x 300 100\r\n"),
}

var hotReplies = []struct {
	name  string
	verb  Verb
	reply []byte
}{
	{"miss", Get, []byte("END\r\n")},
	{"hit", Get, []byte("VALUE " + key24 + " 0 100\r\n" + strings.Repeat("v", 100) + "\r\nEND\r\n")},
	{"stored", Set, []byte("STORED\r\n")},
	{"VA", MetaGet, []byte("VA 100 f0 t-1\r\n" + strings.Repeat("v", 100) + "\r\n")},
	{"fault", Set, []byte("SERVER_ERROR out of memory storing object\r\n")},
	{"bad", Set, []byte("WHAT\r\n")},
}

func TestParseDoesNotAllocate(t *testing.T) {
	p := Parser{MaxValue: 1 << 20, MaxLine: 1 << 20}
	var r Request
	key, scratch := make([]byte, MaxKey), make([]byte, 0, 1<<10)
	for name, b := range hotRequests {
		allocs := testing.AllocsPerRun(100, func() {
			p.Parse(b, &r)
			r.RouteKey(key)
			scratch = r.Forward(scratch)[:0]
			p.Parse(b[:len(b)/2], &r)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
		scratch = make([]byte, 0, 1<<10) // Forward may have given a part of b
	}
}

func TestNextUnitDoesNotAllocate(t *testing.T) {
	for _, c := range hotReplies {
		allocs := testing.AllocsPerRun(100, func() {
			NextUnit(c.reply, c.verb, true)
			NextUnit(c.reply[:len(c.reply)-1], c.verb, true)
			ValueKey(c.reply)
			Quiet(c.verb, c.reply)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", c.name, allocs)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"get", "set", "noreply", "mg", "mgBase64", "get100"} {
		request := hotRequests[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(request)))
			p := Parser{MaxValue: 1 << 20, MaxLine: 1 << 20}
			var r Request
			for b.Loop() {
				p.Parse(request, &r)
			}
		})
	}
}

func BenchmarkNextUnit(b *testing.B) {
	for _, c := range hotReplies {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.reply)))
			for b.Loop() {
				NextUnit(c.reply, c.verb, true)
			}
		})
	}
}

// BenchmarkSlowLine is a long line that comes 64 KiB at a time, as a loop reads it: the
// cost must not grow with the square of its length beyond what a scan of memory takes.
func BenchmarkSlowLine(b *testing.B) {
	line := append(bytes.Repeat([]byte(key24+" "), (1<<20)/25), "\r\n"...)
	copy(line, "get ")
	p := Parser{MaxLine: 2 << 20}
	var r Request
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		for end := 64 << 10; end < len(line); end += 64 << 10 {
			p.Parse(line[:end], &r)
		}
		p.Parse(line, &r)
	}
}
