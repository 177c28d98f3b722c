package memproto

import (
	"bytes"
	"encoding/base64"
)

// Request is one request of a client. All its slices point into the buffer given to
// [Parser.Parse] and are valid until that buffer changes.
type Request struct {
	Verb Verb
	// Line is the command line without leading spaces and without its line end.
	Line []byte
	// Key is the first key in its wire form, nil for verbs without one.
	Key []byte
	// Keys runs from the first key of a get, gets, gat or gats to the end of the line.
	Keys []byte
	// NumKeys counts the keys of a retrieval, duplicates included; 1 for other keyed verbs.
	NumKeys int
	// Data is the value and the CRLF behind it; nil for verbs without a value.
	Data []byte
	// NoReply is set by a classic noreply and by the meta flag q.
	NoReply bool
	// Base64 is set when the meta flag b says that Key is base64.
	Base64 bool
	// Vivify is set when an mg may change what it reads (the flags N and R).
	Vivify bool

	// Refusal is the line that answers a refused request, without its line end;
	// empty when the client asked for silence.
	Refusal string
	// Fault is what is wrong with a refused request.
	Fault Fault
	// Skip counts the bytes behind a refused line that belong to it and must be dropped
	// before Refusal is said.
	Skip int
	// Drops is set on a refused store that must drop the item's old value all the same.
	Drops bool
	// Need is set on Incomplete: the bytes, from the start of the buffer, without which
	// it makes no sense to ask again. Zero when only more will tell.
	Need int

	raw            []byte // line and data as they came
	cutFrom, cutTo int    // where in Line noreply or q stands
	flags          uint64 // letters of a meta request's flags
}

// Kind says what a request on one key does to its item.
type Kind uint8

const (
	// Changes may change it, or its time to live.
	Changes Kind = iota
	// Reads changes nothing, but asks for what only the item's home can tell, such as its
	// cas token.
	Reads
	// Copyable is a read that a copy of the item answers as well, and whose reply has all
	// that another copy needs.
	Copyable
)

// Kind returns what the request does.
func (r *Request) Kind() Kind {
	switch {
	case r.Verb == Get, r.Verb == MetaGet && r.flags&^copyFlags == 0 && r.flags&itemFlags == itemFlags:
		return Copyable
	case r.Verb == Gets, r.Verb == MetaDebug, r.Verb == MetaGet && r.flags&^plainFlags == 0:
		return Reads
	}
	return Changes
}

// Repeatable reports whether the request may be sent again when its connection dies.
func (r *Request) Repeatable() bool {
	return verbs[r.Verb].reads || r.Verb == MetaGet && !r.Vivify
}

// Conditional reports whether an ms stores under a condition (the flag M).
func (r *Request) Conditional() bool { return r.flags&letterBit('M') != 0 }

// Args returns the line behind the verb.
func (r *Request) Args() []byte {
	_, rest := NextWord(r.Line)
	return rest
}

// RouteKey returns the bytes that decide where the request goes: the key, decoded if it
// is base64, so that both spellings of a key have one home. A key that does not decode
// is taken as it stands, and the backend says what is wrong with it. The decoded key is
// written to scratch, which must hold MaxKey bytes.
func (r *Request) RouteKey(scratch []byte) []byte {
	if !r.Base64 {
		return r.Key
	}
	return r.decodedKey(scratch)
}

// decodedKey is RouteKey for a key in base64.
func (r *Request) decodedKey(scratch []byte) []byte {
	n, err := base64.StdEncoding.Decode(scratch, r.Key)
	if err != nil || n == 0 {
		return r.Key
	}
	return scratch[:n]
}

// Forward returns the request as a backend shall get it: as it came, but without
// noreply or q, so that every request has its reply. The result is either a part of
// the parsed buffer or scratch, grown as needed.
func (r *Request) Forward(scratch []byte) []byte {
	if !r.NoReply || r.cutTo == 0 {
		return r.raw
	}
	scratch = append(scratch[:0], r.Line[:r.cutFrom]...)
	scratch = append(scratch, r.Line[r.cutTo:]...)
	scratch = append(scratch, "\r\n"...)
	return append(scratch, r.Data...)
}

// Status says what [Parser.Parse] found.
type Status uint8

const (
	// Incomplete means that more bytes are needed.
	Incomplete Status = iota
	// Complete means that the request is whole and well-formed.
	Complete
	// Refused means that the router itself answers, with Refusal, after Skip bytes.
	Refused
	// Hangup means that the connection must be closed without a word.
	Hangup
)

// Parser reads requests. The zero value has no limits on values and lines.
type Parser struct {
	// MaxValue is the longest value taken, in bytes; 0 means 2 GiB.
	MaxValue int
	// MaxLine is the longest line of a retrieval, in bytes; 0 means no limit.
	MaxLine int
}

// Parse reads the request at the start of b into r and returns how many bytes it has
// taken, 0 if it is not whole yet. It allocates nothing and keeps no state.
func (p *Parser) Parse(b []byte, r *Request) (int, Status) {
	*r = Request{}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return 0, p.unended(b)
	}
	line := b[:end]
	if end > 1 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	start := leadingSpaces(line)
	r.Line = line[start:]
	r.raw = b[start : end+1]
	status := p.parseLine(r)
	if status == Incomplete { // a data block follows
		return p.parseData(b, end+1, r)
	}
	return end + 1, status
}

