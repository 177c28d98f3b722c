//go:build linux

package load

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
)

const (
	keyFormat  = "lt:%08d" // fixed width, so that key i is a slice of one slab
	keyLen     = 11
	headFormat = "%s %08x " // the key and the checksum that every value begins with
	headLen    = keyLen + 10
)

// keyspace holds the text of every key and the beginning of its value, laid out once so that
// composing a request and checking a reply are copies and compares.
type keyspace struct {
	keys   []byte // keyLen bytes for each key
	heads  []byte // headLen bytes for each key
	filler []byte // what follows the head in every value
	size   int    // bytes in a value
}

// newKeyspace lays out n keys whose values are size bytes. A value is its key, a checksum over the
// key and the size, and a filler; one shorter than its head is cut off.
func newKeyspace(n, size int) *keyspace {
	k := &keyspace{size: size}
	k.keys = make([]byte, 0, n*keyLen)
	k.heads = make([]byte, 0, n*headLen)
	for i := range n {
		k.keys = fmt.Appendf(k.keys, keyFormat, i)
		key := k.key(uint32(i))
		k.heads = fmt.Appendf(k.heads, headFormat, key, checksum(key, size))
	}
	const text = "abcdefghijklmnopqrstuvwxyz0123456789"
	k.filler = bytes.Repeat([]byte(text), size/len(text)+1)[:max(0, size-headLen)]
	return k
}

func checksum(key []byte, size int) uint32 {
	return crc32.ChecksumIEEE(strconv.AppendInt(bytes.Clone(key), int64(size), 10))
}

// key is valid as long as the keyspace is; it must not be written to.
func (k *keyspace) key(i uint32) []byte {
	return k.keys[int(i)*keyLen:][:keyLen]
}

func (k *keyspace) head(i uint32) []byte {
	return k.heads[int(i)*headLen:][:min(headLen, k.size)]
}

func (k *keyspace) appendValue(dst []byte, i uint32) []byte {
	dst = append(dst, k.head(i)...)
	return append(dst, k.filler...)
}

// holds reports whether r is exactly the hit that a get of key i must see.
func (k *keyspace) holds(i uint32, r reply) bool {
	if len(r.data) != k.size || r.key != nil && !bytes.Equal(r.key, k.key(i)) {
		return false
	}
	head := k.head(i)
	return bytes.Equal(r.data[:len(head)], head) && bytes.Equal(r.data[len(head):], k.filler)
}
