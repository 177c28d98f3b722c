package placement

import (
	"fmt"
	"testing"

	"cacherouter/maglev"
	"cacherouter/rendezvous"
	"cacherouter/ring"

	buraksezer "github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	jump "github.com/dgryski/go-jump"
	dgryski "github.com/dgryski/go-rendezvous"
	"github.com/golang/groupcache/consistenthash"
	kkdai "github.com/kkdai/maglev"
	"github.com/serialx/hashring"
	stathat "stathat.com/c/consistent"
)

// lookup finds a key's server and returns something of it, so that the search cannot be left out.
type lookup func(key []byte) int

// placer is one way to place keys on named servers.
type placer struct {
	name  string
	build func(names []string) (lookup, error)
}

var placers = []placer{
	{"rendezvous", func(names []string) (lookup, error) { return oursRendezvous(names, nil, rendezvous.DefaultSlots) }},
	{"rendezvous-weighted", func(names []string) (lookup, error) {
		return oursRendezvous(names, weights(len(names)), rendezvous.DefaultSlots)
	}},
	{"rendezvous-65536", func(names []string) (lookup, error) { return oursRendezvous(names, nil, 1<<16) }},
	{"maglev", func(names []string) (lookup, error) { return oursMaglev(names, maglev.SmallSize) }},
	{"maglev-655373", func(names []string) (lookup, error) { return oursMaglev(names, maglev.LargeSize) }},
	{"ring", oursRing},
	{"buraksezer", buildBuraksezer},
	{"stathat", buildStathat},
	{"serialx-weight-1", func(names []string) (lookup, error) { return buildSerialx(names, 1) }},
	{"serialx-weight-160", func(names []string) (lookup, error) { return buildSerialx(names, 160) }},
	{"groupcache", buildGroupcache},
	{"kkdai-maglev", buildKkdai},
	{"go-rendezvous", buildDgryski},
	{"go-jump", buildJump},
}

func oursRendezvous(names []string, weights []int, slots int) (lookup, error) {
	t, err := rendezvous.NewSlots(names, weights, slots)
	if err != nil {
		return nil, err
	}
	t.Shares() // draws for all slots, as lookups do by and by
	return func(key []byte) int {
		var room [1]int
		return t.Pick(room[:0], xxhash.Sum64(key), 1)[0]
	}, nil
}

func oursMaglev(names []string, size int) (lookup, error) {
	t, err := maglev.NewSize(names, nil, size)
	if err != nil {
		return nil, err
	}
	return func(key []byte) int {
		var room [1]int
		return t.Pick(room[:0], xxhash.Sum64(key), 1)[0]
	}, nil
}

func oursRing(names []string) (lookup, error) {
	r, err := ring.New(names, nil)
	if err != nil {
		return nil, err
	}
	return func(key []byte) int {
		var room [1]int
		return r.Pick(room[:0], xxhash.Sum64(key), 1)[0]
	}, nil
}

// weights are 1 to 10 in turn.
func weights(n int) []int {
	w := make([]int, n)
	for i := range w {
		w[i] = 1 + i%10
	}
	return w
}

type member string

func (m member) String() string { return string(m) }

type xxhasher struct{}

func (xxhasher) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// buildBuraksezer uses its documented 271 partitions, and 10,007 where those are fewer than three a server.
func buildBuraksezer(names []string) (lookup, error) {
	members := make([]buraksezer.Member, len(names))
	for i, name := range names {
		members[i] = member(name)
	}
	partitions := 271
	if len(names) > 90 {
		partitions = 10007
	}
	c := buraksezer.New(members, buraksezer.Config{PartitionCount: partitions, ReplicationFactor: 20, Load: 1.25, Hasher: xxhasher{}})
	return func(key []byte) int { return len(c.LocateKey(key).String()) }, nil
}

func buildStathat(names []string) (lookup, error) {
	c := stathat.New()
	for _, name := range names {
		c.Add(name)
	}
	return func(key []byte) int {
		name, _ := c.Get(string(key))
		return len(name)
	}, nil
}

// buildSerialx gives every server a weight: by default it has one point, which is uneven.
func buildSerialx(names []string, weight int) (lookup, error) {
	w := make(map[string]int)
	for _, name := range names {
		w[name] = weight
	}
	r := hashring.NewWithWeights(w)
	return func(key []byte) int {
		name, _ := r.GetNode(string(key))
		return len(name)
	}, nil
}

func buildGroupcache(names []string) (lookup, error) {
	m := consistenthash.New(160, func(b []byte) uint32 { return uint32(xxhash.Sum64(b)) })
	m.Add(names...)
	return func(key []byte) int { return len(m.Get(string(key))) }, nil
}

func buildKkdai(names []string) (lookup, error) {
	m, err := kkdai.NewMaglev(names, maglev.SmallSize)
	if err != nil {
		return nil, err
	}
	return func(key []byte) int {
		name, _ := m.Get(string(key))
		return len(name)
	}, nil
}

func buildDgryski(names []string) (lookup, error) {
	r := dgryski.New(names, xxhash.Sum64String)
	return func(key []byte) int { return len(r.Lookup(string(key))) }, nil
}

func buildJump(names []string) (lookup, error) {
	return func(key []byte) int { return int(jump.Hash(xxhash.Sum64(key), len(names))) }, nil
}

// serverNames are addresses of n servers.
func serverNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.0.%d.%d:11211", i/250, i%250)
	}
	return names
}

// keys are 24 bytes long and in random order; there are more of them than a first-level cache holds.
var keys = func() [][]byte {
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user:%08x:profile:%02d", uint32(i)*2654435761, i%100)
	}
	return keys
}()

// each runs f for every placer and three numbers of servers.
func each(b *testing.B, f func(b *testing.B, p placer, names []string)) {
	for _, n := range []int{10, 100, 1000} {
		for _, p := range placers {
			b.Run(fmt.Sprintf("%s/n=%d", p.name, n), func(b *testing.B) { f(b, p, serverNames(n)) })
		}
	}
}

func mustBuild(t testing.TB, p placer, names []string) lookup {
	t.Helper()
	find, err := p.build(names)
	if err != nil {
		t.Fatalf("cannot build %s: %v", p.name, err)
	}
	return find
}
