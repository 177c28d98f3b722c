package memproto

import (
	"bytes"
	"errors"
)

// ErrBadReply means that a backend's bytes are no answer to what it was asked. Where
// the next reply begins is then unknown, and the connection is of no more use.
var ErrBadReply = errors.New("reply makes no sense")

// replySet is a set of kinds of reply lines.
type replySet uint32

const (
	rStored replySet = 1 << iota // STORED, NOT_STORED
	rExists
	rNotFound
	rDeleted
	rTouched
	rOK // OK, RESET
	rNumber
	rVersion
	rValue
	rEnd
	rStat
	rMetaValue
	rMetaStatus // HD NS EX NF
	rMetaEnd    // EN, and HD of an mg without v
	rMetaDebug
	rFault // ERROR, CLIENT_ERROR, SERVER_ERROR: allowed everywhere
)

// Unit is one step of a reply: a whole reply, or one value of a retrieval.
type Unit struct {
	// Size counts its bytes; 0 when more are needed.
	Size int
	// Need is the bytes, from the start of the buffer, without which it makes no sense
	// to ask again; 0 when only more will tell.
	Need int
	// Last is set on the unit that ends the reply.
	Last bool
	// Fault is set on an ERROR, CLIENT_ERROR or SERVER_ERROR line.
	Fault bool
}

const maxReplyLine = 8192

// NextUnit reads the next unit of a reply to v at the start of b. With whole set, a
// retrieval's single value and its END are one unit, so nothing is passed on before it
// is complete. The error is [ErrBadReply].
func NextUnit(b []byte, v Verb, whole bool) (Unit, error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		if len(b) > maxReplyLine {
			return Unit{}, ErrBadReply
		}
		return Unit{}, nil
	}
	if end == 0 || b[end-1] != '\r' {
		return Unit{}, ErrBadReply
	}
	line := b[:end-1]
	if verbs[v].replies&rValue != 0 && IsValue(line) {
		return valueUnit(b, line, whole)
	}
	kind := classify(line)
	if kind == rFault {
		return Unit{Size: end + 1, Last: true, Fault: true}, nil
	}
	if kind&verbs[v].replies == 0 {
		return Unit{}, ErrBadReply
	}
	switch kind {
	case rMetaValue:
		return blockUnit(b, end+1, replyLength(line, len("VA ")), "")
	case rStat:
		return Unit{Size: end + 1}, nil
	}
	return Unit{Size: end + 1, Last: true}, nil
}

// valueUnit reads a VALUE block, and with whole the END behind it.
func valueUnit(b, line []byte, whole bool) (Unit, error) {
	tail := ""
	if whole {
		tail = "END\r\n"
	}
	key := bytes.IndexByte(line[len("VALUE "):], ' ')
	if key < 1 {
		return Unit{}, ErrBadReply
	}
	u, err := blockUnit(b, len(line)+2, valueSize(line, len("VALUE ")+key+1), tail)
	u.Last = whole
	return u, err
}

// blockUnit reads a data block of the given length behind a line, and tail behind it.
func blockUnit(b []byte, line, length int, tail string) (Unit, error) {
	if length < 0 {
		return Unit{}, ErrBadReply
	}
	size := line + length + 2 + len(tail)
	if len(b) < size {
		return Unit{Need: size}, nil
	}
	end := line + length
	if b[end] != '\r' || b[end+1] != '\n' || string(b[end+2:size]) != tail {
		return Unit{}, ErrBadReply
	}
	return Unit{Size: size, Last: true}, nil
}

// BlockOf returns the size of the VALUE block of a key at the start of a reply to v; 0 if it is not there,
// or not whole. It tells no more than [NextUnit], but at less cost where the key is known.
func BlockOf(b []byte, v Verb, key []byte) int {
	if verbs[v].replies&rValue == 0 || !IsValueOf(b, key) {
		return 0
	}
	flags := len("VALUE ") + len(key) + len(" ")
	end := flags + bytes.IndexByte(b[flags:], '\n')
	if end <= flags || b[end-1] != '\r' {
		return 0
	}
	u, _ := blockUnit(b, end+1, valueSize(b[:end-1], flags), "")
	return u.Size
}

// valueSize reads the length in a VALUE line whose flags begin at a place; it is negative when the line is
// malformed. Backends put one space between words.
func valueSize(line []byte, flags int) int {
	end := flags
	for end < len(line) && line[end] != ' ' { // a few digits
		end++
	}
	if end == flags || end == len(line) {
		return -1
	}
	return replyLength(line, end+1)
}

const maxDigits = 10 // of a length

// replyLength reads the length that begins at a place of a line, up to a space or the end; it is negative
// when there is none. It is strict: backends write nothing but digits.
func replyLength(line []byte, at int) int {
	n, end := 0, at
	for end < len(line) && line[end]-'0' <= 9 {
		n = 10*n + int(line[end]-'0')
		end++
	}
	if end == at || end > at+maxDigits || n > maxInt32Value || end < len(line) && line[end] != ' ' {
		return -1
	}
	return n
}

// ValueKey returns the key of a VALUE block, nil for any other unit.
func ValueKey(unit []byte) []byte {
	if !IsValue(unit) {
		return nil
	}
	key, _ := NextWord(unit[len("VALUE "):])
	return key
}

// IsValueOf reports whether a unit is the VALUE block of a key.
func IsValueOf(unit, key []byte) bool {
	end := len("VALUE ") + len(key)
	return IsValue(unit) && len(unit) > end && unit[end] == ' ' && string(unit[len("VALUE "):end]) == string(key)
}

// IsValue reports whether a unit is a VALUE block.
func IsValue(unit []byte) bool { return len(unit) > 6 && string(unit[:6]) == "VALUE " }

// classify tells the kind of a reply line; 0 for none that memcached sends.
func classify(line []byte) replySet {
	word, _ := NextWord(line)
	if len(word) == 0 || line[0] == ' ' { // no server indents
		return 0
	}
	switch string(word) {
	case "END":
		return rEnd
	case "STORED", "NOT_STORED":
		return rStored
	case "VA":
		return rMetaValue
	case "HD":
		return rMetaStatus | rMetaEnd
	case "EN":
		return rMetaEnd
	case "NF", "NS", "EX":
		return rMetaStatus
	case "EXISTS":
		return rExists
	case "NOT_FOUND":
		return rNotFound
	case "DELETED":
		return rDeleted
	case "TOUCHED":
		return rTouched
	case "OK", "RESET":
		return rOK
	case "STAT", "ITEM":
		return rStat
	case "VERSION":
		return rVersion
	case "ME":
		return rMetaDebug
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return rFault
	}
	if isNumber(word) && len(word) == len(line) {
		return rNumber
	}
	return 0
}

func isNumber(word []byte) bool {
	for _, c := range word {
		if c-'0' > 9 {
			return false
		}
	}
	return len(word) > 0
}
