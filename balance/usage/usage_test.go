package usage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/balance"
	"cacherouter/internal/memcachedtest"
)

// client is a connection to a real server.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, s *memcachedtest.Server) *client {
	t.Helper()
	c, err := memcachedtest.Dial(s.Addr(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t, c, bufio.NewReader(c)}
}

// stats returns the answer to "stats".
func (c *client) stats() []byte {
	c.t.Helper()
	return c.ask("stats\r\n", 1)
}

// ask sends requests and returns what comes up to the n-th END.
func (c *client) ask(request string, n int) (reply []byte) {
	c.t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		c.t.Fatal(err)
	}
	for n > 0 {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		if reply = append(reply, line...); string(line) == "END\r\n" {
			n--
		}
	}
	return reply
}

// work has the server answer gets until it has used so much processor time, and returns how many.
func (c *client) work(cpu time.Duration) (gets int) {
	c.t.Helper()
	began := Parse(c.stats(), 0).CPU.N
	const batch = 1000
	for Parse(c.stats(), 0).CPU.N < began+uint64(cpu.Microseconds()) {
		c.ask(strings.Repeat("get k\r\n", batch), batch)
		gets += batch
	}
	return gets
}

func TestReadingOfRealServer(t *testing.T) {
	s := memcachedtest.Start(t, "-t", "2", "-c", "64")
	c := dial(t, s)
	began := time.Now()
	before := Parse(c.stats(), 0)
	gets := c.work(200 * time.Millisecond)
	after := Parse(c.stats(), time.Since(began))
	r, err := Between(before, after, 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "requests a second", r.QPS, float64(gets)/after.At.Seconds(), 1e-6)
	near(t, "utilization", r.Utilization, float64(after.CPU.N-before.CPU.N)/1e6/after.At.Seconds()/2, 1e-6)
	if r.EPS != 0 || r.Degraded != "" || r.Utilization > 1 {
		t.Errorf("reading %+v of a healthy server", r)
	}
	one, err := Between(before, after, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "utilization of one processor", one.Utilization, 2*r.Utilization, 1e-9)
}

// A server whose connections are nearly all taken is nearly full, whatever its processors do. Of 64
// it keeps 10 for itself, 5 for each thread.
func TestConnectionsOfRealServer(t *testing.T) {
	s := memcachedtest.Start(t, "-t", "2", "-c", "64")
	c := dial(t, s)
	before := Parse(c.stats(), 0)
	for range 40 {
		dial(t, s).ask("get k\r\n", 1)
	}
	r, err := Between(before, Parse(c.stats(), time.Hour), 0) // so long that processors seem idle
	if err != nil {
		t.Fatal(err)
	}
	near(t, "utilization", r.Utilization, 41.0/54, 1e-9)
	near(t, "requests", r.QPS*3600, 40, 1e-6)
}

func TestRestartOfRealServer(t *testing.T) {
	s := memcachedtest.Start(t)
	before := Parse(dial(t, s).stats(), 0)
	s.Restart()
	c := dial(t, s)
	c.ask("get k\r\n", 1)
	if _, err := Between(before, Parse(c.stats(), time.Second), 0); !errors.Is(err, ErrRestarted) {
		t.Errorf("across a restart: %v, want ErrRestarted", err)
	}
}

// without returns an answer without the lines of some names.
func without(reply []byte, names ...string) (rest []byte) {
lines:
	for line := range bytes.Lines(reply) {
		for _, n := range names {
			if bytes.HasPrefix(line, []byte("STAT "+n+" ")) {
				continue lines
			}
		}
		rest = append(rest, line...)
	}
	return rest
}

// What a server does not tell is named, and the rest is used.
func TestMissingFields(t *testing.T) {
	s := memcachedtest.Start(t, "-t", "2", "-c", "64")
	c := dial(t, s)
	first := c.stats()
	c.work(50 * time.Millisecond)
	second := c.stats()
	f := func(utilization float64, degraded string, err error, names ...string) {
		t.Helper()
		r, got := Between(Parse(without(first, names...), 0), Parse(without(second, names...), time.Second), 0)
		if !errors.Is(got, err) || (err == nil) != (got == nil) {
			t.Errorf("without %s: %v, want %v", names, got, err)
			return
		}
		near(t, fmt.Sprintf("utilization without %s", names), r.Utilization, utilization, 1e-9)
		if r.Degraded != degraded {
			t.Errorf("without %s: degraded %q, want %q", names, r.Degraded, degraded)
		}
	}
	busy := float64(Parse(second, 0).CPU.N-Parse(first, 0).CPU.N) / 1e6 / 2
	taken := 1.0 / 54
	f(max(busy, taken), "", nil)
	f(max(busy, taken), "", nil, "pid", "uptime", "rejected_connections", "cmd_touch", "incr_hits")
	f(taken, "no rusage_user and rusage_system", nil, "rusage_user")
	f(taken, "no rusage_user and rusage_system", nil, "rusage_system")
	f(taken, "no threads", nil, "threads")
	f(busy, "no curr_connections and max_connections", nil, "max_connections")
	f(busy, "no curr_connections and max_connections", nil, "curr_connections")
	f(max(busy, 1.0/64), "", nil, "reserved_fds")
	f(0, "", ErrSilent, "max_connections", "threads")
	f(0, "", ErrSilent, "max_connections", "rusage_user")
	f(0, "", ErrSilent, "cmd_get", "cmd_set", "cmd_touch", "delete_hits", "delete_misses", "incr_hits", "incr_misses", "decr_hits", "decr_misses")
}

