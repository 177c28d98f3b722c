package hotkey

// Level says how hot a key is.
type Level uint8

// The levels.
const (
	Cold Level = iota
	Hot
	Severe
)

// String returns the level in lower case.
func (l Level) String() string { return [...]string{"cold", "hot", "severe"}[l] }

// Heat is the set of hot keys. It is immutable, and nil is the empty set.
type Heat struct {
	hashes []uint64 // open addressing
	levels []Level  // Cold: the place is free
	shift  uint
}

func newHeat(levels map[uint64]Level) *Heat {
	if len(levels) == 0 {
		return nil
	}
	h := &Heat{shift: 62}
	size := 4
	for ; size < 2*len(levels); size *= 2 {
		h.shift--
	}
	h.hashes, h.levels = make([]uint64, size), make([]Level, size)
	for hash, level := range levels {
		i := h.place(hash)
		h.hashes[i], h.levels[i] = hash, level
	}
	return h
}

// place returns where a hash is, or where it would be.
func (h *Heat) place(hash uint64) int {
	i := int(hash * 0x9e3779b97f4a7c15 >> h.shift)
	for h.levels[i] != Cold && h.hashes[i] != hash {
		i = (i + 1) & (len(h.levels) - 1)
	}
	return i
}

// Level returns how hot the key with a hash is. A key that shares its hash with a hot one
// looks like it.
func (h *Heat) Level(hash uint64) Level {
	if h == nil {
		return Cold
	}
	return h.levels[h.place(hash)]
}

// Len returns how many keys are hot.
func (h *Heat) Len() (n int) {
	if h == nil {
		return 0
	}
	for _, l := range h.levels {
		if l != Cold {
			n++
		}
	}
	return n
}
