package router

import (
	"time"

	"cacherouter/backend"
	"cacherouter/balance"
	"cacherouter/bounded"

	"github.com/cespare/xxhash/v2"
)

// Picker orders the servers for a key. Implementations are immutable.
type Picker interface {
	// Pick appends to dst up to n distinct indexes of servers for a key's hash, the home
	// first.
	Pick(dst []int, hash uint64, n int) []int
}

// Placement orders servers by a hash of its own, so that it may be another program's than
// the one it stands beside. The zero value is none.
type Placement struct {
	Picker
	// Hash is the key hash that Picker wants; nil means the one that Table.Picker wants.
	Hash func(key []byte) uint64
}

// Order appends to dst up to n servers for a key whose hash by the table is known.
func (p *Placement) Order(dst []int, key []byte, hash uint64, n int) []int {
	if p.Hash != nil {
		hash = p.Hash(key)
	}
	return p.Pick(dst, hash, n)
}

// Reads says where reads of a server's keys go.
type Reads uint8

// The ways of reads.
const (
	// ReadHere: to the server.
	ReadHere Reads = iota
	// ReadOne: to the server while [Membership.Admit] lets them, else to the next candidate.
	ReadOne
	// ReadNext: to the next candidate.
	ReadNext
)

// Writes says where writes of a server's keys go.
type Writes uint8

// The ways of writes.
const (
	// WriteHere: to the server.
	WriteHere Writes = iota
	// WriteNowhere: they are answered with an error, as others may still read from the
	// server what this router cannot replace.
	WriteNowhere
	// WriteNext: to the next candidate, with a bounded time to live. Membership is told
	// what the server missed.
	WriteNext
)

// Server is one memcached of a pool, and how it may be used. The zero values of all but
// name and address stand for a server in good health.
type Server struct {
	// Name is the stable name that placement hashes.
	Name string
	// Address is host:port, or "unix:" and a path.
	Address string
	Reads   Reads
	Writes  Writes
	// Clean says that a write that goes to the next candidate must also delete its key
	// here before it is answered.
	Clean bool
	// Moved says that the next candidates may hold old copies of the server's keys: a write
	// must also delete its key there before it is answered.
	Moved bool
}

// Table says which servers there are, how they may be used and where keys go. It must not
// be changed once it is given to a router.
type Table struct {
	// Servers are those that the indexes of all pickers refer to; at least one. They may
	// be more than hold keys.
	Servers []Server
	Picker  Picker
	// Before is the placement that Picker has replaced, none when that was long ago: until
	// Until a key that misses at its home is asked of its home before, and writes delete
	// there as well. Servers whose Reads is ReadNext are not asked.
	Before Placement
	Until  time.Time
	// Astray says that what took the writes of a server while that was away need not be the
	// home of its keys when it is out. Then writes delete at the next candidates, too, for as
	// long as something that was written there may live.
	Astray bool
	// After are the placements that writes delete in as well, mostly none: the one that will
	// replace Picker within seconds, as other routers may already use it.
	After []Placement
	// Shares returns the share of the hashes of keys, from 0 to 1, that is at home on each of
	// the first of Servers; those beyond have none. It is for who shows it, on any goroutine, and may
	// take milliseconds the first time. Nil means that nobody knows.
	Shares func() []float64
	// Hash is the key hash that Picker wants; nil means xxhash64.
	Hash func(key []byte) uint64
	// Bound counts what is in flight at each of Servers, in their order, and says when a
	// home is full; nil means that homes take all. A read of a full home's key goes to one
	// of the next candidates, if Spill allows.
	Bound *bounded.Bound
	Spill Spill
	// Copies is on how many servers each item lives, its home included; 0 means 1. Writes
	// go to all of them, reads to the one that Balance chooses, whose Weights are those of
	// Servers.
	Copies  int
	Balance balance.Config
	// Near says which of Servers reads of copies prefer to those that Balance would choose;
	// nil means none.
	Near []bool
}

// Limits of a table.
const (
	// MaxDepth is how many candidates after the home may be read from.
	MaxDepth = maxReach - 2
	// MaxCopies is on how many servers an item may live.
	MaxCopies = maxReach - 1
)

// Spill says which keys may be read from elsewhere when their home is full.
type Spill uint8

// The kinds of spill.
const (
	// SpillNone: no key.
	SpillNone Spill = iota
	// SpillHot: keys that are hot. Others gain nothing, as nobody asks for their copies.
	SpillHot
	// SpillAny: any key.
	SpillAny
)

// Membership is told how servers do and what they miss. Its methods are called on all
// loops and must not wait.
type Membership interface {
	// Observe tells what happened to one loop's calls to a server since the last time: at
	// once when one failed, else a few times a second.
	Observe(server string, o backend.Observation)
	// Admit asks to read from a server whose Reads is ReadOne.
	Admit(server string) bool
	// Missed says that a server missed a write of a key, or may have. The key is copied.
	Missed(server string, hash uint64, key []byte)
	// MissedAll says that a server missed a flush_all.
	MissedAll(server string)
	// Lag tells the length of a loop's turn.
	Lag(turn time.Duration)
}

// KeyHash returns the hash of a key that Picker wants.
func (t *Table) KeyHash(key []byte) uint64 {
	if t.Hash == nil {
		return xxhash.Sum64(key)
	}
	return t.Hash(key)
}
