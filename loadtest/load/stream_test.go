//go:build linux

package load

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/loadtest/workload"

	"pgregory.net/rapid"
)

func TestWrappedConnectionsLoseWhatTheyOwe(t *testing.T) {
	f := func(last, want string) {
		t.Helper()
		p := small(serve(t, "tcp", "127.0.0.1:0", func(q request) string {
			if q.n == 10 { // the third of the third batch of four
				return last
			}
			if q.n > 10 {
				return ""
			}
			return miss(q)
		}))
		p.Connections, p.Wrap = 1, asIs
		r, err := open(t, p).Run(t.Context(), Extent{Requests: 100})
		if r.Requests() != 12 || r.Unanswered != 2 || r.Answered() != 10 {
			t.Errorf("counts %+v, want 12 sent and 2 of them unanswered", r.Counts)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one about %q", err, want)
		}
	}
	f("", "closed by the other side")
	f("VALUE lt:0000", "closed by the other side")
	f("BANANA\r\n", `not memcached's: "BANANA"`)
}

func TestWrappedConnectionToAStuckServerLosesRequests(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	p := small(serve(t, "tcp", "127.0.0.1:0", func(request) string { <-stuck; return "" }))
	p.Wrap = asIs
	s := open(t, p)
	for _, d := range s.drivers {
		d.(*stream).limit = 100 * time.Millisecond
	}
	r, err := s.Run(t.Context(), Extent{Requests: 1000})
	if r.Unanswered != r.Requests() || r.Unanswered != 32 {
		t.Errorf("counts %+v, want 32 requests and all of them unanswered", r.Counts)
	}
	if err == nil || !strings.Contains(err.Error(), "no reply in time") {
		t.Errorf("error is %v", err)
	}
}

func TestWhatCannotBeWrappedIsAnError(t *testing.T) {
	p := small(serve(t, "tcp", "127.0.0.1:0", miss))
	p.Wrap = func(net.Conn) (net.Conn, error) { return nil, errors.New("no handshake") }
	if _, err := Dial(t.Context(), p); err == nil || !strings.Contains(err.Error(), "cannot use "+p.Target+" as target: no handshake") {
		t.Errorf("error is %v", err)
	}
}

// answering serves what a plan with the given value size asks, from Answers.
func answering(t *testing.T, p Plan) string {
	t.Helper()
	a, err := NewAnswers(p)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answer(conn, a)
		}
	}()
	return l.Addr().String()
}

func answer(conn net.Conn, a *Answers) {
	defer conn.Close()
	var in, out []byte
	chunk := make([]byte, 4096)
	for {
		n, err := conn.Read(chunk)
		if err != nil {
			return
		}
		in = append(in, chunk[:n]...)
		var taken int
		if out, taken, err = a.Append(out[:0], in); err != nil {
			return
		}
		in = in[taken:]
		conn.Write(out)
	}
}

func TestAnswersAreTheRightOnes(t *testing.T) {
	for _, size := range []int{0, 5, 100, 9000} {
		p := small("x")
		p.ValueSize = workload.Fixed(size)
		p.Target = answering(t, p)
		r, err := open(t, p).Run(t.Context(), Extent{Requests: 3000})
		if err != nil || r.Hits != r.Gets || r.Stored != r.Sets || r.Answered() != 3000 {
			t.Errorf("size %d: counts %+v, %v", size, r.Counts, err)
		}
	}
}

func TestAnswersAreTheSameHoweverTheRequestsAreSplit(t *testing.T) {
	p := small("x")
	a, err := NewAnswers(p)
	if err != nil {
		t.Fatal(err)
	}
	d := text{newKeyspace(p)}
	stream := d.appendSet(d.appendGet(d.appendGet([]byte(askVersion), []call{{key: 3}}), []call{{key: 199}}), call{key: 7})
	want, _, err := a.Append(nil, stream)
	if err != nil || bytes.Count(want, []byte("END\r\n")) != 2 || !bytes.HasSuffix(want, []byte("STORED\r\n")) {
		t.Fatalf("%q, %v", want, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var in, out []byte
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "read")
			in, rest = append(in, rest[:n]...), rest[n:]
			var taken int
			var err error
			if out, taken, err = a.Append(out, in); err != nil {
				t.Fatal(err)
			}
			in = in[taken:]
		}
		if !bytes.Equal(out, want) || len(in) != 0 {
			t.Fatalf("answered %q and left %q, want %q", out, in, want)
		}
	})
}

func TestAnswersRefuseWhatTheLoadNeverAsks(t *testing.T) {
	a, err := NewAnswers(small("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"GET / HTTP/1.1\r\n", "get lt:00000200\r\n", "get lt:0000000x\r\n", "delete lt:00000001\r\n"} {
		if out, _, err := a.Append(nil, []byte(in)); err == nil {
			t.Errorf("%q was answered %q", in, out)
		}
	}
	if _, err := NewAnswers(Plan{}); err == nil {
		t.Error("answers were laid out for no plan")
	}
}

func TestAnswersAllocateNothing(t *testing.T) {
	a, err := NewAnswers(small("x"))
	if err != nil {
		t.Fatal(err)
	}
	d, out := text{spaceOf(200, "100")}, make([]byte, 0, 4096)
	in := d.appendSet(d.appendGet(nil, []call{{key: 3}}), call{key: 7})
	if n := testing.AllocsPerRun(100, func() { a.Append(out, in) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
