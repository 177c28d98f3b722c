package embedded

import (
	"strconv"

	"cacherouter/memproto"
)

// execute does a request and appends its reply to out. Every request has the items for
// itself while it runs.
func (s *Server) execute(out []byte, r *memproto.Request) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := len(out)
	out = s.answer(out, r)
	if r.NoReply && memproto.Quiet(r.Verb, out[start:]) {
		return out[:start]
	}
	return out
}

func (s *Server) answer(out []byte, r *memproto.Request) []byte {
	m := &s.memory
	switch r.Verb {
	case memproto.Get, memproto.Gets:
		return m.retrieve(out, r, nil)
	case memproto.Gat, memproto.Gats:
		exptime, _ := memproto.NextWord(r.Args())
		return m.retrieve(out, r, exptime)
	case memproto.Set, memproto.Add, memproto.Replace, memproto.Append, memproto.Prepend, memproto.Cas:
		return say(out, m.classicStore(r))
	case memproto.Incr, memproto.Decr:
		return m.classicDelta(out, r)
	case memproto.Touch:
		return say(out, m.touch(r))
	case memproto.Delete:
		return say(out, m.delete(r))
	case memproto.MetaGet:
		return m.metaGet(out, r)
	case memproto.MetaSet:
		return m.metaSet(out, r)
	case memproto.MetaDelete:
		return m.metaDelete(out, r)
	case memproto.MetaArithmetic:
		return m.metaArithmetic(out, r)
	case memproto.MetaDebug:
		return m.metaDebug(out, r)
	}
	return s.answerAdmin(out, r)
}

// say appends a line; an empty one says nothing.
func say(out []byte, line string) []byte {
	if line == "" {
		return out
	}
	return append(append(out, line...), "\r\n"...)
}

// retrieve answers a get, and with an exptime a gat.
func (m *memory) retrieve(out []byte, r *memproto.Request, exptime []byte) []byte {
	var exp int64
	if exptime != nil {
		n, _ := memproto.ParseInt(exptime)
		exp = m.expiry(n)
	}
	cas := r.Verb == memproto.Gets || r.Verb == memproto.Gats
	for key, rest := memproto.NextWord(r.Keys); len(key) > 0; key, rest = memproto.NextWord(rest) {
		it := m.fetch(key)
		m.stats.got(it != nil)
		if exptime != nil {
			m.stats.touched(it != nil)
		}
		if it == nil {
			continue
		}
		if exptime != nil {
			it.exp = exp
		}
		out = appendValue(out, it, cas)
	}
	return append(out, "END\r\n"...)
}

func appendValue(out []byte, it *item, cas bool) []byte {
	out = append(append(out, "VALUE "...), it.key...)
	out = strconv.AppendUint(append(out, ' '), uint64(it.flags), 10)
	out = strconv.AppendInt(append(out, ' '), int64(len(it.value)), 10)
	if cas {
		out = strconv.AppendUint(append(out, ' '), it.cas, 10)
	}
	out = append(append(out, "\r\n"...), it.value...)
	return append(out, "\r\n"...)
}

// classicStore does a set, add, replace, append, prepend or cas. The parser has checked
// the numbers.
func (m *memory) classicStore(r *memproto.Request) string {
	_, rest := memproto.NextWord(r.Args())
	flags, rest := memproto.NextWord(rest)
	exptime, rest := memproto.NextWord(rest)
	w := write{verb: r.Verb, key: r.Key, value: value(r), drops: r.Verb == memproto.Set}
	n, _ := memproto.ParseUint(flags)
	w.flags = uint32(n)
	t, _ := memproto.ParseInt(exptime)
	w.exp = m.expiry(t)
	if r.Verb == memproto.Cas {
		_, rest = memproto.NextWord(rest)
		token, _ := memproto.NextWord(rest)
		w.cas, _ = memproto.ParseUint(token)
	}
	_, end := m.store(&w)
	return classicLine[end]
}

// value is a request's data block without its line end.
func value(r *memproto.Request) []byte { return r.Data[:len(r.Data)-2] }

const (
	lineNotNumeric    = "CLIENT_ERROR cannot increment or decrement non-numeric value"
	lineNoMemory      = "SERVER_ERROR out of memory"
	lineNoMemoryStore = "SERVER_ERROR out of memory storing object"
)

// classicLine is what the classic stores say.
var classicLine = [...]string{
	stored:    "STORED",
	notStored: "NOT_STORED",
	exists:    "EXISTS",
	notFound:  "NOT_FOUND",
	tooLarge:  memproto.LineTooLarge,
	noMemory:  lineNoMemoryStore,
}

func (m *memory) classicDelta(out []byte, r *memproto.Request) []byte {
	_, rest := memproto.NextWord(r.Args())
	word, _ := memproto.NextWord(rest)
	by, ok := memproto.ParseUint(word)
	if !ok {
		return say(out, "CLIENT_ERROR invalid numeric delta argument")
	}
	d := delta{key: r.Key, up: r.Verb == memproto.Incr, by: by}
	_, n, end := m.add(&d)
	switch end {
	case stored:
		out = strconv.AppendUint(out, n, 10)
		return append(out, "\r\n"...)
	case notFound:
		m.stats.missedDelta(d.up)
		return say(out, "NOT_FOUND")
	case noMemory:
		return say(out, lineNoMemory)
	}
	return say(out, lineNotNumeric)
}

func (m *memory) touch(r *memproto.Request) string {
	_, rest := memproto.NextWord(r.Args())
	word, _ := memproto.NextWord(rest)
	exptime, ok := memproto.ParseInt(word)
	if !ok {
		return memproto.LineBadExptime
	}
	it := m.fetch(r.Key)
	m.stats.touched(it != nil)
	if it == nil {
		return "NOT_FOUND"
	}
	it.exp = m.expiry(exptime)
	return "TOUCHED"
}

func (m *memory) delete(r *memproto.Request) string {
	it := m.get(r.Key)
	if it == nil {
		m.stats.deleteMisses++
		return "NOT_FOUND"
	}
	m.stats.deleteHits++
	m.unlink(it)
	return "DELETED"
}
