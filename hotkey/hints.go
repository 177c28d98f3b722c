package hotkey

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// MaxHints is how many keys a router tells others of. With 64 what it tells takes 769
// bytes, which fits into one packet of gossip.
const MaxHints = 64

// Hint is what a router tells others of one of its hottest keys: not the key, but its
// hash, by which others that place keys in the same way know it, if they have it. A hash
// hides a key from those who cannot guess it.
type Hint struct {
	Hash  uint64
	Rate  uint32 // requests a second, at most 2^30-1
	Level Level
}

// Hints returns the keys with the highest rates, at most MaxHints, in order of their
// hashes.
func (c *Collector) Hints() []Hint {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Hint
	for hash, t := range c.tracks {
		if t.requests.fast >= 1 {
			all = append(all, Hint{hash, uint32(min(t.requests.fast, maxHintRate)), t.level})
		}
	}
	slices.SortFunc(all, func(a, b Hint) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Hash, b.Hash))
	})
	all = all[:min(MaxHints, len(all))]
	slices.SortFunc(all, func(a, b Hint) int { return cmp.Compare(a.Hash, b.Hash) })
	return all
}

// The encoding is a byte with its version, then twelve bytes for each hint in ascending
// order of hashes: the hash, and one number with the level in its two upper bits and the
// rate below, both big-endian. So a set of hints has one encoding.
const (
	hintVersion = 1
	hintSize    = 12
	rateBits    = 30
	maxHintRate = 1<<rateBits - 1
)

// AppendHints appends the encoding of what Hints returns to dst.
func AppendHints(dst []byte, hints []Hint) []byte {
	dst = append(dst, hintVersion)
	for _, h := range hints {
		dst = binary.BigEndian.AppendUint64(dst, h.Hash)
		dst = binary.BigEndian.AppendUint32(dst, uint32(h.Level)<<rateBits|min(h.Rate, maxHintRate))
	}
	return dst
}

// ParseHints returns the hints that b encodes. It fails for anything that AppendHints
// does not make.
func ParseHints(b []byte) ([]Hint, error) {
	if len(b) == 0 || b[0] != hintVersion {
		return nil, fmt.Errorf("cannot read hints: they are not of version %d", hintVersion)
	}
	b = b[1:]
	if len(b)%hintSize != 0 || len(b) > MaxHints*hintSize {
		return nil, fmt.Errorf("cannot read hints: %d bytes are not those of 0 to %d", len(b), MaxHints)
	}
	hints := make([]Hint, len(b)/hintSize)
	for i := range hints {
		h := &hints[i]
		h.Hash = binary.BigEndian.Uint64(b[i*hintSize:])
		n := binary.BigEndian.Uint32(b[i*hintSize+8:])
		h.Level, h.Rate = Level(n>>rateBits), n&maxHintRate
		switch {
		case h.Level > Severe:
			return nil, fmt.Errorf("cannot read hints: there is no level %d", h.Level)
		case i > 0 && h.Hash <= hints[i-1].Hash:
			return nil, fmt.Errorf("cannot read hints: hash %d is not larger than the one before", i)
		}
	}
	return hints, nil
}
