package rendezvous

const (
	depth  = 4      // candidates kept for a slot
	unused = 0xffff // an empty place in a row
)

// row lists the identifiers of a slot's best servers, 16 bits each, the home in the lowest.
type row uint64

const (
	emptyRow row = 1<<64 - 1 // unused everywhere
	notDrawn row = 0         // no slot's: its servers are distinct
	lowBits      = 0x0001000100010001
	highBits     = 0x8000800080008000
)

// at returns the server at a place, 0 being the home's.
func (r row) at(i int) int { return int(r >> (16 * uint(i)) & 0xffff) }

// with returns the row with a server at a place.
func (r row) with(i, id int) row {
	shift := 16 * uint(i)
	return r&^(0xffff<<shift) | row(id)<<shift
}

// lists reports whether the server is in the row, by the usual test of a word for a zero among its parts.
func (r row) lists(id int) bool {
	x := uint64(r) ^ uint64(id)*lowBits
	return (x-lowBits)&^x&highBits != 0
}

// without returns the row with the server removed and those after it moved up.
func (r row) without(id int) row {
	kept, n := emptyRow, 0
	for i := range depth {
		if r.at(i) != id {
			kept = kept.with(n, r.at(i))
			n++
		}
	}
	return kept
}
