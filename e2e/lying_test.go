package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// liar is a backend that answers every get with a value made from the key, but one of them, once, with what it is
// given.
type liar struct {
	wg sync.WaitGroup

	mu   sync.Mutex
	lie  string // for the next get; then empty
	hang bool   // whether to keep the connection open after the lie and say no more
}

// startLiar listens at an address of its own until the test ends.
func startLiar(tb testing.TB) (*liar, string) {
	tb.Helper()
	l := &liar{}
	addr := memcachedtest.Reserve(tb)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	l.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			l.wg.Go(func() { l.serve(conn) })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		l.wg.Wait()
	})
	return l, addr
}

// tell sets the lie for the next get.
func (l *liar) tell(lie string, hang bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie, l.hang = lie, hang
}

func (l *liar) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		reply, hang := l.reply(strings.Fields(line))
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
		if hang {
			io.Copy(io.Discard, r)
			return
		}
	}
}

func (l *liar) reply(words []string) (reply string, hang bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(words) == 0 || words[0] != "get":
		return "ERROR\r\n", false
	case l.lie != "":
		reply, hang = l.lie, l.hang
		l.lie = ""
		return reply, hang
	}
	var b strings.Builder
	for _, key := range words[1:] {
		fmt.Fprintf(&b, "VALUE %s 0 %d\r\n%s\r\n", key, len(valueOf(key)), valueOf(key))
	}
	return b.String() + "END\r\n", false
}

func valueOf(key string) string { return "value of " + key }

// TestLyingBackend has a backend answer one get in a way that makes no sense, while others wait behind it. The client
// gets an error or, as reads are asked again, the truth; never the lie, and nothing is out of step afterwards.
func TestLyingBackend(t *testing.T) {
	for _, join := range []string{"false", "true"} {
		t.Run("join_gets "+join, func(t *testing.T) { testLyingBackend(t, join) })
	}
}

func testLyingBackend(t *testing.T, join string) {
	l, addr := startLiar(t)
	r := startConfigured(t, []string{addr}, "timeout: 500ms", "join_gets: "+join)
	f := func(name, lie string, hang bool) {
		t.Run(name, func(t *testing.T) {
			c, other := connect(t, r.addr), connect(t, r.addr)
			waitFor(t, "an honest reply", func() error {
				_, err := c.get("before")
				return err
			})
			l.tell(lie, hang)
			c.send("get k1\r\nget k2\r\nget k3 k4\r\n")
			other.send("get o1\r\nget o2\r\n")
			checkReplies(t, c, [][]string{{"k1"}, {"k2"}, {"k3", "k4"}})
			checkReplies(t, other, [][]string{{"o1"}, {"o2"}})
			for i := range 20 {
				key := fmt.Sprintf("after%d", i)
				waitFor(t, "honest replies again", func() error {
					values, err := c.get(key)
					if err != nil {
						return err
					}
					if values[key] != valueOf(key) || len(values) != 1 {
						t.Fatalf("get %s gives %q", key, values)
					}
					return nil
				})
			}
		})
	}
	f("another key", "VALUE other 0 3\r\nlie\r\nEND\r\n", false)
	f("length too long", "VALUE k1 0 300\r\nlie\r\nEND\r\n", false)
	f("length too long, then silence", "VALUE k1 0 300\r\nlie\r\nEND\r\n", true)
	f("length too short", "VALUE k1 0 1\r\nlie\r\nEND\r\n", false)
	f("negative length", "VALUE k1 0 -3\r\nlie\r\nEND\r\n", false)
	f("absurd length", "VALUE k1 0 99999999999999999999\r\nlie\r\nEND\r\n", false)
	f("length beyond every limit", "VALUE k1 0 2147483648\r\nlie\r\nEND\r\n", false)
	f("no length", "VALUE k1 0\r\nlie\r\nEND\r\n", false)
	f("no flags", "VALUE k1\r\nlie\r\nEND\r\n", false)
	f("reply of a set", "STORED\r\n", false)
	f("a number", "42\r\n", false)
	f("meta reply", "VA 3\r\nlie\r\n", false)
	f("half a line, then silence", "VALUE k", true)
	f("silence", "\x00", true)
	f("line without end", strings.Repeat("x", 100000), true)
	if join == "false" { // else the value is taken as soon as it is there, and nothing is wrong with it
		f("a key too many", "VALUE k1 0 3\r\nlie\r\nVALUE x 0 3\r\nlie\r\nEND\r\n", false)
		f("no end, then silence", "VALUE k1 0 3\r\nlie\r\n", true)
	}
	f("bare line feeds", "VALUE k1 0 3\nlie\nEND\n", false)
}

// checkReplies reads a reply for each get: the values of its keys, or SERVER_ERROR.
func checkReplies(t *testing.T, c *client, gets [][]string) {
	t.Helper()
	c.conn.SetDeadline(time.Now().Add(patience))
	for _, keys := range gets {
		values, err := c.values()
		if failed(err) {
			continue
		}
		if err != nil || len(values) != len(keys) {
			t.Fatalf("get %v gives %q, %v", keys, values, err)
		}
		for _, key := range keys {
			if values[key] != valueOf(key) {
				t.Fatalf("get %v gives %q", keys, values)
			}
		}
	}
}

// TestFullBackend has the backend turn connections away with a line that nobody asked for, as memcached does when it
// has too many.
func TestFullBackend(t *testing.T) {
	addr := memcachedtest.Reserve(t)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "ERROR Too many open connections\r\n")
			conn.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	r := startRouter(t, []string{addr})
	c := connect(t, r.addr)
	for range 3 {
		for _, request := range []string{"set k 0 0 1\r\nx\r\n", "get k\r\n"} {
			if reply, err := c.do(request); !failed(err) && !strings.HasPrefix(reply, "ERROR ") {
				t.Fatalf("%q at a full server gives %q, %v; want an error line", request, reply, err)
			}
		}
		if reply, err := c.do("mn\r\n"); reply != "MN" {
			t.Fatalf("mn gives %q, %v", reply, err)
		}
	}
}
