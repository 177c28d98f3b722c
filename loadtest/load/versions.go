//go:build linux

package load

import "sync"

// versions knows which values of each key may be seen. It judges as package ledger does, at a cost that 10^6
// requests a second can bear: keys are numbers, nothing is allocated, and writes of one key may overlap, as
// they do when many clients write a hot one. It may be used concurrently.
//
// Writes of a key are numbered from 1. Those that overlap, each with the next, are a group, and any of a group
// may be what the cache holds in the end. Once one of a group was acknowledged, everything before the group
// is out of date, because all of that had ended when the group began. A write that failed may still take effect
// at any time: its value may always be seen.
type versions struct {
	keys  []writes
	locks [64]struct {
		sync.Mutex // guards the keys whose number has this remainder
		_          [56]byte
	}

	mu     sync.Mutex // guards failed
	failed map[uint64]struct{}
}

// writes is what is known of one key.
type writes struct {
	issued  uint32 // the last one begun
	base    uint32 // the first of the last group
	floor   uint32 // what is below was replaced
	pending uint16 // of the last group: begun and not ended
	clean   bool   // none of the last group has failed
	dies    uint32 // when the first of the last group ceases to live, in seconds of the wall clock; 0 is never
}

// mark is what was known when a read began.
type mark struct {
	floor  uint32
	stored uint32 // the last write, if it was acknowledged and nothing was under way: a miss has lost it
}

func newVersions(keys int) *versions {
	return &versions{keys: make([]writes, keys), failed: map[uint64]struct{}{}}
}

// at locks key i.
func (v *versions) at(i uint32) (*writes, *sync.Mutex) {
	l := &v.locks[i%uint32(len(v.locks))].Mutex
	l.Lock()
	return &v.keys[i], l
}

// begin begins a write of key i and returns its number.
func (v *versions) begin(i uint32) uint32 {
	w, l := v.at(i)
	defer l.Unlock()
	w.issued++
	if w.pending == 0 {
		w.base, w.clean, w.dies = w.issued, true, 0
	}
	w.pending++
	return w.issued
}

// end ends a write. dies is when the item ceases to live, 0 for never.
func (v *versions) end(i, version uint32, acknowledged bool, dies uint32) {
	w, l := v.at(i)
	defer l.Unlock()
	w.pending--
	if !acknowledged {
		w.clean = false
		v.fail(i, version)
		return
	}
	w.floor = w.base
	if dies != 0 && (w.dies == 0 || dies < w.dies) {
		w.dies = dies
	}
}

func failure(i, version uint32) uint64 { return uint64(i)<<32 | uint64(version) }

func (v *versions) fail(i, version uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed[failure(i, version)] = struct{}{}
}

func (v *versions) hasFailed(i, version uint32) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, failed := v.failed[failure(i, version)]
	return failed
}

// read begins a read of key i.
func (v *versions) read(i uint32) mark {
	w, l := v.at(i)
	defer l.Unlock()
	m := mark{floor: w.floor}
	if w.pending == 0 && w.clean {
		m.stored = w.issued
	}
	return m
}

// verdict says what a value is.
type verdict uint8

const (
	fresh verdict = iota + 1
	late          // of a write that failed, though a later one was acknowledged
	stale         // replaced before it was asked for
	wrong         // of a write that never was
)

// judge says what the value of a version is that a read has returned.
func (v *versions) judge(i uint32, m mark, version uint32) verdict {
	w, l := v.at(i)
	issued := w.issued
	l.Unlock()
	switch {
	case version == untold:
		return fresh
	case version > issued:
		return wrong
	case version >= m.floor:
		return fresh
	case v.hasFailed(i, version):
		return late
	}
	return stale
}

// lost reports whether a miss is of something that was stored, is to live still, and was not written since.
func (v *versions) lost(i uint32, m mark, second uint32) bool {
	const grain = 2 // seconds: servers count whole ones, and so do we
	w, l := v.at(i)
	defer l.Unlock()
	return m.stored != 0 && w.issued == m.stored && (w.dies == 0 || second+grain < w.dies)
}