func TestNoReading(t *testing.T) {
	s := Parse([]byte("STAT pid 7\r\nSTAT threads 4\r\nSTAT rusage_user 1.5\r\nSTAT rusage_system 0.5\r\nSTAT cmd_get 10\r\nEND\r\n"), 0)
	f := func(want error, change func(after *Snapshot)) {
		t.Helper()
		after := s
		after.At, after.Requests.N, after.CPU.N = time.Second, 20, 3e6
		change(&after)
		if _, err := Between(s, after, 0); !errors.Is(err, want) {
			t.Errorf("Between(%+v, %+v) = %v, want %v", s, after, err, want)
		}
	}
	f(nil, func(*Snapshot) {})
	f(ErrTooClose, func(after *Snapshot) { after.At = MinInterval - 1 })
	f(ErrTooClose, func(after *Snapshot) { after.At = -time.Second })
	f(ErrRestarted, func(after *Snapshot) { after.PID.N = 8 })
	f(ErrRestarted, func(after *Snapshot) { after.CPU.N = 1e6 })
	f(ErrRestarted, func(after *Snapshot) { after.Requests.N = 9 })
	f(ErrIdle, func(after *Snapshot) { after.Requests.N = 10 })
	f(ErrSilent, func(after *Snapshot) { *after = Snapshot{At: time.Second} })
	f(ErrSilent, func(after *Snapshot) { after.Threads.N = 0 })
}

func TestParse(t *testing.T) {
	f := func(reply string, want Snapshot) {
		t.Helper()
		if got := Parse([]byte(reply), 0); got != want {
			t.Errorf("Parse(%q) = %+v, want %+v", reply, got, want)
		}
	}
	f("", Snapshot{})
	f("ERROR\r\n", Snapshot{})
	f("STAT threads\r\nSTAT threads four\r\nSTAT threads -4\r\nSTAT  \r\nEND\r\n", Snapshot{})
	f("STAT threads 4\nSTAT cmd_get 1\nSTAT cmd_set 2\nSTAT libevent 2.1.12-stable\n", Snapshot{Threads: Count{4, true}, Requests: Count{3, true}})
	f("STAT rusage_user 0.000001\r\nSTAT rusage_system 12.345678\r\n", Snapshot{CPU: Count{12345679, true}})
	f("STAT rusage_user NaN\r\nSTAT rusage_system 1\r\n", Snapshot{})
	f("STAT store_no_memory 3\r\nSTAT rejected_connections 4\r\nEND\r\n", Snapshot{Errors: Count{7, true}})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("STAT pid 1\r\nSTAT uptime 5\r\nSTAT threads 4\r\nSTAT rusage_user 1.5\r\nSTAT rusage_system 0.5\r\nSTAT cmd_get 10\r\nEND\r\n"), uint64(5))
	f.Fuzz(func(t *testing.T, reply []byte, n uint64) {
		before, after := Parse(reply, 0), Parse(reply, time.Second)
		after.Requests.N += n
		after.CPU.N += n
		r, err := Between(before, after, 0)
		if err == nil && (r.QPS <= 0 || r.Utilization <= 0 || math.IsInf(r.Utilization, 0) || math.IsNaN(r.EPS)) {
			t.Errorf("reading %+v", r)
		}
	})
}

// A balancer by reports sends the slower of two servers less, as soon as it may believe them.
func TestBalancerFollowsReadings(t *testing.T) {
	now := time.Unix(0, 0)
	c := balance.Default([]int{1, 1})
	c.Policy, c.Seed, c.Now = balance.Reported, 1, func() time.Time { return now }
	b, err := balance.New(c)
	if err != nil {
		t.Fatal(err)
	}
	at := func(second int, usPerGet int) Snapshot {
		return Parse(fmt.Appendf(nil, "STAT threads 1\r\nSTAT rusage_user %d.%06d\r\nSTAT rusage_system 0\r\nSTAT cmd_get %d\r\n", second*usPerGet/100, second*usPerGet%100*10_000, second*10_000),
			time.Duration(second)*time.Second)
	}
	for second := range 11 {
		for server, us := range []int{20, 60} {
			r, err := Between(at(second, us), at(second+1, us), 0)
			if err != nil || !b.Report(server, r.Report) {
				t.Fatalf("second %d: reading %+v, %v", second, r, err)
			}
		}
		now = now.Add(time.Second)
	}
	count := [2]int{}
	for range 4000 {
		count[b.Pick([]int{0, 1})]++
	}
	near(t, "share of the slower", float64(count[1])/4000, 0.25, 0.001)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s %v, want %v +- %v", what, got, want, tolerance)
	}
}
