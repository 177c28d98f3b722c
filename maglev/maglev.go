// Package maglev places keys on servers with Maglev's lookup table (Eisenbud et al., NSDI 2016, section 3.4), with weights.
//
// Servers take turns in claiming their next preferred free slot until the table is full. The load is the most even of all placements
// and a look-up is one memory access. The price is stability: when a server leaves, some keys of the others move too, next to none with
// 10 servers, 0.6 times the necessary ones with 100, several times with 1,000. Prefer rendezvous where each move is a cache miss.
package maglev

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"

	"cacherouter/rendezvous"
)

const (
	// SmallSize is the paper's small table, the one New uses: even to 1 % up to 650 servers.
	SmallSize = 65537
	// LargeSize is the paper's large table: ten times the memory and building time, and fewer needless moves.
	LargeSize = 655373

	// MaxSize is the largest table.
	MaxSize = 5000011
)

// Table is an immutable placement of the 64-bit hash space on a set of servers. All methods may be called concurrently.
// The zero value is not usable; see New.
type Table struct {
	names   []string // in the caller's order
	weights []int    // likewise; never nil
	order   []int    // indexes by ascending name
	slots   []uint16 // index of the server that owns the slot
	rest    *rendezvous.Table
}

// New returns the placement with a table of SmallSize slots. A server's name is its identity: the same names and weights place every key
// alike in any order and on any machine, only the indexes follow the order given. Weights are 1 to 65535; nil means all 1.
// It returns an error that names the entry for an empty list, an empty or duplicate name, or a weight out of range.
func New(names []string, weights []int) (*Table, error) {
	return NewSize(names, weights, SmallSize)
}

// NewSize is New with a chosen table size, a prime up to MaxSize and at least the number of servers. It takes time in proportion to the size, times
// how often the mean weight goes into the largest.
func NewSize(names []string, weights []int, size int) (*Table, error) {
	if size > MaxSize || !prime(size) {
		return nil, fmt.Errorf("cannot build maglev table: size %d: want a prime up to %d, such as %d or %d", size, MaxSize, SmallSize, LargeSize)
	}
	if len(names) > size {
		return nil, fmt.Errorf("cannot build maglev table: %d servers in %d slots", len(names), size)
	}
	rest, err := rendezvous.NewDirect(names, weights)
	if err != nil {
		return nil, fmt.Errorf("cannot build maglev table: %w", err)
	}
	t := &Table{names: append([]string(nil), names...), weights: make([]int, len(names)), order: byName(names), rest: rest}
	for i := range t.weights {
		t.weights[i] = 1
		if weights != nil {
			t.weights[i] = weights[i]
		}
	}
	t.fill(size)
	return t, nil
}

// Len returns the number of servers.
func (t *Table) Len() int { return len(t.names) }

// Name returns the name of the server at an index returned by Pick.
func (t *Table) Name(i int) string { return t.names[i] }

// Pick appends to dst the indexes of the first n distinct servers for a hash, the home first, and returns the longer slice.
// It appends fewer when there are fewer servers. The table names the home; the others follow in rendezvous order, which takes time in
// proportion to the number of servers. A smaller n gives a prefix of a larger one. The hash must be uniform in its upper bits.
// It does not allocate when dst has room.
func (t *Table) Pick(dst []int, hash uint64, n int) []int {
	if n <= 0 {
		return dst
	}
	home := int(t.slots[t.slotOf(hash)])
	if n == 1 {
		return append(dst, home)
	}
	from := len(dst)
	dst = t.rest.Pick(dst, hash, n)
	toFront(dst[from:], home)
	return dst
}

// toFront moves home to the front of picked; if it is not there, it replaces the last.
func toFront(picked []int, home int) {
	i := 0
	for i < len(picked)-1 && picked[i] != home {
		i++
	}
	copy(picked[1:], picked[:i])
	picked[0] = home
}

// slotOf scales the hash to the table, which unlike a remainder needs no division and keeps each slot one range of hashes.
func (t *Table) slotOf(hash uint64) uint64 {
	hi, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return hi
}

// Shares returns how many of the Slots slots are at home on each server, by the caller's index.
func (t *Table) Shares() []uint64 {
	shares := make([]uint64, len(t.names))
	for _, server := range t.slots {
		shares[server]++
	}
	return shares
}

// Slots returns the number of slots: the sum of Shares.
func (t *Table) Slots() int { return len(t.slots) }

// Spans yields the whole hash space in ascending order as pairs of a span's last hash and its home: a hash h belongs to the first pair
// whose first value is at least h, and the last pair's is math.MaxUint64. Walking two tables in step gives the exact share of
// the space that moves between them.
func (t *Table) Spans() iter.Seq2[uint64, int] {
	return func(yield func(last uint64, home int) bool) {
		size := uint64(len(t.slots))
		for slot, server := range t.slots {
			// The first hash of the next slot is (slot+1) * 2^64 / size, rounded up; for the last slot that is 2^64.
			next, rem := bits.Div64(uint64(slot+1)%size, 0, size)
			if rem == 0 {
				next--
			}
			if !yield(next, int(server)) {
				return
			}
		}
	}
}

// Digest returns a SHA-256 that is equal for equal placements whatever the order of the servers or the machine.
// It covers names, weights and the whole table.
func (t *Table) Digest() [32]byte {
	place := make([]uint16, len(t.names))
	b := []byte("maglev 1")
	for i, server := range t.order {
		place[server] = uint16(i)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(t.names[server])))
		b = append(b, t.names[server]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(t.weights[server]))
	}
	for _, server := range t.slots {
		b = binary.LittleEndian.AppendUint16(b, place[server])
	}
	return sha256.Sum256(b)
}
