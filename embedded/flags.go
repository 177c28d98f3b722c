package embedded

import (
	"encoding/base64"
	"strconv"

	"cacherouter/memproto"
)

// metaFlags are the flags of a meta request, read as memcached 1.6.18 reads them: all
// commands know the same letters, and ignore those that mean nothing to them.
type metaFlags struct {
	key       []byte // decoded
	words     []byte // the flags as they came
	exp       int64  // T, as memory.expiry returns it; counts if hasExp
	vivifyExp int64  // N, likewise, if vivify
	recache   int64  // R, likewise
	cas       uint64 // C, if hasCas
	initial   uint64 // J
	by        uint64 // D
	flags     uint32 // F
	mode      byte   // M; 0 without one

	hasExp, vivify, hasCas       bool
	value, noBump, binary, stale bool // v u b I
	longOpaque                   bool // O is too long: each command says so in its own time
}

const (
	lineBadToken   = "CLIENT_ERROR bad token in command line format"
	lineBadKey     = "CLIENT_ERROR error decoding key"
	lineDuplicate  = "CLIENT_ERROR duplicate flag"
	lineLongOpaque = "CLIENT_ERROR opaque token too long"
)

// maxOpaque is the longest opaque, in bytes, its letter included.
const maxOpaque = 32

// read takes the flags of r, words, and the key. It returns the line that refuses them,
// empty if all is well. A flag that is unknown or there twice is told at once, of others
// the last that is wrong; F has no line of its own and yields to the others.
func (f *metaFlags) read(m *memory, r *memproto.Request, words []byte) (refusal string) {
	*f = metaFlags{key: r.Key, words: words, by: 1}
	var seen [128]bool
	for word, rest := memproto.NextWord(words); len(word) > 0; word, rest = memproto.NextWord(rest) {
		letter := word[0]
		if letter >= 127 || seen[letter] {
			return lineDuplicate
		}
		seen[letter] = true
		wrong, known := f.set(m, letter, word[1:])
		if !known {
			return "CLIENT_ERROR invalid flag"
		}
		if wrong != "" && (refusal == "" || wrong != memproto.LineBadFormat) {
			refusal = wrong
		}
	}
	return refusal
}

// set takes one flag.
func (f *metaFlags) set(m *memory, letter byte, arg []byte) (wrong string, known bool) {
	switch letter {
	case 'P', 'L', 'k', 's', 't', 'c', 'f', 'l', 'h', 'q':
	case 'O':
		f.longOpaque = 1+len(arg) > maxOpaque
	case 'v':
		f.value = true
	case 'u':
		f.noBump = true
	case 'I':
		f.stale = true
	case 'b':
		wrong = f.decodeKey()
	case 'M':
		if len(arg) != 1 {
			return "CLIENT_ERROR incorrect length for M token", true
		}
		f.mode = arg[0]
	case 'T':
		f.hasExp = true
		wrong = m.readExpiry(&f.exp, arg)
	case 'N':
		f.vivify = true
		wrong = m.readExpiry(&f.vivifyExp, arg)
	case 'R':
		wrong = m.readExpiry(&f.recache, arg)
	default:
		return f.setNumber(letter, arg)
	}
	return wrong, true
}

// setNumber takes a flag with an unsigned number.
func (f *metaFlags) setNumber(letter byte, arg []byte) (wrong string, known bool) {
	n, ok := memproto.ParseUint(arg)
	switch letter {
	case 'F':
		f.flags, wrong = uint32(n), memproto.LineBadFormat
	case 'C':
		f.cas, f.hasCas, wrong = n, true, lineBadToken
	case 'J':
		f.initial, wrong = n, "CLIENT_ERROR invalid numeric initial value"
	case 'D':
		f.by, wrong = n, "CLIENT_ERROR invalid numeric delta value"
	default:
		return "", false
	}
	if ok {
		wrong = ""
	}
	return wrong, true
}

func (m *memory) readExpiry(to *int64, arg []byte) (wrong string) {
	n, ok := memproto.ParseInt(arg)
	if !ok {
		return lineBadToken
	}
	*to = m.expiry(n)
	return ""
}

func (f *metaFlags) decodeKey() (wrong string) {
	f.binary = true
	key, err := base64.StdEncoding.AppendDecode(nil, f.key)
	if err != nil || len(key) == 0 {
		return lineBadKey
	}
	f.key = key
	return ""
}

// appendKey appends a key; a binary one as base64, and the flag that says so.
func appendKey(out, key []byte, binary bool) []byte {
	if !binary {
		return append(out, key...)
	}
	out = base64.StdEncoding.AppendEncode(out, key)
	return append(out, " b"...)
}

// finish appends the flags of a reply and the line end: the opaque and the key, which
// every kind of reply gives back, and what more, if not nil, makes of the others.
func (f *metaFlags) finish(out []byte, more func(out []byte, letter byte) []byte) []byte {
	for word, rest := memproto.NextWord(f.words); len(word) > 0; word, rest = memproto.NextWord(rest) {
		switch {
		case word[0] == 'O':
			out = append(append(out, ' '), word...)
		case word[0] == 'k':
			out = appendKey(append(out, " k"...), f.key, f.binary)
		case more != nil:
			out = more(out, word[0])
		}
	}
	return append(out, "\r\n"...)
}

// appendTTL appends the flag t: the seconds an item has left, -1 if it stays.
func appendTTL(out []byte, it *item, now int64) []byte {
	out = append(out, " t"...)
	if it.exp == 0 {
		return append(out, "-1"...)
	}
	return strconv.AppendUint(out, uint64(uint32(it.exp-now)), 10)
}

func appendCas(out []byte, cas uint64) []byte {
	return strconv.AppendUint(append(out, " c"...), cas, 10)
}

// flagWords returns what follows the key of a meta request.
func flagWords(r *memproto.Request) []byte {
	_, words := memproto.NextWord(r.Args())
	return words
}
