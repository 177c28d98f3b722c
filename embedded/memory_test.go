package embedded

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"cacherouter/memproto"

	"pgregory.net/rapid"
)

// do puts a request straight to the items, and returns the reply.
func (s *Server) do(t interface{ Fatalf(string, ...any) }, request string) string {
	var p memproto.Parser
	var r memproto.Request
	if n, status := p.Parse([]byte(request), &r); n != len(request) || status != memproto.Complete {
		t.Fatalf("cannot parse %.60q: took %d, status %d", request, n, status)
	}
	return string(s.execute(nil, &r))
}

func set(key string, n int) string {
	return fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, n, strings.Repeat("v", n))
}

// Whatever is done to the items, their cost is what is counted, it stays within the
// limit, and list and map hold the same.
func TestMemoryIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 4096
		s := New(Config{Memory: limit, MaxItem: 2048})
		for i := range rapid.IntRange(1, 200).Draw(t, "requests") {
			k := fmt.Sprint("k", rapid.IntRange(0, 40).Draw(t, "key"))
			n := rapid.IntRange(0, 2100).Draw(t, "size")
			v := strings.Repeat("7", n)
			s.do(t, rapid.SampledFrom([]string{
				set(k, n),
				fmt.Sprintf("set %s 1 -1 %d\r\n%s\r\n", k, n%100, v[:n%100]),
				fmt.Sprintf("append %s 0 0 %d\r\n%s\r\n", k, n%300, v[:n%300]),
				fmt.Sprintf("prepend %s 0 0 %d\r\n%s\r\n", k, n%300, v[:n%300]),
				fmt.Sprintf("mg %s N0 v\r\n", k),
				fmt.Sprintf("ma %s N0 J9 D%d\r\n", k, i),
				fmt.Sprintf("delete %s\r\n", k),
				fmt.Sprintf("get %s\r\n", k),
			}).Draw(t, "request"))
			checkMemory(t, &s.memory)
		}
	})
}

func checkMemory(t *rapid.T, m *memory) {
	var cost int64
	n := 0
	for it := m.recent.first; it != nil; it = it.next {
		if m.items[it.key] != it {
			t.Fatalf("item %s is in the list and not in the map", it.key)
		}
		if it.next != nil && it.next.prev != it {
			t.Fatalf("the list is torn behind %s", it.key)
		}
		cost += it.cost()
		n++
	}
	if n != len(m.items) || cost != m.used || cost > m.limit {
		t.Fatalf("%d items in the list, %d in the map; they cost %d, counted %d, limit %d", n, len(m.items), cost, m.used, m.limit)
	}
}

func TestLeastRecentlyUsedGoFirst(t *testing.T) {
	cost := (&item{key: "k0", value: make([]byte, 100)}).cost()
	s := New(Config{Memory: 5 * cost})
	for i := range 5 {
		s.do(t, set(fmt.Sprint("k", i), 100))
	}
	s.do(t, "get k0\r\n")            // used
	s.do(t, "touch k1 0\r\n")        // used
	s.do(t, "mg k2 u\r\n")           // looked at without a trace
	s.do(t, "set k5 0 0 1\r\nx\r\n") // needs the room of one
	got := s.do(t, "get k0 k1 k2 k3 k4 k5\r\n")
	for i, want := range []bool{true, true, false, true, true, true} {
		if key := fmt.Sprint("VALUE k", i, " "); strings.Contains(got, key) != want {
			t.Errorf("k%d is there: %v, want %v", i, !want, want)
		}
	}
	if n := s.memory.stats.evictions; n != 1 {
		t.Errorf("%d evictions, want 1", n)
	}
}

func TestTooLarge(t *testing.T) {
	s := New(Config{Memory: 1000, MaxItem: 2000})
	f := func(request, want string) {
		t.Helper()
		if got := s.do(t, request); got != want {
			t.Errorf("%.30q: got %q, want %q", request, got, want)
		}
	}
	f(set("a", 1), "STORED\r\n")
	f(set("a", 1000), "SERVER_ERROR out of memory storing object\r\n") // fits no item, but not the memory
	f("get a\r\n", "END\r\n")
	f(set("a", 2000), "SERVER_ERROR object too large for cache\r\n")
	f("ms a 1000\r\n"+strings.Repeat("v", 1000)+"\r\n", "SERVER_ERROR out of memory storing object\r\n")
	f(set("a", 700), "STORED\r\n")
	f("append a 0 0 400\r\n"+strings.Repeat("v", 400)+"\r\n", "NOT_STORED\r\n")
	f("cache_memlimit 8\r\n", "OK\r\n")
	f("append a 0 0 400\r\n"+strings.Repeat("v", 400)+"\r\n", "STORED\r\n")
	f("cache_memlimit 7\r\n", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n")
	f("cache_memlimit x noreply\r\n", "")
}

// The limit is meant for what the process takes: bookkeeping must not be too small.
func TestLimitIsWhatIsTaken(t *testing.T) {
	for _, size := range []int{0, 100, 10000} {
		const limit = 8 << 20
		before := heap()
		s := New(Config{Memory: limit})
		for i := 0; s.memory.stats.evictions == 0; i++ {
			s.do(t, set(fmt.Sprintf("some-key-%07d", i), size))
		}
		taken := heap() - before
		t.Logf("values of %d bytes: %d items take %.2f of the limit", size, len(s.memory.items), float64(taken)/limit)
		if taken > limit*5/4 {
			t.Errorf("values of %d bytes: %d bytes taken, the limit is %d", size, taken, limit)
		}
		runtime.KeepAlive(s)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return int64(st.HeapAlloc)
}
