package memproto

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

func TestOutcomeOf(t *testing.T) {
	f := func(v Verb, reply string, want Outcome) {
		t.Helper()
		if got := OutcomeOf(v, []byte(reply)); got != want {
			t.Errorf("the outcome of %q to %s is %s, want %s", reply, v, got, want)
		}
		if want != Done && !v.May(want) {
			t.Errorf("%s may not be %s", v, want)
		}
	}
	for _, v := range []Verb{Get, Gets, Gat, Gats} {
		f(v, "VALUE k 0 1\r\n1\r\nEND\r\n", Hit)
		f(v, "END\r\n", Miss)
	}
	f(MetaGet, "HD\r\n", Hit)
	f(MetaGet, "VA 1 s1\r\n1\r\n", Hit)
	f(MetaGet, "EN\r\n", Miss)
	f(MetaSet, "HD O1\r\n", Stored)
	f(MetaSet, "NS\r\n", NotStored)
	f(MetaDelete, "NF\r\n", NotFound)
	for v := range NumVerbs {
		for _, reply := range []string{"ERROR\r\n", "SERVER_ERROR out of memory\r\n", "CLIENT_ERROR bad\r\n"} {
			if got := OutcomeOf(v, []byte(reply)); got != Faulty {
				t.Errorf("the outcome of %q to %s is %s", reply, v, got)
			}
		}
	}
	for _, v := range []Verb{Stats, Version, FlushAll, MetaNoop} {
		for _, reply := range []string{"", "END\r\n", "STAT a 1\r\nEND\r\n", "VERSION 1\r\n", "OK\r\n", "RESET\r\n", "MN\r\n", "N", "E"} {
			f(v, reply, Done)
		}
	}
}

// Real memcached's replies, each read as what it is.
func TestOutcomesOfMemcached(t *testing.T) {
	c, err := net.Dial("tcp", memcachedtest.Start(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	var p Parser
	f := func(request string, want Outcome) {
		t.Helper()
		var q Request
		if _, status := p.Parse([]byte(request), &q); status != Complete {
			t.Fatalf("%q is not a request", request)
		}
		fmt.Fprint(c, request)
		var reply []byte
		for u := (Unit{}); u.Size == 0; {
			b, err := r.ReadByte()
			if err != nil {
				t.Fatal(err)
			}
			if reply = append(reply, b); b == '\n' {
				if u, err = NextUnit(reply, q.Verb, true); err != nil {
					t.Fatalf("%q to %q: %v", reply, request, err)
				}
			}
		}
		if got := OutcomeOf(q.Verb, reply); got != want || !q.Verb.May(want) {
			t.Errorf("the outcome of %q to %q is %s, want %s", reply, request, got, want)
		}
	}
	for _, verb := range strings.Fields("get gets mg") {
		f(verb+" k\r\n", Miss)
	}
	f("gat 9 k\r\n", Miss)
	f("gats 9 k\r\n", Miss)
	for _, verb := range strings.Fields("replace append prepend") {
		f(verb+" k 0 0 1\r\n1\r\n", NotStored)
	}
	f("cas k 0 0 1 1\r\n1\r\n", NotFound)
	f("incr k 1\r\n", NotFound)
	f("decr k 1\r\n", NotFound)
	f("delete k\r\n", NotFound)
	f("touch k 1\r\n", NotFound)
	f("me k\r\n", Miss)
	f("ms k 1 MR\r\n1\r\n", NotStored)
	f("md k\r\n", NotFound)
	f("ma k\r\n", NotFound)
	f("set k 0 0 1\r\n1\r\n", Stored)
	f("add k 0 0 1\r\n1\r\n", NotStored)
	f("cas k 0 0 1 0\r\n1\r\n", Exists)
	f("ms k 1 C99\r\n1\r\n", Exists)
	f("md k C99\r\n", Exists)
	f("ma k\r\n", Stored)
	f("ma k v\r\n", Stored)
	for _, verb := range strings.Fields("get gets mg me") {
		f(verb+" k\r\n", Hit)
	}
	f("mg k v\r\n", Hit)
	f("gat 9 k\r\n", Hit)
	f("gats 9 k\r\n", Hit)
	f("incr k 1\r\n", Stored)
	f("decr k 1\r\n", Stored)
	f("touch k 100\r\n", Touched)
	f("delete k\r\n", Deleted)
	f("ms k 1\r\n1\r\n", Stored)
	f("md k\r\n", Deleted)
	f("set k 0 0 1\r\na\r\n", Stored)
	f("incr k 1\r\n", Faulty)
}

func TestWrites(t *testing.T) {
	var got []string
	for v := range NumVerbs {
		if v.Writes() {
			got = append(got, v.String())
		}
	}
	if got, want := strings.Join(got, " "), "set add replace append prepend cas incr decr delete touch ms md ma"; got != want {
		t.Errorf("verbs that write are %s, want %s", got, want)
	}
}
