package memproto

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// twins are two servers that are told the same, but for reads: one is asked as a client
// would, the other in the words of a flight.
type twins struct{ plain, shared *server }

func newTwins(t testing.TB) *twins {
	t.Helper()
	a, b := memcachedtest.Start(t, memcachedtest.Steady...), memcachedtest.Start(t, memcachedtest.Steady...)
	return &twins{connect(t, a.Addr()), connect(t, b.Addr())}
}

// states are what an item may be, and the requests that make it so. In none of them is it
// near its end, so that all stay as they are while a test looks.
var states = []struct{ name, requests string }{
	{"missing", "delete k\r\n"},
	{"plain", "set k 7 0 5\r\nvalue\r\n"},
	{"empty", "set k 0 0 0\r\n\r\n"},
	{"of two lines", "ms k 10 F4294967295\r\nEND\r\nVA 1\r\n\r\n"},
	{"stale", "set k 7 0 5\r\nvalue\r\nmd k I T30000\r\n"},
	{"stale and won", "set k 7 0 5\r\nvalue\r\nmd k I T30000\r\nmg k v\r\n"},
	{"won near its end", "set k 7 20000 5\r\nvalue\r\nmg k R30000\r\n"},
	{"vivified", "delete k\r\nmg k N30000 v\r\n"},
}

func (w *twins) make(requests string) {
	w.plain.ask(requests)
	w.shared.ask(requests)
}

// reform answers a request out of the reply to a get that was made for parts, and for what
// the request wants.
func (w *twins) reform(t failer, r *Request, parts Parts) string {
	t.Helper()
	ask, verb := (parts | r.Parts()).AppendAsk(nil, []byte("k"))
	reply := []byte(w.shared.askOne(t, verb, string(ask)))
	found, ok := ParseFound(reply)
	switch {
	case ok:
		return string(found.AppendReply(nil, r.Verb, r.Line, r.Key))
	case !Missed(reply):
		t.Fatalf("%q is answered %q", ask, reply)
	case r.Verb == MetaGet:
		return string(AppendMetaMiss(nil, r.Line))
	}
	return "END\r\n"
}

// sameTTL puts a range in the place of a time that passes.
func sameTTL(reply string) string {
	for _, t := range []string{" t20000", " t19999", " t19998", " t30000", " t29999", " t29998", " t29997"} {
		reply = strings.Replace(reply, t+" ", t[:2]+"* ", 1)
		reply = strings.Replace(reply, t+"\r\n", t[:2]+"*\r\n", 1)
	}
	return reply
}

func parse(t failer, request string) *Request {
	t.Helper()
	r := new(Request)
	if n, status := new(Parser).Parse([]byte(request), r); status != Complete || n != len(request) {
		t.Fatalf("%q is not understood", request)
	}
	return r
}

// Whatever else a flight asks for, each get is answered byte for byte as by memcached.
func TestReformAsMemcached(t *testing.T) {
	w := newTwins(t)
	requests := []string{"get k", "gets k", "get  k ", "mg k v", "mg k v f", "mg k f v t", "mg k Oxyz c v f", "mg k t s c k f v O1", "mg k k v O", "mg k v s fignored"}
	for _, state := range states {
		for _, parts := range []Parts{0, MetaValue, ClassicItem | ClassicCAS, ClassicItem | MetaValue | MetaFlags, ClassicCAS | MetaValue | MetaTTL, MetaValue | MetaCAS | MetaFlags | MetaTTL} {
			for _, request := range requests {
				r := parse(t, request+"\r\n")
				if r.Parts() == 0 {
					t.Fatalf("%q shares nothing", request)
				}
				if r.Verb != MetaGet && (parts | r.Parts()).Meta() && strings.HasPrefix(state.name, "stale") {
					continue // takes the token: see the router's tests
				}
				w.make(state.requests)
				want := w.plain.ask(request + "\r\n")
				if got := w.reform(t, r, parts); sameTTL(got) != sameTTL(want) {
					t.Errorf("%s: %q, asked with %06b, is answered %q, memcached says %q", state.name, request, parts, got, want)
				}
				w.plain.ask("delete k\r\n")
				w.shared.ask("delete k\r\n")
			}
		}
	}
}

// What memcached would refuse, or what does more than read, must be asked by itself.
func TestWhatSharesNothing(t *testing.T) {
	for _, request := range []string{
		"mg k", "mg k f", "mg k v v", "mg k v f f", "mg k v k k", "mg k v b", "mg k v N30", "mg k v R30", "mg k v T0", "mg k v h", "mg k v l",
		"mg k v E5", "mg k v x", "mg k v O" + strings.Repeat("o", 32), "gat 0 k", "touch k 0", "incr k 1", "me k", "delete k",
	} {
		r := parse(t, request+"\r\n")
		if p := r.Parts(); p != 0 {
			t.Errorf("%q wants %06b", request, p)
		}
	}
	if r := parse(t, "mg k v O"+strings.Repeat("o", 31)+"\r\n"); r.Parts() == 0 {
		t.Error("a long opaque shares nothing")
	}
}

