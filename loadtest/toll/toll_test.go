package toll

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
)

// road is one gate, with a connection through it to a server that answers at once.
func road(t *testing.T, c Config) (*Road, *Gate, *bufio.ReadWriter, func()) {
	t.Helper()
	r := NewRoad(c)
	g := r.newGate("")
	near, client := net.Pipe()
	server, far := net.Pipe()
	go func() {
		in := bufio.NewReader(far)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(far, strings.ToUpper(line))
		}
	}()
	r.running.Go(func() { g.carry(client, server) })
	return r, g, bufio.NewReadWriter(bufio.NewReader(near), bufio.NewWriter(near)), func() { near.Close(); far.Close(); r.Close() }
}

func TestRepliesWaitForAPlaceAndTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, conn, end := road(t, Config{Places: 2, Service: 10 * time.Millisecond})
		defer end()
		f := func(requests string, want ...time.Duration) {
			t.Helper()
			begin := time.Now()
			conn.WriteString(requests)
			conn.Flush()
			for i, line := range strings.SplitAfter(strings.TrimSuffix(requests, "\n"), "\n") {
				got, err := conn.ReadString('\n')
				if err != nil || strings.TrimSpace(got) != strings.ToUpper(strings.TrimSpace(line)) || time.Since(begin) != want[i] {
					t.Errorf("%q after %v, %v; want %v", got, time.Since(begin), err, want[i])
				}
			}
		}
		const ms = time.Millisecond
		f("a\r\n", 10*ms)
		f("a\r\nb\r\nc\r\nd\r\ne\r\n", 10*ms, 10*ms, 20*ms, 20*ms, 30*ms)
		g.Take(100 * ms)
		f("a\r\nb\r\nc\r\n", 100*ms, 100*ms, 200*ms)
		if n := r.Seen()[0].Came.Sum(); n != 9 {
			t.Errorf("%d requests, want 9", n)
		}
	})
}

// afterB is the kind of what follows a request for b.
func afterB(before, line []byte) int {
	if string(before) == "mg b\r\n" && string(line) == "get b\r\n" {
		return 2
	}
	return 0
}

func TestWhatIsInFlightIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, conn, end := road(t, Config{Places: 1, Service: 10 * time.Millisecond, Kind: afterB})
		defer end()
		other := r.newGate("")
		r.count(other, 0, 1) // hangs
		time.Sleep(time.Second)
		r.Clear()
		conn.WriteString("get a\r\nmg b\r\nget b\r\n")
		conn.Flush()
		for range 3 {
			conn.ReadString('\n')
		}
		synctest.Wait() // the last has left
		seen := r.Seen()
		here := seen[0].Mean(func(s State) float64 { return float64(s.Here.Sum()) })
		all := seen[0].Mean(func(s State) float64 { return float64(s.All.Sum()) })
		if math.Abs(here-2) > 1e-9 || math.Abs(all-3) > 1e-9 { // 3, then 2, then 1 of them, for as long
			t.Errorf("%v in flight of %v, want 2 of 3", here, all)
		}
		if most := seen[0].Max(func(s State) int { return s.Here[2] }); most != 1 || seen[0].Came != (Counts{2, 0, 1}) {
			t.Errorf("%d of a kind at a time, want 1; %v came", most, seen[0].Came)
		}
		if most := seen[1].Max(func(s State) int { return s.Here.Sum() }); most != 1 || seen[1].Came.Sum() != 0 {
			t.Errorf("%d in flight at the other, %d requests; want 1 from before", most, seen[1].Came.Sum())
		}
	})
}

func TestWhoLeavesGivesItsPlaceUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, conn, end := road(t, Config{Places: 1, Service: time.Hour})
		conn.WriteString("a\r\nb\r\nc\r\n")
		conn.Flush()
		synctest.Wait()
		if g.here[0] != 3 {
			t.Errorf("%d in flight, want 3", g.here[0])
		}
		end()
		if g.here[0] != 0 || r.all[0] != 0 || g.places.free != 1 || len(g.places.waiting) != 0 {
			t.Errorf("%d are in flight after the end, %d wait, %d places are free", g.here[0], len(g.places.waiting), g.places.free)
		}
	})
}

