package refresh

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// server is a connection to a real memcached.
type server struct {
	t    *testing.T
	conn net.Conn
}

func start(t *testing.T) *server {
	t.Helper()
	conn, err := net.Dial("tcp", memcachedtest.Start(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &server{t, conn}
}

// ask sends a request and returns what comes back before the answer to mn, which is sent
// behind it. In the request | stands for the line's end before a value.
func (s *server) ask(request string) string {
	s.t.Helper()
	s.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := s.conn.Write([]byte(strings.ReplaceAll(request, "|", "\r\n") + "\r\nmn\r\n")); err != nil {
		s.t.Fatal(err)
	}
	got, buf := []byte{}, make([]byte, 4096)
	for !bytes.HasSuffix(got, []byte("MN\r\n")) {
		n, err := s.conn.Read(buf)
		if err != nil {
			s.t.Fatalf("%s: %v", request, err)
		}
		got = append(got, buf[:n]...)
	}
	return strings.TrimSuffix(string(got), "MN\r\n")
}

// does sends a request and wants its reply to begin so.
func (s *server) does(request, want string) {
	s.t.Helper()
	if got := s.ask(request); !strings.HasPrefix(got, want) {
		s.t.Fatalf("%s is answered %q, want %q", request, got, want)
	}
}

// get is a client's get through a router.
func (s *server) get(c Config, key string, want Sight) {
	s.t.Helper()
	reply := s.ask(string(c.AppendFlags([]byte("mg "+key), true)))
	if got := Look([]byte(reply)); got != want {
		s.t.Fatalf("a get is %v by %q, want %v", got, reply, want)
	}
}

// soon renews whatever has less than 200 s left, thus what is stored for 100.
var soon = Config{Before: 200 * second}

// One client sees a miss, the others the old value, until there is a new one.
func TestOneRenews(t *testing.T) {
	s := start(t)
	s.get(soon, "k", Miss)
	s.get(soon, "k", Miss) // R makes nothing
	s.does("set k 5 100 3|abc", "STORED")
	s.get(soon, "k", Won)
	for range 10 {
		s.get(soon, "k", Old)
	}
	s.does("get k", "VALUE k 5 3\r\nabc\r\n")
	s.does("set k 5 1000 3|def", "STORED")
	s.get(soon, "k", Value)
	s.does("delete k", "DELETED")
	s.get(soon, "k", Miss)
}

// The limit is strict, and what does not expire is not renewed.
func TestWhatIsNearItsEnd(t *testing.T) {
	s := start(t)
	s.does("set k 0 100 1|x", "STORED")
	s.get(Config{Before: 98 * second}, "k", Value)
	s.get(Config{Before: 101 * second}, "k", Won)
	s.does("set k 0 0 1|x", "STORED")
	s.get(Config{Before: longest}, "k", Value)
}

// An item that lives shorter than the limit is due from the start: each set costs a miss.
func TestShortLivesAreAlwaysDue(t *testing.T) {
	s := start(t)
	for range 3 {
		s.does("set k 0 100 1|x", "STORED")
		s.get(soon, "k", Won)
		s.get(soon, "k", Old)
	}
}

// Which requests let the next be chosen, and which leave the token out. With incr it
// depends on whether the server has a use for the old item at that moment.
func TestWhatEndsTheToken(t *testing.T) {
	s := start(t)
	for request, next := range map[string]Sight{
		"set k 0 100 1|2":      Won,
		"append k 0 0 1|2":     Won,
		"replace k 0 100 1|2":  Won,
		"ms k 1 T100|2":        Won,
		"touch k 150":          Old,
		"gat 150 k":            Old,
		"add k 0 100 1|2":      Old, // is not stored: clients that fill by add renew nothing
		"cas k 0 100 1 1234|2": Old, // of another value
	} {
		s.does("set k 0 100 1|1", "STORED")
		s.get(soon, "k", Won)
		s.get(soon, "k", Old)
		s.ask(request)
		if got := Look([]byte(s.ask("mg k v f R200"))); got != next {
			t.Errorf("after %q the next get is %v, want %v", request, got, next)
		}
	}
}

// A client that has the token may store by cas, with the number that others were shown.
func TestUniqueNumberOfAnOldValue(t *testing.T) {
	s := start(t)
	s.does("set k 0 100 1|1", "STORED")
	s.get(soon, "k", Won)
	_, rest, _ := strings.Cut(s.ask("gets k"), "VALUE k 0 1 ")
	number, _, _ := strings.Cut(rest, "\r\n")
	_, rest, _ = strings.Cut(s.ask("mg k v f c R200"), " c")
	if again, _, _ := strings.Cut(rest, " "); again != number {
		t.Fatalf("the number is %q and %q", number, again)
	}
	s.does("cas k 0 1000 1 "+number+"|2", "STORED")
	s.get(soon, "k", Value)
}

// A value that a meta client has marked as stale is renewed in the same way.
func TestMarkedAsStale(t *testing.T) {
	s := start(t)
	s.does("set k 0 1000 1|x", "STORED")
	s.does("md k I T300", "HD")
	s.does("get k", "VALUE k 0 1\r\nx\r\n") // memcached tells a plain get nothing
	s.get(soon, "k", Won)
	s.get(soon, "k", Old)
	s.does("set k 0 1000 1|y", "STORED")
	s.get(soon, "k", Value)
}

// Each server has tokens of its own: copies must be asked without R.
func TestTokensAreOfOneServer(t *testing.T) {
	home, other := start(t), start(t)
	for _, s := range []*server{home, other} {
		s.does("set k 0 100 1|x", "STORED")
		s.get(soon, "k", Won)
	}
}

// all vivifies as well.
var all = Config{Before: 200 * second, Vivify: 30 * second}

func TestOneFillsAcrossRouters(t *testing.T) {
	s := start(t)
	s.get(all, "k", Won)
	s.get(all, "k", Filling)
	s.get(all, "k", Filling)
	s.does("set k 0 1000 1|x", "STORED")
	s.get(all, "k", Value)
	s.does("set k 0 100 1|x", "STORED")
	s.get(all, "k", Won)
	s.get(all, "k", Old)
	s.does("set k 0 1000 0|", "STORED")
	s.get(all, "k", Value) // empty, and it is the value
	s.does("delete k", "DELETED")
	s.get(all, "k", Won)
}

// What a vivified key looks like to requests that know nothing of it: why this is only
// for pools that are used by get, set and delete, and through routers alone.
func TestVivifiedKeysShow(t *testing.T) {
	s := start(t)
	for request, reply := range map[string]string{
		"get k":             "VALUE k 0 0\r\n\r\nEND\r\n",
		"gat 100 k":         "VALUE k 0 0\r\n\r\nEND\r\n",
		"touch k 100":       "TOUCHED",
		"add k 0 100 1|x":   "NOT_STORED",
		"append k 0 0 1|x":  "STORED",
		"replace k 0 0 1|x": "STORED",
		"incr k 1":          "CLIENT_ERROR cannot increment or decrement non-numeric value",
		"delete k":          "DELETED",
	} {
		s.ask("delete k")
		s.get(all, "k", Won)
		s.does(request, reply)
	}
}
