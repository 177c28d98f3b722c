package router_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"cacherouter/backend"
	"cacherouter/reactor"
	"cacherouter/router"
)

// hotPath is a request that comes by the million, and its reply.
type hotPath struct{ name, request, reply string }

func hotPaths() []hotPath {
	key, value := "user:profile:00000001234", strings.Repeat("v", 100)
	one, other := keyFor(0, 3, 0), keyFor(1, 3, 0)
	larger, huge := strings.Repeat("v", 20_000), strings.Repeat("v", 100_000)
	get, found := "get "+key+"\r\n", hit(key, value)+"END\r\n"
	var keys, values strings.Builder
	for i := range 50 {
		k := fmt.Sprintf("user:profile:%011d", i)
		keys.WriteString(" " + k)
		values.WriteString(hit(k, value))
	}
	return []hotPath{
		{"get", get, found},
		{"miss", "get nothing\r\n", "END\r\n"},
		{"set", set(key, value), "STORED\r\n"},
		{"noreply", "set n 0 0 1 noreply\r\nx\r\nget nothing\r\n", "END\r\n"},
		{"meta", "mg " + key + " v t O123 q\r\n", "VA 100 t-1 O123\r\n" + value + "\r\n"},
		{"large", "get large\r\n", hit("large", strings.Repeat("v", 10_000)) + "END\r\n"},
		{"huge", "get huge\r\n", hit("huge", huge) + "END\r\n"},
		{"huge pipelined", "get huge\r\nget large\r\nget huge\r\n", hit("huge", huge) + "END\r\n" + hit("large", strings.Repeat("v", 10_000)) + "END\r\n" + hit("huge", huge) + "END\r\n"},
		{"large pipelined", strings.Repeat("get "+one+"\r\nget "+other+"\r\n", 2), strings.Repeat(hit(one, larger)+"END\r\n"+hit(other, larger)+"END\r\n", 2)},
		{"pipelined", strings.Repeat(get+set(key, value), 32), strings.Repeat(found+"STORED\r\n", 32)},
		{"multiget", "get" + keys.String() + "\r\n", values.String() + "END\r\n"},
	}
}

// fillHot stores what the hot paths ask for.
func fillHot(c *client) {
	for _, key := range []string{keyFor(0, 3, 0), keyFor(1, 3, 0)} { // on different servers, so that replies wait
		c.ask(set(key, strings.Repeat("v", 20_000)), "STORED\r\n")
	}
	c.ask(set("large", strings.Repeat("v", 10_000)), "STORED\r\n")
	c.ask(set("huge", strings.Repeat("v", 100_000)), "STORED\r\n")
	value := strings.Repeat("v", 100)
	c.ask(set("user:profile:00000001234", value), "STORED\r\n")
	for i := range 50 {
		c.ask(set(fmt.Sprintf("user:profile:%011d", i), value), "STORED\r\n")
	}
}

// repeat asks n times. It allocates nothing itself.
func repeat(nc net.Conn, request, buf []byte, n int) error {
	for range n {
		if _, err := nc.Write(request); err != nil {
			return err
		}
		if _, err := io.ReadFull(nc, buf); err != nil {
			return err
		}
	}
	return nil
}

// A request on its way allocates nothing. All that this process allocates is counted,
// so a few allocations of the runtime and of timers are let pass.
func TestHotPathDoesNotAllocate(t *testing.T) {
	for _, e := range reactor.Engines() {
		t.Run(string(e), func(t *testing.T) { countAllocations(t, e) })
	}
}

func countAllocations(t *testing.T, e reactor.Engine) {
	const n = 400
	r := start(t, config{Config: router.Config{Engine: e}, Pool: router.PoolConfig{JoinGets: true}}, addresses(t, 3)...)
	c := dial(t, r.addr)
	fillHot(c)
	hugeSet := hotPath{"huge set", set("huge", strings.Repeat("v", 100_000)), "STORED\r\n"} // who makes copies keeps it for them
	for _, h := range append(hotPaths(), hugeSet) {
		most := uint64(n / 100)
		if e == reactor.Portable {
			most = n / 4 // the runtime's own, for goroutines that wait; a request's would be at least n
		}
		wantAllocations(t, c, h, n, most)
	}
}

