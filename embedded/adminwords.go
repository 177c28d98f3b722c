package embedded

import "cacherouter/memproto"

// answerAdmin answers what carries no key.
func (s *Server) answerAdmin(out []byte, r *memproto.Request) []byte {
	switch r.Verb {
	case memproto.MetaNoop:
		return say(out, "MN")
	case memproto.Version:
		return say(out, "VERSION "+s.cfg.Version)
	case memproto.Stats:
		return s.answerStats(out, r.Args())
	case memproto.Shutdown:
		return say(out, "ERROR: shutdown not enabled")
	}
	line := memproto.LineError // whatever else memcached's operators may say
	switch r.Verb {
	case memproto.Verbosity:
		line = s.setVerbosity(r.Args())
	case memproto.FlushAll:
		line = s.memory.flushAll(r.Args())
	case memproto.CacheMemlimit:
		line = s.memory.setLimit(r.Args())
	}
	if lastWord(r.Args()) == "noreply" {
		return out
	}
	return say(out, line)
}

func lastWord(args []byte) (last string) {
	for word, rest := memproto.NextWord(args); len(word) > 0; word, rest = memproto.NextWord(rest) {
		last = string(word)
	}
	return last
}

// setVerbosity remembers the level for stats settings and does nothing else with it.
func (s *Server) setVerbosity(args []byte) string {
	word, _ := memproto.NextWord(args)
	level, ok := memproto.ParseUint(word)
	if !ok {
		return memproto.LineBadFormat
	}
	s.verbosity = int(min(level, 2))
	return "OK"
}

func (m *memory) flushAll(args []byte) string {
	m.stats.cmdFlush++
	word, rest := memproto.NextWord(args)
	more, _ := memproto.NextWord(rest)
	var at int64
	if len(word) > 0 && (string(word) != "noreply" || len(more) > 0) {
		exptime, ok := memproto.ParseInt(word)
		if !ok {
			return memproto.LineBadExptime
		}
		at = m.expiry(exptime)
	}
	m.flush(at)
	return "OK"
}

// setLimit changes the memory limit, which is given in MiB.
func (m *memory) setLimit(args []byte) string {
	word, _ := memproto.NextWord(args)
	mib, ok := memproto.ParseUint(word)
	switch {
	case !ok:
		return memproto.LineError
	case mib < 8:
		return "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
	case mib > 1e9:
		return "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"
	}
	m.limit = int64(mib) << 20
	m.makeRoom(0)
	return "OK"
}

// answerStats answers stats in the shapes that clients and exporters parse.
func (s *Server) answerStats(out, args []byte) []byte {
	m := &s.memory
	what, rest := memproto.NextWord(args)
	switch string(what) {
	case "":
		return s.generalStats(out)
	case "settings":
		return s.settingStats(out)
	case "items":
		return m.itemStats(out)
	case "slabs":
		return m.slabStats(out)
	case "sizes":
		return append(out, "STAT sizes_status disabled\r\nEND\r\n"...)
	case "conns":
		return s.connStats(out)
	case "cachedump":
		return m.cachedump(out, rest)
	case "detail":
		return statsDetail(out, rest)
	case "reset":
		m.stats = counters{}
		return say(out, "RESET")
	}
	return say(out, memproto.LineError)
}

func (m *memory) cachedump(out, args []byte) []byte {
	id, rest := memproto.NextWord(args)
	limit, _ := memproto.NextWord(rest)
	if len(limit) == 0 {
		return say(out, "CLIENT_ERROR bad command line")
	}
	class, ok := memproto.ParseUint(id)
	n, ok2 := memproto.ParseUint(limit)
	switch {
	case !ok || !ok2:
		return say(out, memproto.LineBadFormat)
	case class >= 64:
		return say(out, "CLIENT_ERROR Illegal slab id")
	case class != slabClass:
		return say(out, "END")
	}
	return m.dump(out, n)
}

// statsDetail answers as a server that never counts by prefix.
func statsDetail(out, args []byte) []byte {
	switch word, _ := memproto.NextWord(args); string(word) {
	case "on", "off":
		return say(out, "OK")
	case "dump":
		return say(out, "END")
	}
	return say(out, "CLIENT_ERROR usage: stats detail on|off|dump")
}
