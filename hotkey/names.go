package hotkey

// Limits of what a sketch keeps beside its counts.
const (
	maxNames  = 255
	maxKey    = 250
	minNameAt = 16 // the least count for which a name is kept
	// nameShare is the share of the total from which a key's name is kept, as a shift:
	// 1/4096. So at most 4096 keys want a name, and with the usual skews some 250.
	nameShare = 12
)

// name is a key whose count is large enough to be reported.
type name struct {
	hash   uint64
	slot   uint16
	size   uint8
	seen   uint32 // count at the last snapshot
	writes uint32 // since the last snapshot
	key    [maxKey]byte
}

// name keeps the key of a slot, if there is room or a key that counts clearly less. When
// there is neither, only larger counts will ask again.
func (s *Sketch) name(slot int, hash uint64, key []byte, count uint32) {
	at := len(s.names)
	if at < maxNames {
		s.names = s.names[:at+1]
	} else {
		least, c := s.leastNamed()
		if s.nameAt = max(minNameAt, c+c/4+1); count < s.nameAt {
			return
		}
		at = least
		s.named[s.names[at].slot] = 0
	}
	n := &s.names[at]
	n.hash, n.slot, n.seen, n.writes = hash, uint16(slot), count, 0
	n.size = uint8(copy(n.key[:], key))
	s.named[slot] = uint8(at + 1)
}

func (s *Sketch) leastNamed() (at int, count uint32) {
	count = s.count(s.names[0].slot)
	for i := range s.names[1:] {
		if c := s.count(s.names[i+1].slot); c < count {
			at, count = i+1, c
		}
	}
	return at, count
}

func (s *Sketch) count(slot uint16) uint32 {
	return s.buckets[slot/numSlots].counts[slot%numSlots]
}

// unname forgets the name of a slot that is given to another key.
func (s *Sketch) unname(slot int) {
	at := int(s.named[slot]) - 1
	if at < 0 {
		return
	}
	s.named[slot] = 0
	last := len(s.names) - 1
	if at != last {
		s.names[at] = s.names[last]
		s.named[s.names[at].slot] = uint8(at + 1)
	}
	s.names = s.names[:last]
}

// Wrote says that a request that was counted is a write. It costs little when the key is
// not one of the outstanding ones, for which alone writes are told apart.
func (s *Sketch) Wrote(hash uint64) {
	print, at := s.place(hash)
	b := &s.buckets[at]
	for i := range b.prints {
		if n := s.named[at*numSlots+i]; n != 0 && b.prints[i] == print {
			s.names[n-1].writes++
			return
		}
	}
}

// Snapshot is what was added to a sketch between two points in time, for the keys that
// are kept by name. The zero value is empty and ready to be filled.
type Snapshot struct {
	Total   uint64 // weight of all keys
	Entries []Entry
	keys    []byte
}

// Entry is one key of a Snapshot.
type Entry struct {
	Hash   uint64
	Key    []byte // of the snapshot: valid until it is filled again
	Count  uint32 // all that the sketch has of it, halved now and then
	Added  uint32 // weight since the snapshot before
	Writes uint32 // calls of Wrote since the snapshot before
}

// Snapshot replaces the contents of dst by what came since the last call.
func (s *Sketch) Snapshot(dst *Snapshot) {
	dst.Total = s.added
	dst.Entries = dst.Entries[:0]
	if cap(dst.keys) < len(s.names)*maxKey { // must not move while it is filled
		dst.keys = make([]byte, 0, maxNames*maxKey)
	}
	keys := dst.keys[:0]
	for i := range s.names {
		n := &s.names[i]
		c, from := s.count(n.slot), len(keys)
		keys = append(keys, n.key[:n.size]...)
		e := Entry{Hash: n.hash, Key: keys[from:], Count: c, Writes: n.writes}
		if c > n.seen { // it may also have been worn down
			e.Added = c - n.seen
		}
		dst.Entries = append(dst.Entries, e)
		n.seen, n.writes = c, 0
	}
	dst.keys = keys
	s.total += s.added
	s.added = 0
	s.nameAt = uint32(min(max(minNameAt, s.total>>nameShare), 1<<31))
}
