package ring

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// fill sorts the points of all servers by counting them per bucket of the index: a bucket holds one or two, so what is left to
// sort is next to nothing. Servers come in ascending order of name, and of equal points the first to come stays first.
func (r *Ring) fill(total int) {
	width := bits.Len(uint(total)) // buckets = 2^width > total
	r.shift = uint(64 - width)
	r.first = make([]uint32, 1<<width)
	unsorted := make([]uint64, 0, total)
	for _, server := range r.order {
		unsorted = r.appendPoints(unsorted, server)
	}
	r.count(unsorted)
	r.points, r.owners = make([]uint64, total), make([]uint16, total)
	used := make([]uint32, len(r.first))
	k := 0
	for _, server := range r.order {
		for range r.weights[server] * r.density {
			r.place(used, unsorted[k], uint16(server))
			k++
		}
	}
}

// appendPoints appends a server's points: the hashes of the length of its name (which keeps names apart that are each other's
// beginnings), the name, and the number of the point.
func (r *Ring) appendPoints(points []uint64, server int) []uint64 {
	name := r.names[server]
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
	b = append(b, name...)
	b = append(b, 0, 0, 0, 0)
	for i := range r.weights[server] * r.density {
		binary.LittleEndian.PutUint32(b[len(b)-4:], uint32(i))
		points = append(points, xxhash.Sum64(b))
	}
	return points
}

// count sets where each bucket begins.
func (r *Ring) count(points []uint64) {
	for _, p := range points {
		r.first[p>>r.shift]++
	}
	sum := uint32(0)
	for b, n := range r.first {
		r.first[b] = sum
		sum += n
	}
}

// place inserts a point into its bucket, after equal ones.
func (r *Ring) place(used []uint32, point uint64, owner uint16) {
	bucket := point >> r.shift
	begin := int(r.first[bucket])
	i := begin + int(used[bucket])
	used[bucket]++
	for ; i > begin && r.points[i-1] > point; i-- {
		r.points[i], r.owners[i] = r.points[i-1], r.owners[i-1]
	}
	r.points[i], r.owners[i] = point, owner
}
