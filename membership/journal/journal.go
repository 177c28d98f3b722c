// Package journal remembers which keys a server missed writes of while it was away, so
// that they can be deleted from it before it serves again: a server that kept its memory
// must not bring back what was replaced or deleted meanwhile.
//
// A journal is bounded. One that overflowed says so and holds nothing: the server then
// has to be emptied. That is always safe, as a cache may lose anything at any time.
package journal

import (
	"bytes"
	"cmp"
	"sync"
)

// Config bounds a journal. The zero value of a field means its default.
type Config struct {
	// MaxKeys is how many keys are kept; default 65,536.
	MaxKeys int
	// MaxBytes is how many bytes of keys are kept; default 8 MiB.
	MaxBytes int
}

func (c Config) withDefaults() Config {
	c.MaxKeys = cmp.Or(c.MaxKeys, 1<<16)
	c.MaxBytes = cmp.Or(c.MaxBytes, 8<<20)
	return c
}

// Entry is a key that the server missed a write of, and its hash.
type Entry struct {
	Hash uint64
	Key  []byte
}

// Journal is what one server missed. Any goroutine may use it.
type Journal struct {
	cfg Config

	mu       sync.Mutex
	keys     map[uint64][][]byte // guarded by mu, as all below: by hash
	count    int
	bytes    int
	overflow bool
}

// New returns an empty journal.
func New(c Config) *Journal {
	return &Journal{cfg: c.withDefaults(), keys: map[uint64][][]byte{}}
}

// Missed notes that the server missed a write of a key, whose hash is given. The key is
// copied; one that is noted already costs nothing more.
func (j *Journal) Missed(hash uint64, key []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.overflow || contains(j.keys[hash], key) {
		return
	}
	if j.count++; j.count > j.cfg.MaxKeys || j.bytes+len(key) > j.cfg.MaxBytes {
		j.clear()
		j.overflow = true
		return
	}
	j.bytes += len(key)
	j.keys[hash] = append(j.keys[hash], bytes.Clone(key))
}

// MissedAll notes a write that no bounded list of keys describes, such as flush_all: the
// journal overflows.
func (j *Journal) MissedAll() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clear()
	j.overflow = true
}

// Take removes about max keys and returns them in no order, and whether the journal has
// overflowed, which it then still has. Keys whose replay fails are to be noted again.
func (j *Journal) Take(max int) (entries []Entry, overflow bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for hash, ks := range j.keys {
		if len(entries) >= max {
			break
		}
		for _, k := range ks {
			entries = append(entries, Entry{hash, k})
			j.bytes -= len(k)
		}
		j.count -= len(ks)
		delete(j.keys, hash)
	}
	return entries, j.overflow
}

// Len returns how many keys are noted.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}

// Overflow reports whether more was missed than is noted.
func (j *Journal) Overflow() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.overflow
}

// Reset empties the journal, after the server was.
func (j *Journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clear()
	j.overflow = false
}

func (j *Journal) clear() {
	clear(j.keys)
	j.count, j.bytes = 0, 0
}

func contains(keys [][]byte, key []byte) bool {
	for _, k := range keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}
