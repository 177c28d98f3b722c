package embedded

import (
	"fmt"
	"os"
	"strconv"
)

// counters are what stats reset sets to zero.
type counters struct {
	cmdGet, cmdSet, cmdFlush, cmdTouch, cmdMeta uint64

	getHits, getMisses, getExpired, getFlushed uint64
	deleteHits, deleteMisses                   uint64
	incrHits, incrMisses                       uint64
	decrHits, decrMisses                       uint64
	casHits, casMisses, casBadval              uint64
	touchHits, touchMisses                     uint64
	tooLarge, noMemory                         uint64
	totalItems                                 uint64
	evictions, evictedUnfetched, reclaimed     uint64
}

// got counts a key that was asked for.
func (c *counters) got(hit bool) {
	c.cmdGet++
	if hit {
		c.getHits++
	} else {
		c.getMisses++
	}
}

// touched counts a key that was given a new time to live.
func (c *counters) touched(hit bool) {
	c.cmdTouch++
	if hit {
		c.touchHits++
	} else {
		c.touchMisses++
	}
}

// missedDelta counts an incr or decr of nothing.
func (c *counters) missedDelta(up bool) {
	if up {
		c.incrMisses++
	} else {
		c.decrMisses++
	}
}

// refused counts a value that does not fit.
func (c *counters) refused(why outcome) {
	if why == tooLarge {
		c.tooLarge++
	} else {
		c.noMemory++
	}
}

func appendStat(out []byte, name string, value any) []byte {
	return fmt.Appendf(out, "STAT %s %v\r\n", name, value)
}

// generalStats appends what plain stats answers, under memcached's names.
func (s *Server) generalStats(out []byte) []byte {
	m, c := &s.memory, &s.memory.stats
	now := m.now()
	for _, st := range []struct {
		name  string
		value any
	}{
		{"pid", os.Getpid()},
		{"uptime", now - s.started},
		{"time", now},
		{"version", s.cfg.Version},
		{"pointer_size", strconv.IntSize},
		{"curr_connections", s.countConns()},
		{"total_connections", s.accepted.Load()},
		{"cmd_get", c.cmdGet},
		{"cmd_set", c.cmdSet},
		{"cmd_flush", c.cmdFlush},
		{"cmd_touch", c.cmdTouch},
		{"cmd_meta", c.cmdMeta},
		{"get_hits", c.getHits},
		{"get_misses", c.getMisses},
		{"get_expired", c.getExpired},
		{"get_flushed", c.getFlushed},
		{"delete_misses", c.deleteMisses},
		{"delete_hits", c.deleteHits},
		{"incr_misses", c.incrMisses},
		{"incr_hits", c.incrHits},
		{"decr_misses", c.decrMisses},
		{"decr_hits", c.decrHits},
		{"cas_misses", c.casMisses},
		{"cas_hits", c.casHits},
		{"cas_badval", c.casBadval},
		{"touch_hits", c.touchHits},
		{"touch_misses", c.touchMisses},
		{"store_too_large", c.tooLarge},
		{"store_no_memory", c.noMemory},
		{"bytes_read", s.bytesRead.Load()},
		{"bytes_written", s.bytesWritten.Load()},
		{"limit_maxbytes", m.limit},
		{"accepting_conns", 1},
		{"threads", 1},
		{"bytes", m.used},
		{"curr_items", len(m.items)},
		{"total_items", c.totalItems},
		{"evicted_unfetched", c.evictedUnfetched},
		{"evictions", c.evictions},
		{"reclaimed", c.reclaimed},
	} {
		out = appendStat(out, st.name, st.value)
	}
	return append(out, "END\r\n"...)
}

// settingStats appends what stats settings answers.
func (s *Server) settingStats(out []byte) []byte {
	for _, st := range []struct {
		name  string
		value any
	}{
		{"maxbytes", s.memory.limit},
		{"maxconns", 0},
		{"verbosity", s.verbosity},
		{"evictions", "on"},
		{"cas_enabled", "yes"},
		{"detail_enabled", "no"},
		{"num_threads", 1},
		{"binding_protocol", "ascii"},
		{"auth_enabled_sasl", "no"},
		{"auth_enabled_ascii", "no"},
		{"item_size_max", s.memory.maxItem},
		{"flush_enabled", "yes"},
		{"dump_enabled", "yes"},
	} {
		out = appendStat(out, st.name, st.value)
	}
	return append(out, "END\r\n"...)
}

// All items are shown as one slab class, number 1: there are no slabs here, but clients
// look for the items of each.
const slabClass = 1

func (m *memory) itemStats(out []byte) []byte {
	if len(m.items) > 0 {
		prefix := fmt.Sprintf("items:%d:", slabClass)
		out = appendStat(out, prefix+"number", len(m.items))
		out = appendStat(out, prefix+"age", max(0, m.now()-m.recent.last.used))
		out = appendStat(out, prefix+"mem_requested", m.used)
		out = appendStat(out, prefix+"evicted", m.stats.evictions)
		out = appendStat(out, prefix+"evicted_unfetched", m.stats.evictedUnfetched)
		out = appendStat(out, prefix+"outofmemory", m.stats.noMemory)
		out = appendStat(out, prefix+"reclaimed", m.stats.reclaimed)
	}
	return append(out, "END\r\n"...)
}

func (m *memory) slabStats(out []byte) []byte {
	active := 0
	if len(m.items) > 0 {
		active = 1
		prefix := fmt.Sprintf("%d:", slabClass)
		out = appendStat(out, prefix+"chunk_size", m.maxItem)
		out = appendStat(out, prefix+"chunks_per_page", 1)
		out = appendStat(out, prefix+"total_pages", 1)
		out = appendStat(out, prefix+"used_chunks", len(m.items))
		out = appendStat(out, prefix+"get_hits", m.stats.getHits)
		out = appendStat(out, prefix+"cmd_set", m.stats.cmdSet)
		out = appendStat(out, prefix+"delete_hits", m.stats.deleteHits)
		out = appendStat(out, prefix+"incr_hits", m.stats.incrHits)
		out = appendStat(out, prefix+"decr_hits", m.stats.decrHits)
		out = appendStat(out, prefix+"cas_hits", m.stats.casHits)
		out = appendStat(out, prefix+"cas_badval", m.stats.casBadval)
		out = appendStat(out, prefix+"touch_hits", m.stats.touchHits)
	}
	out = appendStat(out, "active_slabs", active)
	out = appendStat(out, "total_malloced", m.used)
	return append(out, "END\r\n"...)
}

// maxDump bounds a cachedump, in bytes.
const maxDump = 2 << 20

// dump lists up to limit items, 0 for all, the latest used first.
func (m *memory) dump(out []byte, limit uint64) []byte {
	start, now := len(out), m.now()
	for it := m.recent.first; it != nil && len(out)-start < maxDump; it = it.next {
		if it.binary || m.dead(it, now) {
			continue
		}
		out = fmt.Appendf(out, "ITEM %s [%d b; %d s]\r\n", it.key, len(it.value), it.exp)
		if limit--; limit == 0 {
			break
		}
	}
	return append(out, "END\r\n"...)
}
