package router

import (
	"cacherouter/memproto"
)

// dispatch acts on a whole request. False means that it must wait until everything
// before it has been answered; nothing has then been done.
func (s *session) dispatch(r *memproto.Request) bool {
	if s.mustWait(r.Verb) {
		return false
	}
	s.front.stats.Requests[r.Verb]++
	if s.front.r.cfg.Nodes != nil && s.discovers(r) {
		return true
	}
	switch r.Verb {
	case memproto.Get, memproto.Gets, memproto.Gat, memproto.Gats:
		if r.NumKeys > 1 {
			s.multiget(r)
			return true
		}
		s.send(r)
	case memproto.MetaNoop:
		s.say("MN")
	case memproto.Version:
		s.say("VERSION " + s.front.r.cfg.Version)
	case memproto.Verbosity:
		s.verbosity(r)
	case memproto.FlushAll:
		s.flushAll(r)
	case memproto.Stats:
		s.serveStats(r)
	case memproto.CacheMemlimit:
		s.say("CLIENT_ERROR cache_memlimit not allowed")
	case memproto.Shutdown:
		s.say("ERROR: shutdown not enabled")
	case memproto.Denied, memproto.ConfigGet:
		s.say(memproto.LineError)
	case memproto.Quit:
		s.end()
	default:
		if s.only != nil || !s.tooLarge(r) {
			s.send(r)
		}
	}
	return true
}

// mustWait reports whether a request has to wait until those before it are answered, and
// keeps the client from being read until then.
func (s *session) mustWait(v memproto.Verb) bool {
	s.fenced = s.n > 0 && (s.stepping > 0 || v == memproto.FlushAll || v == memproto.Stats || v == memproto.MetaNoop && len(s.loose) > 0)
	return s.fenced
}

// noreply reports whether the last word of a line is noreply.
func noreply(args []byte) bool {
	var last []byte
	for word, rest := memproto.NextWord(args); len(word) > 0; word, rest = memproto.NextWord(rest) {
		last = word
	}
	return string(last) == "noreply"
}

// sayUnless answers unless the client wants silence.
func (s *session) sayUnless(quiet bool, line string) {
	if !quiet {
		s.say(line)
	}
}

// verbosity takes the level and does nothing with it: a router has many clients, and
// one of them may not fill its log.
func (s *session) verbosity(r *memproto.Request) {
	quiet := noreply(r.Args())
	level, _ := memproto.NextWord(r.Args())
	if _, ok := memproto.ParseUint(level); !ok {
		s.sayUnless(quiet, memproto.LineBadFormat)
		return
	}
	s.sayUnless(quiet, "OK")
}

// flushAll flushes every server; the client is told OK when all have.
func (s *session) flushAll(r *memproto.Request) {
	args := r.Args()
	quiet := noreply(args)
	if !s.front.mayFlush() {
		s.sayUnless(quiet, "CLIENT_ERROR flush_all not allowed")
		return
	}
	line := []byte("flush_all")
	delay, rest := memproto.NextWord(args)
	more, _ := memproto.NextWord(rest)
	if len(delay) > 0 && (!quiet || len(more) > 0) {
		if _, ok := memproto.ParseInt(delay); !ok {
			s.sayUnless(quiet, memproto.LineBadExptime)
			return
		}
		line = append(append(line, ' '), delay...)
	}
	s.flush(r, quiet, append(line, "\r\n"...))
}

// forget deletes the key of a refused store at its home. The client sees nothing of it.
func (s *session) forget(r *memproto.Request) {
	line := make([]byte, 0, memproto.MaxKey+16)
	if r.Base64 {
		line = append(append(append(line, "md "...), r.Key...), " b\r\n"...)
	} else {
		line = append(append(append(line, "delete "...), r.Key...), "\r\n"...)
	}
	var del memproto.Request
	if _, status := s.front.parser.Parse(line, &del); status != memproto.Complete {
		return
	}
	q := s.push(&del)
	q.hidden = true
	q.dispatch(&del)
}
