package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/conformance"
)

// pair is one memcached and one router over three, to be told the same.
type pair struct{ plain, routed string }

// startPair starts the servers of a pair.
//
// The router answers lines that are wrong as memcached 1.6.18 does; with another release there is nothing to compare.
func startPair(tb testing.TB, args ...string) pair {
	tb.Helper()
	if behind := release(tb); behind != "1.6.18" {
		tb.Skipf("a router answers wrong lines like memcached 1.6.18, here is %s", behind)
	}
	plain := steadyBackends(tb, 1)[0]
	return pair{plain, startRouter(tb, steadyBackends(tb, 3), args...).addr}
}

// FuzzSession lets the fuzzer write whole sessions: the router must answer byte for byte as memcached does, however
// the bytes are cut up on their way.
func FuzzSession(f *testing.F) {
	p := startPair(f)
	for seed := range uint64(8) {
		f.Add(randomSource(seed, 60), seed)
	}
	f.Fuzz(func(t *testing.T, source []byte, seed uint64) {
		if len(source) > 2000 {
			return // long sessions find nothing that short ones do not
		}
		p.compare(t, source, seed)
	})
}

// TestRandomSessions is the bounded form of FuzzSession, the same in every run.
func TestRandomSessions(t *testing.T) {
	f := func(engine string, first, n uint64) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, "--engine", engine)
			for seed := first; seed < first+n && !t.Failed(); seed++ {
				p.compare(t, randomSource(seed, 400), seed)
			}
		})
	}
	f("auto", 1000, 150)
	f("portable", 2000, 50)
	f("uring", 3000, 100)
	f("epoll", 4000, 100)
}

func randomSource(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 2))
	source := make([]byte, n)
	for i := range source {
		source[i] = byte(random.Uint32())
	}
	return source
}

func (p pair) compare(t *testing.T, source []byte, seed uint64) {
	t.Helper()
	text := write(source)
	var replies [2]string
	for i, addr := range []string{p.plain, p.routed} {
		flush(t, addr)
		reply, err := converse(addr, pieces(text, seed))
		if err != nil {
			t.Fatalf("seed %d: %s: %v; after %.300q of %.300q", seed, addr, err, reply, text)
		}
		replies[i], _ = conformance.Mask(reply)
	}
	if replies[0] != replies[1] {
		t.Errorf("seed %d: %s", seed, explain(text, replies[0], replies[1]))
	}
}

// converse sends the pieces one by one, closes the sending half and returns everything that comes back.
func converse(addr string, pieces []string) (string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	sent := make(chan error, 1)
	go func() { sent <- sendAll(conn.(*net.TCPConn), pieces) }()
	var got bytes.Buffer
	_, err = io.Copy(&got, conn)
	if err != nil {
		return got.String(), fmt.Errorf("cannot read on: %w", err)
	}
	return got.String(), <-sent
}

func sendAll(conn *net.TCPConn, pieces []string) error {
	for _, piece := range pieces {
		if _, err := io.WriteString(conn, piece); err != nil {
			return fmt.Errorf("cannot send on: %w", err)
		}
	}
	return conn.CloseWrite()
}

// explain shows the requests, and both replies from shortly before they part.
func explain(text, plain, routed string) string {
	at := firstDifference(plain, routed)
	from := max(0, at-200)
	return fmt.Sprintf("replies part at byte %d:\nmemcached …%.400q\nrouter    …%.400q\nsession (long values shortened):\n%s",
		at, plain[min(from, len(plain)):], routed[min(from, len(routed)):], abridge(text))
}

// abridge quotes a session line by line, with long lines cut and repeated ones counted.
func abridge(text string) string {
	var out strings.Builder
	lines := strings.SplitAfter(text, "\r\n")
	for i := 0; i < len(lines); {
		line, n := lines[i], 1
		for i+n < len(lines) && lines[i+n] == line {
			n++
		}
		if i += n; len(line) > 120 {
			line = line[:100] + "…"
		}
		if fmt.Fprintf(&out, "%q", line); n > 1 {
			fmt.Fprintf(&out, " %d times", n)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
