package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

const mib = 1 << 20

// startPlain starts a router without the race detector, whose memory means something.
func startPlain(tb testing.TB, backends []string) *router {
	tb.Helper()
	return startServe(tb, plainBinary, "--listen", "127.0.0.1:0", "--backends", strings.Join(backends, ","))
}

func needDescriptors(tb testing.TB, n uint64) {
	tb.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		tb.Fatalf("cannot read the descriptor limit: %v", err)
	}
	if limit.Max < n {
		memcachedtest.Missing(tb, fmt.Sprintf("the descriptor limit is %d, the test needs %d", limit.Max, n))
	}
}

// TestTenThousandIdleClients wants at most 40 MiB resident for ten thousand clients, half of which have asked
// something and gone quiet, and an eleven-thousandth that is served as ever.
func TestTenThousandIdleClients(t *testing.T) {
	needDescriptors(t, 11000)
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 3)))
	c := connect(t, r.addr)
	c.mustSet(t, "k", strings.Repeat("v", 4000))
	for i := range 10000 {
		idle := connect(t, r.addr)
		if i%2 == 0 {
			idle.mustGet(t, "k", strings.Repeat("v", 4000))
		}
		idle.r = nil // 64 KiB that this process need not keep
	}
	c.mustGet(t, "k", strings.Repeat("v", 4000))
	waitFor(t, "memory to settle at 40 MiB", func() error {
		if rss := r.rss(); rss > 40*mib {
			return fmt.Errorf("%.1f MiB are resident", float64(rss)/mib)
		}
		return nil
	})
	t.Logf("%.1f MiB resident", float64(r.rss())/mib)
}

// TestClientThatDoesNotRead pipelines 300,000 gets of a 100 kB value, 30 GB of replies, and reads none of them. The
// router must stop reading that client, keep its memory bounded and serve the others.
func TestClientThatDoesNotRead(t *testing.T) {
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 3)))
	c := connect(t, r.addr)
	value := strings.Repeat("b", 100000)
	c.mustSet(t, "big", value)
	before := r.rss()

	deaf := connect(t, r.addr)
	var written atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		chunk := []byte(strings.Repeat("get big\r\n", 100))
		for range 3000 {
			n, err := deaf.conn.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return // the connection is closed below
			}
		}
	})
	waitUntilStill(&written)
	for i := range 300 {
		key := fmt.Sprintf("other:%d", i)
		c.mustSet(t, key, "value of "+key)
		c.mustGet(t, key, "value of "+key)
	}
	if grown := r.rss() - before; grown > 48*mib {
		t.Errorf("the router grew by %d MiB for a client that does not read", grown/mib)
	}
	for i := range 200 {
		if values, err := deaf.values(); err != nil || values["big"] != value {
			t.Fatalf("reply %d is wrong: %d values, %v", i, len(values), err)
		}
	}
	deaf.conn.Close()
	wg.Wait()
	c.mustGet(t, "other:1", "value of other:1")
	t.Logf("%d bytes of requests written, router %d -> %d MiB", written.Load(), before/mib, r.rss()/mib)
}

// waitUntilStill returns when the number has not changed for a quarter of a second.
func waitUntilStill(n *atomic.Int64) {
	for last, still := int64(-1), 0; still < 5; time.Sleep(50 * time.Millisecond) {
		if now := n.Load(); now == last {
			still++
		} else {
			last, still = now, 0
		}
	}
}

// TestManyClientsThatDoNotRead has a hundred deaf clients at once.
func TestManyClientsThatDoNotRead(t *testing.T) {
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 2)))
	c := connect(t, r.addr)
	c.mustSet(t, "big", strings.Repeat("b", 100000))
	var written atomic.Int64
	var wg sync.WaitGroup
	var deaf []*client
	for range 100 {
		d := connect(t, r.addr)
		deaf = append(deaf, d)
		wg.Go(func() {
			n, _ := io.WriteString(d.conn, strings.Repeat("get big\r\n", 300)) // ended by Close below
			written.Add(int64(n))
		})
	}
	waitUntilStill(&written)
	for range 100 {
		c.mustSet(t, "small", "s")
		c.mustGet(t, "small", "s")
	}
	if rss := r.rss(); rss > 256*mib {
		t.Errorf("the router takes %d MiB for a hundred clients that do not read", rss/mib)
	}
	t.Logf("%d MiB resident", r.rss()/mib)
	for _, d := range deaf {
		d.conn.Close()
	}
	wg.Wait()
}

// TestDeclaredLengthTakesNoMemory has clients announce large values and send next to nothing of them.
func TestDeclaredLengthTakesNoMemory(t *testing.T) {
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 1)))
	c := connect(t, r.addr)
	c.mustSet(t, "k", "v")
	before := r.rss()
	for i := range 200 {
		if err := connect(t, r.addr).send(fmt.Sprintf("set half:%d 0 0 100000000\r\nhalf", i)); err != nil {
			t.Fatal(err)
		}
	}
	c.mustGet(t, "k", "v")
	if grown := r.rss() - before; grown > 32*mib {
		t.Errorf("the router grew by %d MiB for values that did not come", grown/mib)
	}
}

