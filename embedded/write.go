package embedded

import (
	"bytes"
	"strconv"

	"cacherouter/memproto"
)

// outcome is how a write ended.
type outcome uint8

const (
	stored outcome = iota
	notStored
	exists
	notFound
	tooLarge
	noMemory
	notNumeric
)

// write is one store of any kind.
type write struct {
	verb   memproto.Verb // Set, Add, Replace, Append, Prepend or Cas
	key    []byte
	value  []byte // is copied
	flags  uint32
	exp    int64 // as memory.expiry returns it
	cas    uint64
	binary bool // the key came as base64
	// yield lets a cas with an older token store the value as stale.
	yield bool
	// drops says that a value that does not fit takes the old one with it.
	drops bool
}

func (w *write) item() *item {
	return &item{key: string(w.key), value: bytes.Clone(w.value), flags: w.flags, exp: w.exp, binary: w.binary}
}

// store does a write and returns the item as it then is, nil if nothing was stored.
func (m *memory) store(w *write) (*item, outcome) {
	if fault := m.fits(len(w.key), len(w.value), w.flags); fault != stored {
		m.stats.refused(fault)
		if w.drops {
			m.drop(w.key)
		}
		return nil, fault
	}
	m.stats.cmdSet++
	old := m.get(w.key)
	if old == nil {
		return m.storeNew(w)
	}
	return m.storeOver(old, w)
}

// fits returns stored, or why an item cannot be.
func (m *memory) fits(key, value int, flags uint32) outcome {
	size := itemSize(key, value, flags)
	switch {
	case size > m.maxItem:
		return tooLarge
	case int64(size+bookkeeping) > m.limit:
		return noMemory
	}
	return stored
}

func (m *memory) storeNew(w *write) (*item, outcome) {
	switch w.verb {
	case memproto.Set, memproto.Add:
		it := w.item()
		m.link(it)
		return it, stored
	case memproto.Cas:
		m.stats.casMisses++
		return nil, notFound
	}
	return nil, notStored
}

func (m *memory) storeOver(old *item, w *write) (*item, outcome) {
	var it *item
	switch w.verb {
	case memproto.Add:
		m.bump(old)
		return nil, notStored
	case memproto.Cas:
		return m.storeCas(old, w)
	case memproto.Append, memproto.Prepend:
		if w.cas != 0 && w.cas != old.cas {
			return nil, exists
		}
		if it = m.joined(old, w); it == nil {
			return nil, notStored
		}
	default:
		it = w.item()
	}
	m.link(it)
	return it, stored
}

// storeCas stores if nobody wrote since the token was given out. A writer that comes too
// late may leave its value as a stale one: then nothing else of the item changes.
func (m *memory) storeCas(old *item, w *write) (*item, outcome) {
	it := w.item()
	switch {
	case w.cas == 0 || w.cas != old.cas && !(w.yield && w.cas < old.cas):
		m.stats.casBadval++
		return nil, exists
	case w.cas != old.cas:
		it.exp, it.stale, it.won = old.exp, true, old.won
	}
	m.stats.casHits++
	m.link(it)
	return it, stored
}

// joined returns the item that an append or prepend makes, nil if it would be too large.
// Only the client's flags and the expiry are kept; its marks are not.
func (m *memory) joined(old *item, w *write) *item {
	n := len(old.value) + len(w.value)
	if m.fits(len(w.key), n, old.flags) != stored {
		return nil
	}
	a, b := old.value, w.value
	if w.verb == memproto.Prepend {
		a, b = b, a
	}
	value := append(append(make([]byte, 0, n), a...), b...)
	return &item{key: old.key, value: value, flags: old.flags, exp: old.exp}
}

// delta is one incr or decr.
type delta struct {
	key []byte
	up  bool
	by  uint64
	cas uint64 // the token the item must have; 0 for any
}

// add does an incr or decr, and returns the item and its new number. A number wraps at
// 2^64 and stops at 0.
func (m *memory) add(d *delta) (*item, uint64, outcome) {
	it := m.get(d.key)
	if it == nil {
		return nil, 0, notFound
	}
	n, numeric := memproto.ParseUint(it.value)
	switch {
	case len(it.value) == 0:
		return nil, 0, notNumeric
	case d.cas != 0 && d.cas != it.cas:
		return nil, 0, exists
	case !numeric:
		return nil, 0, notNumeric
	case d.up:
		m.stats.incrHits++
		n += d.by
	default:
		m.stats.decrHits++
		n -= min(n, d.by)
	}
	return m.setNumber(it, n)
}

// setNumber writes a number into an item. One that is no longer than the value is
// written in its place, with spaces behind it. A longer one makes a new item; what is
// returned is then the old one with the new token, and as in memcached 1.6.18 a time to
// live given to it is lost.
func (m *memory) setNumber(it *item, n uint64) (*item, uint64, outcome) {
	digits := strconv.AppendUint(nil, n, 10)
	if len(digits) <= len(it.value) {
		m.renew(it)
		for i := copy(it.value, digits); i < len(it.value); i++ {
			it.value[i] = ' '
		}
		m.bump(it)
		return it, n, stored
	}
	if m.fits(len(it.key), len(digits), it.flags) != stored {
		return nil, 0, noMemory
	}
	grown := &item{key: it.key, value: digits, flags: it.flags, exp: it.exp}
	m.link(grown)
	it.cas = grown.cas
	return it, n, stored
}