func TestParts(t *testing.T) {
	for request, want := range map[string]struct {
		parts    Parts
		copyable bool
		meta     bool
	}{
		"get k":          {ClassicItem, true, false},
		"gets k":         {ClassicItem | ClassicCAS, false, false},
		"mg k v":         {MetaValue, false, true},
		"mg k v f q O1":  {MetaValue | MetaFlags, true, true},
		"mg k f v c":     {MetaValue | MetaFlags | MetaCAS, false, true},
		"mg k f v t s k": {MetaValue | MetaFlags | MetaTTL, false, true},
	} {
		p := parse(t, request+"\r\n").Parts()
		if p != want.parts || p.Copyable() != want.copyable || p.Meta() != want.meta {
			t.Errorf("%q wants %06b, copyable %v, meta %v", request, p, p.Copyable(), p.Meta())
		}
	}
}

func TestHasOpaque(t *testing.T) {
	for line, want := range map[string]bool{"mg k v O1": true, "mg O1 v": false, "mg k O v": true, "mg k v": false, "mg O O": true, "mg k kO": false} {
		if got := HasOpaque([]byte(line)); got != want {
			t.Errorf("%q has an opaque: %v", line, got)
		}
	}
}

func TestFoundOnlyInWholeReplies(t *testing.T) {
	for _, reply := range []string{
		"", "\n", "END\r\n", "EN\r\n", "HD f1\r\n", "VA", "VA 3\r\nab\r\n", "VA x\r\nabc\r\n", "VA -1\r\n\r\n", "VALUE k 0\r\n\r\n", "VALUE k 0 5\r\nabc\r\n",
		"VA 18446744073709551615\r\nabc\r\n", "VALUE k 0 18446744073709551614\r\nabc\r\nEND\r\n", "SERVER_ERROR x\r\n",
	} {
		if f, ok := ParseFound([]byte(reply)); ok {
			t.Errorf("%q has %q", reply, f.Value)
		}
	}
}

// Any meta get that may share a flight is answered as memcached does.
func FuzzReform(f *testing.F) {
	for _, flags := range []string{"v", "v f", "t f v s c k Oabc", "v q", "v  k", "v O", "v f0", "v v", "v s s1", "v\tf", "v Oa Ob"} {
		f.Add(flags, uint8(2), uint8(1))
	}
	w := newTwins(f)
	f.Fuzz(func(t *testing.T, flags string, parts, state uint8) {
		request := "mg k " + flags + "\r\n"
		r := new(Request)
		n, status := new(Parser).Parse([]byte(request), r)
		if status != Complete || n != len(request) || r.Parts() == 0 {
			return
		}
		w.plain.t, w.shared.t = t, t
		s := &states[int(state)%len(states)]
		w.make(s.requests)
		want := w.plain.ask(request)
		got := w.reform(t, r, Parts(parts)&(MetaValue|MetaFlags|MetaCAS|MetaTTL))
		if r.NoReply && Quiet(MetaGet, []byte(got)) {
			got = ""
		}
		if sameTTL(got) != sameTTL(want) {
			t.Errorf("%s: %q is answered %q, memcached says %q", s.name, request, got, want)
		}
		w.make("delete k\r\n")
	})
}

// What is read of any bytes lies within them, and can be told in every form.
func FuzzParseFound(f *testing.F) {
	for _, s := range []string{"VALUE k 0 1 7\r\nx\r\nEND\r\n", "VA 1 f5 c7 t-1 W\r\nx\r\n", "VA 0 Z X\r\n\r\n", "VA 1\r\n\n\r\n", "EN\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		found, ok := ParseFound(reply)
		if !ok {
			return
		}
		for verb, line := range map[Verb]string{Get: "get k", Gets: "gets k", MetaGet: "mg k k v f c t s O1"} {
			if verb != MetaGet && (len(found.Flags) == 0 || len(found.CAS) == 0) {
				continue // was not asked for what the form tells
			}
			b := found.AppendReply(nil, verb, []byte(line), []byte("k"))
			again, ok := ParseFound(b)
			if !ok || string(again.Value) != string(found.Value) {
				t.Errorf("%q becomes %q of %q", fmt.Sprint(found), b, reply)
			}
		}
	})
}
