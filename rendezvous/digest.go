package rendezvous

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// digestSlots is how many slots' candidates a digest covers: enough to show that two builds place alike, cheap at any size.
const digestSlots = 4096

// Digest returns a SHA-256 that is equal for equal placements whatever the order of the servers, the machine or the form of the table,
// and differs when a name, a weight or the number of slots does. It covers the candidates of 4,096 slots besides the inputs.
func (t *Table) Digest() [32]byte {
	order := make([]int, len(t.names)) // identifiers by name
	for id := range order {
		order[id] = id
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(t.names[t.index[a]], t.names[t.index[b]]) })
	place := make([]uint16, len(order))
	b := []byte("rendezvous 1")
	b = binary.LittleEndian.AppendUint64(b, uint64(t.slots))
	for i, id := range order {
		place[id] = uint16(i)
		name := t.names[t.index[id]]
		b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
		b = append(b, name...)
		b = binary.LittleEndian.AppendUint64(b, uint64(t.weights[t.index[id]]))
	}
	step := max(t.slots/digestSlots, 1)
	for slot := 0; slot < t.slots; slot += step {
		r := t.candidates(slot)
		for i := range min(depth, len(order)) {
			b = binary.LittleEndian.AppendUint16(b, place[r.at(i)])
		}
	}
	return sha256.Sum256(b)
}

func (t *Table) candidates(slot int) row {
	if t.rows != nil {
		return t.row(uint64(slot))
	}
	return t.ranked(slotKey(uint64(slot)))
}