// unended judges a line whose end has not arrived.
func (p *Parser) unended(b []byte) Status {
	if len(b) <= maxShortLine {
		return Incomplete
	}
	word, _ := NextWord(b)
	switch v := verbOf(word); {
	case verbs[v].shape != shapeGet && verbs[v].shape != shapeGat:
		return Hangup
	case p.MaxLine > 0 && len(b) > p.MaxLine:
		return Hangup
	}
	return Incomplete
}

func leadingSpaces(line []byte) int {
	i := 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	return i
}

// parseLine reads a command line. Incomplete means that r.Need bytes of data follow.
func (p *Parser) parseLine(r *Request) Status {
	if bytes.HasPrefix(r.Line, []byte("get ")) { // as most do
		r.Verb = Get
		return r.parseKeys(r.Line[len("get "):])
	}
	word, _ := NextWord(r.Line)
	if len(word) < 2 {
		return r.refuse(LineError)
	}
	r.Verb = verbOf(word)
	info := &verbs[r.Verb]
	if info.shape == shapeGet {
		return r.parseKeys(r.Line[len(word):])
	}
	var words wordList
	words.split(r.Line)
	if r.Verb == Unknown {
		return r.parseUnknown()
	}
	if words.n < info.min || info.max > 0 && words.n > info.max {
		return r.refuse(LineError)
	}
	switch info.shape {
	case shapeGat:
		return r.parseGat(&words)
	case shapeStore:
		return p.parseStore(r, &words)
	case shapeKeyed:
		r.NoReply = r.endsInNoreply(&words)
		if r.NoReply && words.n == 4 && string(words.w[2]) == "noreply" {
			return r.refuse("") // without the last word the other would silence the backend
		}
		return r.withKey(words.w[1])
	case shapeDelete:
		return r.parseDelete(&words)
	case shapeMeta:
		return r.parseMeta(&words)
	case shapeMetaSet:
		return p.parseMetaSet(r, &words)
	}
	return Complete
}

func (r *Request) refuse(line string) Status {
	r.Refusal, r.Fault = line, faultOf(line)
	return Refused
}

// parseUnknown closes on what looks like HTTP, as browsers can be made to talk to
// memcached ports, and answers anything else.
func (r *Request) parseUnknown() Status {
	if bytes.IndexByte([]byte("gsacidt"), r.Line[0]) >= 0 {
		return r.refuse(LineError) // memcached looks for HTTP only where no verb begins so
	}
	rest, last := r.Line, []byte(nil)
	for {
		word, after := NextWord(rest)
		if len(word) == 0 {
			break
		}
		last, rest = word, after
	}
	if bytes.HasPrefix(last, []byte("HTTP/")) {
		return Hangup
	}
	return r.refuse(LineError)
}

// withKey takes the key of a request with one key.
func (r *Request) withKey(key []byte) Status {
	if !validKey(key) || bytes.IndexByte(r.Line, 0) >= 0 {
		return r.refuseUnless(LineBadFormat)
	}
	r.Key, r.NumKeys = key, 1
	return Complete
}

// refuseUnless refuses, in silence if the client asked for it.
func (r *Request) refuseUnless(line string) Status {
	r.refuse(line)
	if r.NoReply {
		r.Refusal = ""
	}
	return Refused
}

func validKey(key []byte) bool { return len(key) > 0 && len(key) <= MaxKey }

// parseKeys checks the keys of a retrieval, all before any is asked for.
func (r *Request) parseKeys(keys []byte) Status {
	keys = keys[leadingSpaces(keys):]
	key, rest := NextWord(keys)
	if len(key) == 0 {
		return r.refuse(LineError)
	}
	if bytes.IndexByte(keys, 0) >= 0 {
		return r.refuse(LineBadFormat)
	}
	r.Key, r.Keys = key, keys
	for len(key) > 0 {
		if len(key) > MaxKey {
			return r.refuse(LineBadFormat)
		}
		r.NumKeys++
		if rest == nil {
			break
		}
		key, rest = NextWord(rest)
	}
	return Complete
}

func (r *Request) parseGat(words *wordList) Status {
	if _, ok := ParseInt(words.w[1]); !ok {
		return r.refuse(LineBadExptime)
	}
	if words.n == 2 {
		return r.refuse("END") // as 1.6.18: no key, no value
	}
	_, rest := NextWord(r.Line)
	_, rest = NextWord(rest)
	return r.parseKeys(rest)
}

func (r *Request) parseDelete(words *wordList) Status {
	if words.n > 2 {
		r.NoReply = r.endsInNoreply(words)
		zero := string(words.w[2]) == "0"
		if !(words.n == 3 && (zero || r.NoReply) || words.n == 4 && zero && r.NoReply) {
			return r.refuseUnless(LineBadDelete)
		}
	}
	return r.withKey(words.w[1])
}

// endsInNoreply looks at the last word, and remembers where it stands.
func (r *Request) endsInNoreply(words *wordList) bool {
	last := words.last()
	if string(last) != "noreply" {
		return false
	}
	r.cutFrom = bytes.LastIndex(r.Line, last)
	r.cutTo = r.cutFrom + len(last)
	return true
}
