package embedded

import "time"

// memory holds the items of a server within a limit; the least recently used go first.
// It is not safe for concurrent use: Server.mu guards it.
type memory struct {
	clock   func() time.Time
	items   map[string]*item
	recent  recent
	used    int64 // cost of all items, bytes
	limit   int64 // bytes
	maxItem int   // bytes, of itemSize
	lastCas uint64
	stats   counters

	// A flush_all with a delay is kept as memcached keeps it: from the second flushAt on,
	// what was last used until then is dead. 0 means that none is pending or past.
	flushAt int64
}

func newMemory(cfg *Config) memory {
	return memory{
		clock:   cfg.Now,
		items:   make(map[string]*item),
		limit:   cfg.Memory,
		maxItem: cfg.MaxItem,
	}
}

// now is the time in seconds: memcached keeps no finer time of an item.
func (m *memory) now() int64 { return m.clock().Unix() }

const thirtyDays = 30 * 24 * 60 * 60

// expiry returns the second at which an item dies that is given this exptime: seconds
// from now up to thirty days, a point in time above, at once below zero, never at zero.
// Only 32 bits of the number count.
func (m *memory) expiry(exptime int64) int64 {
	t := int64(int32(exptime))
	switch {
	case t < 0:
		return 1 // long ago, but not never
	case t == 0 || t > thirtyDays:
		return t
	}
	return m.now() + t
}

// get returns the item under key, nil if there is none or it is dead. A dead one is
// removed.
func (m *memory) get(key []byte) *item {
	it := m.items[string(key)]
	if it == nil {
		return nil
	}
	now := m.now()
	switch {
	case m.flushed(it, now):
		m.stats.getFlushed++
	case it.exp != 0 && it.exp <= now:
		m.stats.getExpired++
	default:
		return it
	}
	m.unlink(it)
	return nil
}

func (m *memory) flushed(it *item, now int64) bool {
	return m.flushAt != 0 && m.flushAt <= now && it.used <= m.flushAt
}

func (m *memory) dead(it *item, now int64) bool {
	return it.exp != 0 && it.exp <= now || m.flushed(it, now)
}

// fetch is get for a reader: it leaves its trace on the item.
func (m *memory) fetch(key []byte) *item {
	it := m.get(key)
	if it != nil {
		m.bump(it)
		it.fetched = true
	}
	return it
}

// bump makes an item the latest used.
func (m *memory) bump(it *item) {
	it.used = m.now()
	m.recent.remove(it)
	m.recent.push(it)
}

// link puts an item in the place of whatever its key held, with a new cas token, and
// makes room for it. The caller has checked that it fits.
func (m *memory) link(it *item) {
	if old := m.items[it.key]; old != nil {
		m.unlink(old)
	}
	m.makeRoom(it.cost())
	m.renew(it)
	it.used = m.now()
	m.items[it.key] = it
	m.recent.push(it)
	m.used += it.cost()
	m.stats.totalItems++
}

func (m *memory) unlink(it *item) {
	delete(m.items, it.key)
	m.recent.remove(it)
	m.used -= it.cost()
}

// drop removes what is under key, if anything.
func (m *memory) drop(key []byte) {
	if it := m.items[string(key)]; it != nil {
		m.unlink(it)
	}
}

// renew gives an item a token that no item had before.
func (m *memory) renew(it *item) {
	m.lastCas++
	it.cas = m.lastCas
}

// makeRoom evicts the least recently used items until n more bytes fit.
func (m *memory) makeRoom(n int64) {
	now := m.now()
	for m.used+n > m.limit && m.recent.last != nil {
		it := m.recent.last
		switch {
		case m.dead(it, now):
			m.stats.reclaimed++
		default:
			m.stats.evictions++
			if !it.fetched {
				m.stats.evictedUnfetched++
			}
		}
		m.unlink(it)
	}
}

// flush removes everything, now or at the second at. A later flush replaces one that is
// pending.
func (m *memory) flush(at int64) {
	if at > m.now() {
		m.flushAt = at - 1
		return
	}
	m.flushAt = 0
	clear(m.items)
	m.recent = recent{}
	m.used = 0
}
