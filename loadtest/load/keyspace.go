//go:build linux

package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"cacherouter/loadtest/workload"
)

const (
	keyFormat  = "lt:%08d" // fixed width, so that key i is a slice of one slab
	keyLen     = 11        // of keys that are no longer than they must be
	longestKey = 250
	headLen    = 16
)

// keyspace holds the text of every key and how long its value is, laid out once so that composing a
// request and checking a reply are copies and compares.
//
// A value begins with the number of its write, the run it is of, the number of its key, and a checksum over
// the key's text, these and the size, four bytes each; then comes a filler. One shorter than that is cut off, and
// what is left of it is checked.
type keyspace struct {
	keys   []byte
	ends   []uint32 // of each key in keys; nil when all are keyLen long
	sums   []uint32 // checksum of each key's text
	sizes  []uint32 // of each key's value; nil when all are as long
	size   int      // bytes in a value, in the longest one if they differ
	filler []byte   // what follows the head in the longest value
	run    uint32   // tells this session's values from those that others left, if there are versions
	writes *versions
}

func newKeyspace(p Plan) *keyspace {
	k := &keyspace{sums: make([]uint32, p.Keys)}
	k.layKeys(p)
	var fixed bool
	if k.size, fixed = p.ValueSize.Fixed(); !fixed {
		k.sizes = p.ValueSize.Lay(p.Keys, 0, maxValue)
		k.size = int(slices.Max(k.sizes))
	}
	const text = "abcdefghijklmnopqrstuvwxyz0123456789"
	k.filler = bytes.Repeat([]byte(text), k.size/len(text)+1)[:max(0, k.size-headLen)]
	return k
}

// layKeys makes keys longer by what stands behind their number.
func (k *keyspace) layKeys(p Plan) {
	var lens []uint32
	if p.KeySize != "" && p.KeySize != workload.Fixed(keyLen) {
		lens = p.KeySize.Lay(p.Keys, keyLen, longestKey)
	}
	k.keys = make([]byte, 0, p.Keys*keyLen)
	for i := range p.Keys {
		begin := len(k.keys)
		k.keys = fmt.Appendf(k.keys, keyFormat, i)
		if lens != nil {
			for len(k.keys) < begin+int(lens[i]) {
				k.keys = append(k.keys, ':')
			}
			k.ends = append(k.ends, uint32(len(k.keys)))
		}
		k.sums[i] = crc32.ChecksumIEEE(k.keys[begin:])
	}
}

// key is valid as long as the keyspace is; it must not be written to.
func (k *keyspace) key(i uint32) []byte {
	if k.ends == nil {
		return k.keys[int(i)*keyLen:][:keyLen]
	}
	begin := uint32(0)
	if i > 0 {
		begin = k.ends[i-1]
	}
	return k.keys[begin:k.ends[i]]
}

// sizeOf is the size of key i's value.
func (k *keyspace) sizeOf(i uint32) int {
	if k.sizes == nil {
		return k.size
	}
	return int(k.sizes[i])
}

// head returns the beginning of a value that has room for it.
func (k *keyspace) head(i, version, run uint32) (h [headLen]byte) {
	binary.BigEndian.PutUint32(h[0:], version)
	binary.BigEndian.PutUint32(h[4:], run)
	binary.BigEndian.PutUint32(h[8:], i)
	binary.BigEndian.PutUint32(h[12:], mixed(k.sums[i], version, run, uint32(k.sizeOf(i))))
	return h
}

// mixed is a checksum of four numbers, each bit of which depends on each of theirs (murmur3's finalizer).
func mixed(a, b, c, d uint32) uint32 {
	x := uint64(a)<<32 | uint64(b)
	x ^= (uint64(c)<<32 | uint64(d)) * 0x9e3779b97f4a7c15
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return uint32(x ^ x>>33)
}

func (k *keyspace) appendValue(dst []byte, i, version uint32) []byte {
	size, h := k.sizeOf(i), k.head(i, version, k.run)
	if size < headLen {
		return append(dst, h[:size]...)
	}
	dst = append(dst, h[:]...)
	return append(dst, k.filler[:size-headLen]...)
}

// untold is the version of a value that has no room for one.
const untold = math.MaxUint32

// holds reports whether r is whole and a value of key i, and of which version: 0 for one that another run
// has left.
func (k *keyspace) holds(i uint32, r reply) (version uint32, ok bool) {
	size := k.sizeOf(i)
	if len(r.data) != size || r.key != nil && !bytes.Equal(r.key, k.key(i)) {
		return 0, false
	}
	var seen [headLen]byte
	copy(seen[:], r.data)
	version, run := binary.BigEndian.Uint32(seen[0:]), binary.BigEndian.Uint32(seen[4:])
	h := k.head(i, version, run)
	n := min(size, headLen)
	if !bytes.Equal(seen[:n], h[:n]) || !bytes.Equal(r.data[n:], k.filler[:size-n]) {
		return 0, false
	}
	switch {
	case size < 4:
		version = untold
	case size >= 8 && run != k.run:
		version = 0
	}
	return version, true
}
