package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/cespare/xxhash/v2"

	"cacherouter/rendezvous"
	"cacherouter/ring"
)

// World is keys and where they belong. It is immutable and may be used by several runs at once.
type World struct {
	servers int
	law     []uint64 // sums of the keys' popularity
	names   [][]byte
	hashes  []uint64
	spill   []uint8 // by key, all servers in rendezvous order
	walk    []uint8 // by key, all servers in the order of the ring
}

// scale makes whole numbers of the popularity of keys. It is coarse enough for powers that differ in
// their last bits between machines to become the same.
const scale = 1 << 36

// NewWorld makes keys whose popularity falls as rank^-zipf, the first one's being the highest.
func NewWorld(servers, keys int, zipf float64) (*World, error) {
	names := make([]string, servers)
	for i := range names {
		names[i] = fmt.Sprintf("s%d", i)
	}
	table, err := rendezvous.New(names, nil)
	if err != nil {
		return nil, err
	}
	points, err := ring.New(names, nil)
	if err != nil {
		return nil, err
	}
	w := &World{servers: servers}
	sum := uint64(0)
	var order []int
	for key := range keys {
		sum += uint64(scale * math.Pow(float64(key+1), -zipf))
		name := fmt.Appendf(nil, "key:%d", key)
		hash := xxhash.Sum64(name)
		w.law, w.names, w.hashes = append(w.law, sum), append(w.names, name), append(w.hashes, hash)
		order = table.Pick(order[:0], hash, servers)
		w.spill = appendBytes(w.spill, order)
		order = points.Pick(order[:0], hash, servers)
		w.walk = appendBytes(w.walk, order)
	}
	return w, nil
}

func appendBytes(dst []uint8, src []int) []uint8 {
	for _, i := range src {
		dst = append(dst, uint8(i))
	}
	return dst
}

// draw returns a key by its popularity.
func (w *World) draw(r *rand.Rand) int {
	u := r.Uint64N(w.law[len(w.law)-1])
	return sort.Search(len(w.law), func(i int) bool { return w.law[i] > u })
}

// Share returns the share of requests of the most popular keys.
func (w *World) Share(keys int) float64 { return float64(w.law[keys-1]) / float64(w.law[len(w.law)-1]) }
