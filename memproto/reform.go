package memproto

import (
	"bytes"
	"strconv"
)

// Parts says what a get wants to be told, one bit each. Gets of the text and of the meta
// protocol differ even where they want the same: a meta get may be told more of an item
// that is stale.
type Parts uint8

// The parts. No part at all stands for a get whose reply cannot be made of another's.
const (
	ClassicItem Parts = 1 << iota // value and flags
	ClassicCAS
	MetaValue
	MetaFlags
	MetaCAS
	MetaTTL
)

var metaParts = letters("vfkOqsct") // what can be made of another's reply

// Parts returns what the request wants to be told, 0 if it is no get, or one that must
// be asked by itself.
func (r *Request) Parts() (p Parts) {
	switch {
	case r.Verb == Get:
		return ClassicItem
	case r.Verb == Gets:
		return ClassicItem | ClassicCAS
	case r.Verb != MetaGet || r.flags&^metaParts != 0 || r.flags&letterBit('v') == 0 || !r.sound():
		return 0
	}
	p = MetaValue
	for _, x := range [...]struct {
		letter byte
		part   Parts
	}{{'f', MetaFlags}, {'c', MetaCAS}, {'t', MetaTTL}} {
		if r.flags&letterBit(x.letter) != 0 {
			p |= x.part
		}
	}
	return p
}

// maxOpaque is the length of the longest opaque that memcached takes, with its letter.
const maxOpaque = 32

// sound reports whether memcached finds nothing wrong with a meta request's flags.
func (r *Request) sound() bool {
	_, rest := NextWord(r.Args())
	seen := uint64(0)
	for word, rest := NextWord(rest); len(word) > 0; word, rest = NextWord(rest) {
		bit := letterBit(word[0])
		if seen&bit != 0 || word[0] == 'O' && len(word) > maxOpaque {
			return false
		}
		seen |= bit
	}
	return true
}

// Copyable reports whether a copy of an item has all these parts.
func (p Parts) Copyable() bool {
	return p&(ClassicCAS|MetaCAS|MetaTTL) == 0 && p&(ClassicItem|MetaFlags) != 0
}

// Kind returns what a get of these parts does.
func (p Parts) Kind() Kind {
	if p.Copyable() {
		return Copyable
	}
	return Reads
}

// Meta reports whether any part is wanted by a meta get.
func (p Parts) Meta() bool { return p&(MetaValue|MetaFlags|MetaCAS|MetaTTL) != 0 }

// HasOpaque reports whether the line of a meta request has an opaque.
func HasOpaque(line []byte) bool {
	_, rest := NextWord(line)
	_, rest = NextWord(rest)
	return metaFlag(rest, 'O') != nil
}

// AppendAsk appends a get that is told all these parts, and returns its verb.
func (p Parts) AppendAsk(dst, key []byte) ([]byte, Verb) {
	if !p.Meta() {
		verb, word := Get, "get "
		if p&ClassicCAS != 0 {
			verb, word = Gets, "gets "
		}
		return append(append(append(dst, word...), key...), "\r\n"...), verb
	}
	dst = append(append(append(dst, "mg "...), key...), " v f"...)
	if p&(ClassicCAS|MetaCAS) != 0 {
		dst = append(dst, " c"...)
	}
	if p&MetaTTL != 0 {
		dst = append(dst, " t"...)
	}
	return append(dst, "\r\n"...), MetaGet
}

// Found is what a reply to a get of one key tells. Its slices point into the reply.
type Found struct {
	Item
	CAS, TTL []byte // in digits; nil if it does not tell
	// Won is set when the asker is to renew the item, Stale when it is out of date, and
	// Lost when somebody else is to renew it.
	Won, Stale, Lost bool
}

// ParseFound reads a whole reply with a value. It reports false for any other.
func ParseFound(reply []byte) (f Found, ok bool) {
	end := bytes.IndexByte(reply, '\n')
	if end < 0 {
		return f, false
	}
	verb, rest := NextWord(bytes.TrimSuffix(reply[:end], []byte{'\r'}))
	var size []byte
	switch string(verb) {
	case "VALUE":
		_, rest = NextWord(rest)
		f.Flags, rest = NextWord(rest)
		size, rest = NextWord(rest)
		f.CAS, _ = NextWord(rest)
	case "VA":
		size, rest = NextWord(rest)
		f.parseFlags(rest)
	}
	n, ok := ParseUint(size)
	if !ok || n > uint64(len(reply)) || uint64(len(reply)-end-1) < n+2 {
		return f, false
	}
	f.Value = reply[end+1 : end+1+int(n)]
	return f, true
}

func (f *Found) parseFlags(flags []byte) {
	for word, rest := NextWord(flags); len(word) > 0; word, rest = NextWord(rest) {
		switch word[0] {
		case 'f':
			f.Flags = word[1:]
		case 'c':
			f.CAS = word[1:]
		case 't':
			f.TTL = word[1:]
		case 'W':
			f.Won = true
		case 'X':
			f.Stale = true
		case 'Z':
			f.Lost = true
		}
	}
}

// AppendReply appends the reply to a get of one key, whose line is given without its end,
// as a server that knows what was found would make it.
func (f *Found) AppendReply(dst []byte, v Verb, line, key []byte) []byte {
	if v == MetaGet {
		return f.appendMeta(dst, line)
	}
	dst = append(append(append(dst, "VALUE "...), key...), ' ')
	dst = append(append(dst, f.Flags...), ' ')
	dst = strconv.AppendInt(dst, int64(len(f.Value)), 10)
	if v == Gets {
		dst = append(append(dst, ' '), f.CAS...)
	}
	dst = append(append(dst, "\r\n"...), f.Value...)
	return append(dst, "\r\nEND\r\n"...)
}

func (f *Found) appendMeta(dst, line []byte) []byte {
	dst = strconv.AppendInt(append(dst, "VA "...), int64(len(f.Value)), 10)
	_, rest := NextWord(line)
	key, rest := NextWord(rest)
	for word, rest := NextWord(rest); len(word) > 0; word, rest = NextWord(rest) {
		switch word[0] {
		case 'f':
			dst = append(append(dst, " f"...), f.Flags...)
		case 's':
			dst = strconv.AppendInt(append(dst, " s"...), int64(len(f.Value)), 10)
		case 'c':
			dst = append(append(dst, " c"...), f.CAS...)
		case 't':
			dst = append(append(dst, " t"...), f.TTL...)
		case 'k':
			dst = append(append(dst, " k"...), key...)
		case 'O':
			dst = append(append(dst, ' '), word...)
		}
	}
	for _, x := range [...]struct {
		set    bool
		letter string
	}{{f.Lost, " Z"}, {f.Stale, " X"}, {f.Won, " W"}} { // in memcached's order
		if x.set {
			dst = append(dst, x.letter...)
		}
	}
	dst = append(append(dst, "\r\n"...), f.Value...)
	return append(dst, "\r\n"...)
}