// TestOversizeIsSwallowedAsItComes sends a value that no configuration takes: it must not be kept while it arrives.
func TestOversizeIsSwallowedAsItComes(t *testing.T) {
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 1)))
	c := connect(t, r.addr)
	c.mustSet(t, "k", "old")
	before := r.rss()
	const size = 256 * mib
	c.send(fmt.Sprintf("set k 0 0 %d\r\n", size))
	piece, most := strings.Repeat("o", mib), 0
	for range size / mib {
		if err := c.send(piece); err != nil {
			t.Fatalf("the router does not take the value: %v", err)
		}
		most = max(most, r.rss()-before)
	}
	if reply, err := c.do("\r\n"); !failed(err) || err.Error() != "SERVER_ERROR object too large for cache" {
		t.Errorf("the oversized set gives %q, %v", reply, err)
	}
	if values, err := c.get("k"); err != nil || len(values) != 0 {
		t.Errorf("after it the key holds %q, %v; want a miss, as memcached leaves it", values, err)
	}
	if most > 32*mib {
		t.Errorf("the router grew by %d MiB while a value was thrown away", most/mib)
	}
}

// TestEndlessLine sends a get line that never ends: it is refused or cut off before it takes much memory.
func TestEndlessLine(t *testing.T) {
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 1)))
	c, endless := connect(t, r.addr), connect(t, r.addr)
	c.mustSet(t, "k", "v")
	before := r.rss()
	piece := strings.Repeat(" key", 1<<18)
	err := endless.send("get")
	for i := 0; i < 256 && err == nil; i++ {
		err = endless.send(piece)
	}
	if err == nil {
		t.Error("a line of 256 MiB was taken in")
	}
	c.mustGet(t, "k", "v")
	if grown := r.rss() - before; grown > 64*mib {
		t.Errorf("the router grew by %d MiB for one line", grown/mib)
	}
}

func TestLargestValues(t *testing.T) {
	r := startRouter(t, memcachedtest.Addrs(memcachedtest.StartN(t, 3)))
	var wg sync.WaitGroup
	for i := range 6 {
		c := connect(t, r.addr)
		wg.Go(func() {
			for round := range 8 {
				if err := writeReadLarge(c, fmt.Sprintf("large:%d", i), byte('a'+i), 1048500-round*7919); err != nil {
					t.Errorf("client %d round %d: %v", i, round, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// writeReadLarge stores a value of the given size and reads it, with small requests on the same connection between.
func writeReadLarge(c *client, key string, fill byte, size int) error {
	value := string(bytes.Repeat([]byte{fill}, size))
	request := fmt.Sprintf("set %s 0 0 %d\r\n%s\r\nset s%s 0 0 1\r\n%c\r\nget %s\r\nget s%s\r\n", key, size, value, key, fill, key, key)
	if err := c.send(request); err != nil {
		return err
	}
	for range 2 {
		if reply, err := c.line(); reply != "STORED" {
			return fmt.Errorf("set gives %q, %w", reply, err)
		}
	}
	large, err := c.values()
	if err != nil || large[key] != value {
		return fmt.Errorf("get of %d bytes gives %d, %w", size, len(large[key]), err)
	}
	small, err := c.values()
	if err != nil || small["s"+key] != string(fill) {
		return fmt.Errorf("the small get gives %v, %w", small, err)
	}
	return nil
}

// TestTenThousandKeyMultiget wants the very bytes that one memcached would give.
func TestTenThousandKeyMultiget(t *testing.T) {
	plain := memcachedtest.Start(t).Addr()
	r := startRouter(t, memcachedtest.Addrs(memcachedtest.StartN(t, 3)))
	var fill, ask strings.Builder
	ask.WriteString("get")
	for i := range 10000 {
		if i%5 != 0 {
			fmt.Fprintf(&fill, "set multi:%d %d 0 %d noreply\r\n%s\r\n", i, i, i%100, strings.Repeat("m", i%100))
		}
		fmt.Fprintf(&ask, " multi:%d", (i*7919)%10000)
	}
	fill.WriteString("mn\r\n")
	ask.WriteString("\r\nmn\r\n")
	var replies [2]string
	for i, addr := range []string{plain, r.addr} {
		c := connect(t, addr)
		if reply, err := c.do(fill.String()); reply != "MN" {
			t.Fatalf("filling %s gives %q, %v", addr, reply, err)
		}
		c.send(ask.String())
		replies[i] = readTo(t, c, "END\r\nMN\r\n")
	}
	if replies[0] != replies[1] {
		t.Errorf("the router's reply of %d bytes differs from memcached's of %d, first at %d",
			len(replies[1]), len(replies[0]), firstDifference(replies[0], replies[1]))
	}
}

func readTo(t *testing.T, c *client, end string) string {
	t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), end) {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d bytes: %v", got.Len(), err)
		}
		got.WriteString(line)
	}
	return got.String()
}

func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestShortConnections opens, uses and closes many connections, as PHP does for every page.
func TestShortConnections(t *testing.T) {
	r := startRouter(t, memcachedtest.Addrs(memcachedtest.StartN(t, 2)))
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 250 {
				if err := shortConnection(r.addr, fmt.Sprintf("short:%d:%d", worker, i)); err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func shortConnection(addr, key string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	request := fmt.Sprintf("set %s 0 0 %d\r\n%s\r\nget %s\r\nquit\r\n", key, len(key), key, key)
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	want := fmt.Sprintf("STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(key), key)
	if err != nil || string(got) != want {
		return fmt.Errorf("got %q, %w; want %q", got, err, want)
	}
	return nil
}
