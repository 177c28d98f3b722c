package compat

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// points is a ring of 32-bit points: a hash belongs to the first point at or after it, or to the first of all past the end.
// All the programs with rings look keys up so, and differ in where the points lie.
type points struct {
	at     []point
	first  []uint32 // first[b] is the first point whose upper bits are at least b
	shift  uint
	placed int // servers that have a point
}

type point struct {
	hash  uint32
	owner uint32
}

// seal sorts the points. Of equal points the server listed first comes first: the programs sort with qsort, which in glibc up to 2.36 is
// a stable merge sort, or compare the server's position too. A look-up meets only the first, so that nginx drops the others does not show.
func (r *points) seal(servers int) *points {
	slices.SortStableFunc(r.at, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	width := bits.Len(uint(len(r.at)))
	r.shift = uint(32 - width)
	r.first = make([]uint32, 1<<width)
	next := 0
	seen := make([]bool, servers)
	for i, p := range r.at {
		for ; next <= int(p.hash>>r.shift); next++ {
			r.first[next] = uint32(i)
		}
		if !seen[p.owner] {
			seen[p.owner] = true
			r.placed++
		}
	}
	for ; next < len(r.first); next++ {
		r.first[next] = uint32(len(r.at))
	}
	return r
}

// Pick walks from the hash to the next distinct servers.
func (r *points) Pick(dst []int, hash uint64, n int) []int {
	n = min(n, r.placed)
	from, at := len(dst), r.find(uint32(hash))
next:
	for len(dst)-from < n {
		server := int(r.at[at].owner)
		if at++; at == len(r.at) {
			at = 0
		}
		for _, seen := range dst[from:] {
			if seen == server {
				continue next
			}
		}
		dst = append(dst, server)
	}
	return dst
}

func (r *points) find(hash uint32) int {
	i := int(r.first[hash>>r.shift])
	for i < len(r.at) && r.at[i].hash < hash {
		i++
	}
	if i == len(r.at) {
		return 0
	}
	return i
}

func (r *points) spans(largest uint64) iter.Seq2[uint64, int] {
	largest = min(largest, math.MaxUint32)
	return func(yield func(uint64, int) bool) {
		next := uint64(0)
		for _, p := range r.at {
			if uint64(p.hash) < next {
				continue // the earlier of equal points owns the span
			}
			if uint64(p.hash) >= largest {
				yield(largest, int(p.owner))
				return
			}
			if !yield(uint64(p.hash), int(p.owner)) {
				return
			}
			next = uint64(p.hash) + 1
		}
		yield(largest, int(r.at[0].owner))
	}
}

func (r *points) exact() bool { return true }

func (r *points) digest(b []byte, c Config) []byte {
	order := make([]int, len(c.Servers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int { return cmp.Compare(c.Servers[i].Addr, c.Servers[k].Addr) })
	place := make([]uint32, len(order))
	for i, server := range order {
		place[server] = uint32(i)
		b = appendServer(b, c.Servers[server])
	}
	for _, p := range r.at {
		b = binary.LittleEndian.AppendUint32(b, p.hash)
		b = binary.LittleEndian.AppendUint32(b, place[p.owner])
	}
	return b
}

// addMD5 adds four points for each of count numbers: the little-endian words of MD5(name-number).
func (r *points) addMD5(owner int, name string, count int) {
	b := append([]byte(name), '-')
	for j := range count {
		sum := md5.Sum(strconv.AppendInt(b, int64(j), 10))
		for w := 0; w < len(sum); w += 4 {
			r.at = append(r.at, point{binary.LittleEndian.Uint32(sum[w:]), uint32(owner)})
		}
	}
}

// addHashed adds one point for each of count numbers: the lower half of the hash of name-number.
func (r *points) addHashed(owner int, name string, count int, hash func([]byte) uint64) {
	b := append([]byte(name), '-')
	for j := range count {
		h := hash(strconv.AppendInt(b, int64(j), 10))
		r.at = append(r.at, point{uint32(h), uint32(owner)})
	}
}

// limit refuses rings too large to hold. count is the number of points the last server brings it to.
func limit(count int, s Server) error {
	if count > maxPoints {
		return fmt.Errorf("more than %d points at server %q: lower the weights", maxPoints, s.Addr)
	}
	return nil
}

// ketamaCounts returns how many MD5 sums each server gets, 40 on average, as twemproxy and libmemcached compute it in C floats. Every step
// is rounded to float32, which also keeps compilers from fusing two of them. With 25, 47, 50 … equal servers this gives 39, not 40.
func ketamaCounts(servers []Server) []int {
	total := 0
	for _, s := range servers {
		total += s.Weight
	}
	counts := make([]int, len(servers))
	for i, s := range servers {
		share := float32(float32(s.Weight) / float32(total))
		x := float32(float32(float32(share*160)/4) * float32(len(servers)))
		counts[i] = int(math.Floor(float64(float32(float64(x) + 1e-10))))
	}
	return counts
}

// ketama returns the ring of 160 points a server on average, with the given names.
func ketama(servers []Server, name func(Server) string) *points {
	r := &points{}
	for i, count := range ketamaCounts(servers) {
		r.addMD5(i, name(servers[i]), count)
	}
	return r.seal(len(servers))
}