// Where requests are recorded, those that are not chosen allocate nothing either.
func TestRecordingDoesNotAllocate(t *testing.T) {
	const n = 400
	c := config{Config: router.Config{Record: router.Recording{To: func(*router.Record) {}, Every: 1 << 30, Over: time.Hour}}}
	r := start(t, c, addresses(t, 3)...)
	client := dial(t, r.addr)
	fillHot(client)
	for _, h := range hotPaths() {
		wantAllocations(t, client, h, n, n/100)
	}
}

// wantAllocations asks n times and wants this process to allocate no more than most
// meanwhile. Another test's leftovers may be counted once, not always.
func wantAllocations(t *testing.T, c *client, h hotPath, n int, most uint64) {
	t.Helper()
	request, buf := []byte(h.request), make([]byte, len(h.reply))
	if err := repeat(c.nc, request, buf, 200); err != nil || string(buf) != h.reply {
		t.Fatalf("%s: %v, answered %.100q", h.name, err, buf)
	}
	best := ^uint64(0)
	for try := 0; try < 3 && best > most; try++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := repeat(c.nc, request, buf, n); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	if best > most {
		t.Errorf("%s: %d allocations in %d requests", h.name, best, n)
	}
}

// silent is a membership that notes nothing.
type silent struct{}

func (silent) Observe(string, backend.Observation) {}
func (silent) Admit(string) bool                   { return true }
func (silent) Missed(string, uint64, []byte)       {}
func (silent) MissedAll(string)                    {}
func (silent) Lag(time.Duration)                   {}

// With a membership too, a request on its way to a server in good health allocates nothing.
func TestHotPathDoesNotAllocateWithMembership(t *testing.T) {
	const n, most = 100, 20 // one of a request's would be n
	g := newRig(t, 3, config{Pool: router.PoolConfig{Membership: silent{}}})
	for i := range g.servers { // without the proxies, which are of this process too
		g.addrs[i] = g.servers[i].Addr()
	}
	g.use(g.well())
	c := dial(t, g.addr)
	key, value := "user:profile:00000001234", strings.Repeat("v", 100)
	writes := hotPath{"set and delete", set("k", "v") + "delete k\r\n", "STORED\r\nDELETED\r\n"}
	c.ask(set(key, value), "STORED\r\n")
	for _, h := range append(hotPaths()[:3], writes, hotPath{"delete", "delete none\r\n", "NOT_FOUND\r\n"}) {
		wantAllocations(t, c, h, n, most)
	}
	// In other states what requests need is used again as well.
	for name, table := range map[string]*router.Table{
		"read next": g.with(readNext), "away": g.with(away), "moved": g.with(router.Server{Moved: true}), "handed over": g.moved(time.Hour),
	} {
		g.use(table)
		for _, h := range []hotPath{
			{"get", "get k\r\n", hit("k", "v") + "END\r\n"}, {"set", set("k", "v"), "STORED\r\n"}, writes,
		} {
			c.ask(set("k", "v"), "STORED\r\n")
			h.name = name + ": " + h.name
			wantAllocations(t, c, h, n, most)
		}
	}
}

// BenchmarkRouter is one client over loopback, so most of the time is the kernel's and
// the server's; the allocations are ours.
func BenchmarkRouter(b *testing.B) {
	for _, e := range reactor.Engines() {
		r := start(b, config{Config: router.Config{Engine: e}}, addresses(b, 3)...)
		c := dial(b, r.addr)
		fillHot(c)
		for _, h := range hotPaths() {
			b.Run(fmt.Sprintf("%s/%s", e, h.name), func(b *testing.B) {
				b.ReportAllocs()
				request, buf := []byte(h.request), make([]byte, len(h.reply))
				for b.Loop() {
					if err := repeat(c.nc, request, buf, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
