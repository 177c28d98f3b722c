package router

import "github.com/cespare/xxhash/v2"

// Picker orders the servers for a key. Implementations are immutable.
type Picker interface {
	// Pick appends to dst up to n distinct indexes of servers for a key's hash, the home
	// first.
	Pick(dst []int, hash uint64, n int) []int
}

// Server is one memcached of a pool.
type Server struct {
	// Name is the stable name that placement hashes.
	Name string
	// Address is host:port, or "unix:" and a path.
	Address string
}

// Table says which servers there are and where keys go. It must not be changed once it
// is given to a router.
type Table struct {
	// Servers are those that Picker's indexes refer to; at least one.
	Servers []Server
	Picker  Picker
	// Hash is the key hash that Picker wants; nil means xxhash64.
	Hash func(key []byte) uint64
}

func (t *Table) hash(key []byte) uint64 {
	if t.Hash == nil {
		return xxhash.Sum64(key)
	}
	return t.Hash(key)
}
