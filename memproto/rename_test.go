package memproto

import (
	"testing"
)

func TestRenamedRequests(t *testing.T) {
	f := func(in, key, want string) {
		t.Helper()
		var p Parser
		var r Request
		if _, status := p.Parse([]byte(in), &r); status != Complete {
			t.Fatalf("%q is not whole", in)
		}
		if got := string(r.AppendRenamed(nil, []byte(key))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	f("get old\r\n", "new", "get new\r\n")
	f("get   old  \r\n", "new", "get   new  \r\n")
	f("get get\r\n", "x", "get x\r\n")
	f("gats 10 old\r\n", "new", "gats 10 new\r\n")
	f("set old 1 2 3 noreply\r\nabc\r\n", "longer", "set longer 1 2 3 noreply\r\nabc\r\n")
	f("mg old v k q O1\r\n", "new", "mg new v k q O1\r\n")
	f("ms old 2 T0\r\nab\r\n", "n", "ms n 2 T0\r\nab\r\n")
	f("mg b2xk b k v\r\n", "new", "mg bmV3 b k v\r\n")
	f("delete old\n", "new", "delete new\r\n")
	f("me old\r\n", "new", "me new\r\n")
}

func TestRepliesAboutAnotherKey(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(AppendReplyAbout(nil, []byte(in), []byte("mine"))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	f("VALUE theirs 0 3\r\nabc\r\nEND\r\n", "VALUE mine 0 3\r\nabc\r\nEND\r\n")
	f("VALUE theirs 0 3 77\r\nVA \r\nEND\r\n", "VALUE mine 0 3 77\r\nVA \r\nEND\r\n")
	f("END\r\n", "END\r\n")
	f("VA 3 kθ f1 Okay\r\nkkk\r\n", "VA 3 kmine f1 Okay\r\nkkk\r\n")
	f("HD b kdGhlaXJz O1\r\n", "HD b kbWluZQ== O1\r\n")
	f("EN\r\n", "EN\r\n")
	f("NS ktheirs\r\n", "NS kmine\r\n")
	f("ME theirs exp=-1 la=0\r\n", "ME mine exp=-1 la=0\r\n")
	f("STORED\r\n", "STORED\r\n")
	f("SERVER_ERROR kaput\r\n", "SERVER_ERROR kaput\r\n")
	f("5\r\n", "5\r\n")
}

func TestRenamingDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 200)
	reply, key := []byte("VA 3 ktheirs f1 b\r\nkkk\r\n"), []byte("mine")
	var p Parser
	var r Request
	p.Parse([]byte("mg theirs v k f\r\n"), &r)
	if n := testing.AllocsPerRun(100, func() {
		AppendReplyAbout(buf[:0], reply, key)
		r.AppendRenamed(buf[:0], key)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
