// Package rendezvous places keys on servers by weighted rendezvous hashing (Thaler and Ravishankar, 1996), the default placement.
//
// The hash space is cut into 2^20 equal slots. In every slot each server draws a number from the slot and its own name; the best
// draw, corrected for weight, is the slot's home and the runners-up are its next candidates. Adding, removing or reweighting a server
// can therefore only move keys to or from that server. Small pools draw at every look-up; larger ones draw when a slot is first asked for, and keep
// its four best in a table, which answers in one memory access. Both forms place every key alike, so growing past the limit moves nothing extra.
// The price is evenness of a statistical kind: with 100 equal servers the fullest has about 2 % more than the mean.
package rendezvous

import (
	"fmt"
	"math/bits"
)

const (
	// DefaultSlots is the number of slots used by New.
	DefaultSlots = 1 << 20
	// DirectLimit is the largest pool that draws at look-up instead of keeping a table; docs/placement.md has the measurement.
	DirectLimit = 16

	minSlots = 1 << 8
	maxSlots = 1 << 22

	// fewServers is the largest pool for which comparing all servers without branches is faster than skipping the hopeless ones.
	fewServers = 64
)

// Table is a placement of the 64-bit hash space on a set of servers, which never changes. All methods may be called concurrently.
// The zero value is not usable; see New.
type Table struct {
	names   []string // in the caller's order
	weights []int
	index   []int    // position in names, by server identifier
	seeds   []uint64 // by identifier
	rates   []uint64 // by identifier
	rows    []row    // nil where servers draw at every look-up; see row
	slots   int
	worst   uint64 // see setSieve
	even    bool   // all weights are equal
	direct  bool   // never keep a table
}

// New returns the placement of DefaultSlots slots on the named servers. A server's name is its identity: the same names and weights
// place every key alike in any order and on any machine, only the indexes follow the order given. Weights are 1 to MaxWeight; nil means all 1.
// It returns an error that names the entry for an empty list, an empty or duplicate name, or a weight out of range.
func New(names []string, weights []int) (*Table, error) {
	return NewSlots(names, weights, DefaultSlots)
}

// NewSlots is New with a chosen number of slots, a power of two from 256 to 2^22 and at least the number of servers.
// Tables with different numbers of slots place keys differently.
func NewSlots(names []string, weights []int, slots int) (*Table, error) {
	t, err := draft(names, weights, slots)
	if err != nil {
		return nil, err
	}
	if len(names) > DirectLimit {
		t.rows = make([]row, t.slots)
	}
	return t, nil
}

// NewDirect is New without a table, whatever the number of servers: no memory and no time to build, but look-ups that take time
// in proportion to the number of servers. It places every key as New does.
func NewDirect(names []string, weights []int) (*Table, error) {
	t, err := draft(names, weights, DefaultSlots)
	if err != nil {
		return nil, err
	}
	t.direct = true
	return t, nil
}

// Len returns the number of servers.
func (t *Table) Len() int { return len(t.names) }

// Name returns the name of the server at an index returned by Pick.
func (t *Table) Name(i int) string { return t.names[i] }

// Pick appends to dst the indexes of the first n distinct servers for a hash, the home first, and returns the longer slice.
// It appends fewer when there are fewer servers. A smaller n gives a prefix of a larger one, and when a server leaves, the others keep their order.
// The hash must be uniform in its upper bits. It does not allocate when dst has room.
func (t *Table) Pick(dst []int, hash uint64, n int) []int {
	n = min(n, len(t.seeds))
	slot := t.slotOf(hash)
	if t.rows == nil || n > depth {
		return t.pickDirect(dst, slot, n)
	}
	for r := t.row(slot); n > 0; n-- {
		dst = append(dst, t.index[r&0xffff])
		r >>= 16
	}
	return dst
}

func (t *Table) slotOf(hash uint64) uint64 {
	return hash >> (64 - bits.TrailingZeros(uint(t.slots)))
}

// pickDirect draws for every server.
func (t *Table) pickDirect(dst []int, slot uint64, n int) []int {
	key := slotKey(slot)
	var ids [depth]uint64
	if n > depth || len(t.seeds) > fewServers || !t.leaders(&ids, key, n) {
		return t.pickRanked(dst, key, n)
	}
	for _, id := range ids[:max(n, 0)] {
		dst = append(dst, t.index[id])
	}
	return dst
}

// pickRanked is the general case. Beyond the first few ranks each further rank is a pass over the servers, which needs no memory.
func (t *Table) pickRanked(dst []int, key uint64, n int) []int {
	var best [depth]bid
	k := t.rank(&best, key, min(n, depth))
	for i := range k {
		dst = append(dst, t.index[best[i].id])
	}
	for ; k < n; k++ {
		best[depth-1] = t.following(key, best[depth-1])
		dst = append(dst, t.index[best[depth-1].id])
	}
	return dst
}

// draft checks the servers and returns a table that draws at look-up.
func draft(names []string, weights []int, slots int) (*Table, error) {
	if slots < minSlots || slots > maxSlots || slots&(slots-1) != 0 {
		return nil, fmt.Errorf("cannot build rendezvous table: %d slots: want a power of two from %d to %d", slots, minSlots, maxSlots)
	}
	if err := check(names, weights, slots); err != nil {
		return nil, fmt.Errorf("cannot build rendezvous table: %w", err)
	}
	t := &Table{slots: slots}
	for i, name := range names {
		w := 1
		if weights != nil {
			w = weights[i]
		}
		t.append(name, w)
	}
	if err := t.finish(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Table) append(name string, weight int) {
	t.index = append(t.index, len(t.names))
	t.names = append(t.names, name)
	t.weights = append(t.weights, weight)
	t.seeds = append(t.seeds, seedOf(name))
	t.rates = append(t.rates, rate(weight))
}