func TestMemcachedThroughAGate(t *testing.T) {
	server := memcachedtest.Start(t)
	r := NewRoad(Config{Places: 4, Service: time.Millisecond})
	defer r.Close()
	g, err := r.Open(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c := caller.Conn{Target: g.Addr, Timeout: 10 * time.Second}
			defer c.Close()
			key, value := string(rune('a'+i)), bytes.Repeat([]byte{'\n'}, 5000*i)
			for range 20 {
				if err := c.Set(key, value, 0); err != nil {
					t.Error(err)
				}
				if got, hit, err := c.Get(key); !bytes.Equal(got, value) || !hit || err != nil {
					t.Errorf("%d bytes, hit %v, %v; want %d", len(got), hit, err, len(value))
				}
				if err := c.Delete(key); err != nil {
					t.Error(err)
				}
				if _, hit, err := c.Get(key); hit || err != nil {
					t.Errorf("a deleted key: hit %v, %v", hit, err)
				}
			}
		})
	}
	all.Wait()
	if n := r.Seen()[0].Came.Sum(); n != 640 {
		t.Errorf("%d requests came, want 640", n)
	}
	r.Close()
	c := caller.Conn{Target: g.Addr, Timeout: 10 * time.Second}
	if _, _, err := c.Get("a"); err == nil {
		t.Error("a closed gate lets requests pass")
	}
}

func TestWhereRequestsAndRepliesEnd(t *testing.T) {
	f := func(read func(*bufio.Reader) ([]byte, error), want ...string) {
		t.Helper()
		in := bufio.NewReader(strings.NewReader(strings.Join(want, "")))
		var got []string
		for {
			text, err := read(in)
			if err != nil {
				break
			}
			got = append(got, string(text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	request := func(in *bufio.Reader) ([]byte, error) { text, _, err := readRequest(in, nil); return text, err }
	reply := func(in *bufio.Reader) ([]byte, error) { return readReply(in, nil) }
	f(request, "get a b\r\n", "set a 0 0 4\r\n\r\n\r\n\r\n", "mg a t\r\n", "ms a 2 T0\r\nxx\r\n", "delete a\r\n", "\r\n", "add a 0 9 0\r\n\r\n")
	f(reply, "END\r\n", "VALUE a 0 5\r\nEND\r\n\r\nVALUE b 0 0 7\r\n\r\nEND\r\n", "VA 4 t5\r\nHD\r\n\r\n", "HD\r\n", "STORED\r\n", "SERVER_ERROR x\r\n")
	f(request)
	for _, bad := range []string{"set a 0 0 x\r\n", "set a\r\n", "ms a 99999999\r\n", "set a 0 0 5\r\nx\r\n"} {
		if _, _, err := readRequest(bufio.NewReader(strings.NewReader(bad)), nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestAServerThatFailsDoesSoAtOnce(t *testing.T) {
	server := memcachedtest.Start(t)
	r := NewRoad(Config{Places: 1, Service: time.Millisecond})
	defer r.Close()
	g, err := r.Open(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c := caller.Conn{Target: g.Addr, Timeout: 10 * time.Second}
	defer c.Close()
	f := func(how Fault, want string) {
		t.Helper()
		g.Fail(how)
		err := c.Set("a", []byte("1"), 0)
		_, hit, errGet := c.Get("a")
		if want == "" && (err != nil || errGet != nil || !hit) {
			t.Errorf("fault %d: %v, %v, hit %v", how, err, errGet, hit)
		}
		if want != "" && (err == nil || errGet == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("fault %d: %v, %v, want %q", how, err, errGet, want)
		}
	}
	f(Well, "")
	f(Refusing, "out of order")
	if err := c.Delete("b"); err != nil {
		t.Errorf("a server that refuses gets and sets was asked to delete: %v", err)
	}
	f(Hanging, "EOF")
	f(Well, "")
	if n := r.Seen()[0].Came.Sum(); n != 9 {
		t.Errorf("%d requests came, want 9", n)
	}
}
