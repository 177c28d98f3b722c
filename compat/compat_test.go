package compat

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// servers returns n servers of weight 1.
func servers(n int) []Server {
	s := make([]Server, n)
	for i := range s {
		s[i] = Server{Addr: fmt.Sprintf("10.1.%d.%d:11211", i/250, i%250), Weight: 1}
	}
	return s
}

func place(t testing.TB, distribution string, servers []Server) *Placement {
	t.Helper()
	p, err := New(Config{Distribution: distribution, Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The picks of every distribution are distinct, all there, and prefixes of one another.
func TestPicksAreDistinctAndPrefixStable(t *testing.T) {
	for _, distribution := range Distributions() {
		for _, n := range []int{1, 2, 7, 25} {
			p := place(t, distribution, servers(n))
			for key := range 500 {
				hash := p.Hash(fmt.Append(nil, "key", key))
				all := p.Pick(nil, hash, n+1)
				sorted := slices.Clone(all)
				slices.Sort(sorted)
				if len(slices.Compact(sorted)) != n {
					t.Fatalf("%s of %d: picked %v", distribution, n, all)
				}
				for k := range n {
					if diff := cmp.Diff(all[:k], p.Pick([]int{}, hash, k)); diff != "" {
						t.Fatalf("%s of %d: %d picks differ from all picks: %s", distribution, n, k, diff)
					}
				}
			}
		}
	}
}

func TestPickAndHashDoNotAllocate(t *testing.T) {
	key, dst := []byte("user:{12345}:profile:67"), make([]int, 0, 3)
	for _, distribution := range Distributions() {
		p := place(t, distribution, servers(10))
		if n := testing.AllocsPerRun(100, func() { dst = p.Pick(dst[:0], p.Hash(key), 3) }); n != 0 {
			t.Errorf("%s: %v allocations", distribution, n)
		}
	}
	for name, hash := range keyHashes {
		if n := testing.AllocsPerRun(100, func() { hash(key) }); n != 0 {
			t.Errorf("hash %s: %v allocations", name, n)
		}
	}
}

// Twemproxy's and libmemcached's point counts are computed in float32: these numbers of equal servers get 156 points, not 160.
func TestFloat32PointCounts(t *testing.T) {
	var short []int
	for n := 1; n <= 200; n++ {
		if ketamaCounts(servers(n))[0] == 39 {
			short = append(short, n)
		}
	}
	want := []int{25, 47, 50, 55, 61, 71, 94, 100, 107, 109, 110, 115, 122, 142, 159, 163, 188, 193, 200}
	if diff := cmp.Diff(want, short); diff != "" {
		t.Error(diff)
	}
}

// Placements that mcrouter's own tests state.
func TestFurcKnownPlacements(t *testing.T) {
	f := func(key string, servers, want int) {
		t.Helper()
		if got := furc(ch3([]byte(key)), servers); got != want {
			t.Errorf("%q of %d: %d, want %d", key, servers, got, want)
		}
	}
	f("sample", 100, 97)
	f("sample", 1, 0)
	f("", 100, 72)
	f("", 1<<23, 6173600)
	f("sample", 1<<23, 5167780)
	up, down := make([]byte, 256), make([]byte, 256)
	for i := range up {
		up[i] = byte(i - 128)
		down[255-i] = up[i]
	}
	f(string(up), 99999, 31015)
	f(string(down), 99999, 67101)

	var count [3]int
	for i := range 1000 {
		count[furc(ch3(fmt.Append(nil, i)), 3)]++
	}
	if want := [3]int{307, 342, 351}; count != want {
		t.Errorf("1000 numbers over 3: %v, want %v", count, want)
	}
}

func TestRoutingKeyOfMcrouter(t *testing.T) {
	f := func(key, hashed string) {
		t.Helper()
		if ch3([]byte(key)) != murmur64A([]byte(hashed), furcSeed) {
			t.Errorf("%q is not hashed as %q", key, hashed)
		}
	}
	f("user:1|#|profile", "user:1")
	f("/oregon/web/user:1|#|profile", "user:1")
	f("/oregon/user:1", "/oregon/user:1")
	f("user:1", "user:1")
}

func TestHashTags(t *testing.T) {
	whole := func(key []byte) uint64 { return uint64(len(key)) }
	twemproxy, err := Tagged(whole, "{}")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := tagged(whole, "{}")
	if err != nil {
		t.Fatal(err)
	}
	f := func(key string, inTwemproxy, inProxy uint64) {
		t.Helper()
		if got := twemproxy([]byte(key)); got != inTwemproxy {
			t.Errorf("twemproxy hashes %d bytes of %q, want %d", got, key, inTwemproxy)
		}
		if got := proxy([]byte(key)); got != inProxy {
			t.Errorf("memcached's proxy hashes %d bytes of %q, want %d", got, key, inProxy)
		}
	}
	f("{abc}:1", 3, 3)
	f("x{a}{bcd}", 1, 1)
	f("{}abc", 5, 0)
	f("{abc", 4, 4)
	f("}a{b", 4, 4)
	f("plain", 5, 5)
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	two := servers(2)
	f := func(c Config, want string) {
		t.Helper()
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f(Config{Distribution: "ketama", Servers: two}, `unknown distribution "ketama"`)
	f(Config{Distribution: "jump"}, "no servers")
	f(Config{Distribution: "jump", Servers: []Server{two[0], two[0]}}, `same address "10.1.0.0:11211"`)
	f(Config{Distribution: "twemproxy-ketama", Servers: []Server{{"a", "h:1", 1}, {"a", "h:2", 1}}}, `same name "a"`)
	f(Config{Distribution: "twemproxy-ketama", Servers: []Server{{"", "h:1", 0}}}, `"h:1" has weight 0`)
	f(Config{Distribution: "twemproxy-ketama", Servers: []Server{{"", "h:1", -1}}}, `"h:1" has weight -1`)
	f(Config{Distribution: "twemproxy-ketama", Servers: []Server{{"", "h:1", 65536}}}, `"h:1" has weight 65536`)
	f(Config{Distribution: "twemproxy-ketama", Servers: []Server{{"", "h", 1}}}, `"h": want host:port`)
	f(Config{Distribution: "mcproxy-jump", Servers: []Server{{"", "h:1", 2}}}, "no weights")
	f(Config{Distribution: "mcproxy-ring", Servers: []Server{{"", "unix:/a", 1}}}, "Unix")
	f(Config{Distribution: "mcproxy-ring", Mode: "dynamo", Servers: two}, `unknown mode "dynamo"`)
	f(Config{Distribution: "mcproxy-jump", Mode: "ketama", Servers: two}, "no modes")
	f(Config{Distribution: "twemproxy-ketama", Hash: "crc", Servers: two}, `unknown hash "crc"`)
	f(Config{Distribution: "libmemcached-ketama", Hash: "crc16", Servers: two}, `unknown hash "crc16"`)
	f(Config{Distribution: "libmemcached-ketama-weighted", Hash: "crc16", Servers: two}, `unknown hash "crc16"`)
	f(Config{Distribution: "twemproxy-ketama", HashTag: "{", Servers: two}, "two bytes")
	f(Config{Distribution: "nginx-consistent", HashTag: "{}", Servers: two}, "no hash tags")
	f(Config{Distribution: "twemproxy-ketama", HashStop: "::", Servers: two}, "no hash stop")
	f(Config{Distribution: "jump", Seed: "foo", Servers: two}, "no seed")
	f(Config{Distribution: "nginx-consistent", Servers: []Server{{"", "h:1", 65535}}}, "lower the weights")
}

// A hash belongs to the first span that ends at or after it.
func TestSpansAgreeWithPick(t *testing.T) {
	for _, distribution := range Distributions() {
		p := place(t, distribution, servers(9))
		if !p.Exact() {
			continue
		}
		next := uint64(0)
		for last, home := range p.Spans() {
			for _, hash := range []uint64{next, last} {
				if got := p.Pick(nil, hash, 1)[0]; got != home {
					t.Fatalf("%s: %#x is at home on %d, in a span of %d", distribution, hash, got, home)
				}
			}
			next = last + 1
		}
		if next != math.MaxUint32+1 {
			t.Errorf("%s: spans end at %#x", distribution, next)
		}
	}
}

// With the 15-bit hash nearly everything is on one server, and Shares says so.
func TestSharesOfNarrowHash(t *testing.T) {
	p, err := New(Config{Distribution: "twemproxy-ketama", Hash: "crc32", Servers: servers(4)})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Max(p.Shares()); got < 0.99 {
		t.Errorf("largest share %.3f, want nearly 1", got)
	}
	for i, share := range place(t, "modulo", servers(4)).Shares() {
		if share != 0.25 {
			t.Errorf("modulo gives server %d a share of %v", i, share)
		}
	}
}

func TestDigestTellsPlacementsApart(t *testing.T) {
	seen := make(map[[32]byte]string)
	f := func(what string, c Config) {
		t.Helper()
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[p.Digest()]; dup {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[p.Digest()] = what
	}
	for _, distribution := range Distributions() {
		f(distribution, Config{Distribution: distribution, Servers: servers(5)})
		f(distribution+" of 6", Config{Distribution: distribution, Servers: servers(6)})
	}
	f("tag", Config{Distribution: "twemproxy-ketama", HashTag: "{}", Servers: servers(5)})
	f("hash", Config{Distribution: "twemproxy-ketama", Hash: "md5", Servers: servers(5)})
	f("seed", Config{Distribution: "mcproxy-jump", Seed: "foo", Servers: servers(5)})
	f("mode", Config{Distribution: "mcproxy-ring", Mode: "ketama", Servers: servers(5)})
}

// On rings the order of the list changes neither homes nor digest.
func TestRingsIgnoreOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		distribution := rapid.SampledFrom([]string{"twemproxy-ketama", "libmemcached-ketama", "nginx-consistent", "libmemcached-spy"}).Draw(t, "distribution")
		given := servers(rapid.IntRange(1, 12).Draw(t, "servers"))
		shuffled := rapid.Permutation(given).Draw(t, "order")
		a, errA := New(Config{Distribution: distribution, Servers: given})
		b, errB := New(Config{Distribution: distribution, Servers: shuffled})
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Digest() != b.Digest() {
			t.Fatal("digests differ")
		}
		hash := uint64(rapid.Uint32().Draw(t, "hash"))
		if x, y := given[a.Pick(nil, hash, 1)[0]], shuffled[b.Pick(nil, hash, 1)[0]]; x != y {
			t.Fatalf("%v and %v", x, y)
		}
	})
}
