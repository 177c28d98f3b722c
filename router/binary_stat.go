package router

import (
	"fmt"
	"strings"

	"cacherouter/memproto"
)

// statBinary answers a stat request. Statistics are collected in text and put into
// binary at the end; the names are read as loosely as memcached reads them.
func (s *session) statBinary(what string) {
	r := &memproto.Request{Verb: memproto.Stats}
	switch {
	case what == "" || what == "items" || what == "slabs" || what == "sizes":
		s.fanStats(r, []byte(what))
	case what == "conns":
		s.connStats(r)
	case strings.HasPrefix(what, "settings"):
		s.push(r).finish(statLines(s.front.settings()))
	case strings.HasPrefix(what, "reset"), isDetail(what):
		s.push(r).finish(statLines(nil))
	default:
		s.tell(s.front.say(memproto.CodeNotFound, ""))
	}
}

// isDetail reports whether what is said of statistics by prefix, which a router does not
// count, is understood.
func isDetail(what string) bool {
	rest, ok := strings.CutPrefix(what, "detail ")
	return ok && (strings.HasPrefix(rest, "on") || strings.HasPrefix(rest, "off") || strings.HasPrefix(rest, "dump"))
}

// statLines writes statistics in text.
func statLines(stats []stat) (b []byte) {
	for _, st := range stats {
		b = fmt.Appendf(b, "STAT %s %s\r\n", st.name, st.value)
	}
	return append(b, "END\r\n"...)
}
