package memproto

import (
	"bytes"
	"strconv"
)

// monthSeconds is the exptime above which a number is a Unix time and not a span.
const monthSeconds = 60 * 60 * 24 * 30

// CapExpiry appends a whole request of a verb with its exptime changed where needed so
// that what it stores or touches lives for at most limit seconds. Requests that set no
// exptime are appended as they are. Dates become spans, so that a server whose clock
// differs keeps to the limit too. Unix is the time in seconds.
func CapExpiry(dst []byte, v Verb, raw []byte, limit, unix int64) []byte {
	if n := expiryWord(v); n > 0 {
		return capWord(dst, raw, n, limit, unix)
	}
	if v >= MetaGet && v <= MetaArithmetic {
		return capFlags(dst, v, raw, limit, unix)
	}
	return append(dst, raw...)
}

// Lapses reports whether the exptime of a whole request of a verb is over already, so that
// it leaves no item. Unix is the time in seconds.
func Lapses(v Verb, raw []byte, unix int64) bool {
	line, _ := lineOf(raw)
	word, rest := NextWord(line)
	if v >= MetaGet && v <= MetaArithmetic {
		_, rest = NextWord(rest) // the key
		word = metaFlag(rest, 'T')
	} else {
		for range expiryWord(v) {
			word, rest = NextWord(rest)
		}
	}
	exptime, ok := ParseInt(word)
	return ok && capped(exptime, monthSeconds, unix) < 0
}

// expiryWord returns which word of a line is the exptime, 0 if none is.
func expiryWord(v Verb) int {
	switch v {
	case Set, Add, Replace, Append, Prepend, Cas:
		return 3
	case Touch:
		return 2
	case Gat, Gats:
		return 1
	}
	return 0
}

// capped returns an exptime that is over after limit seconds at the latest. Numbers beyond
// 32 bits, of which memcached 1.6 takes the lower ones, become what they mean.
func capped(exptime, limit, unix int64) int64 {
	limit = min(limit, monthSeconds)
	switch {
	case exptime < 0: // over already
		return -1
	case exptime == 0:
		return limit
	case exptime > monthSeconds:
		if exptime -= unix; exptime <= 0 {
			return -1
		}
	}
	return min(exptime, limit)
}

// lineOf returns the line that a whole request begins with, without its end, and what
// follows it.
func lineOf(raw []byte) (line, rest []byte) {
	end := bytes.IndexByte(raw, '\n')
	if end > 0 && raw[end-1] == '\r' {
		end--
	}
	return raw[:max(end, 0)], raw[max(end, 0):]
}

// capWord caps the nth word of the line.
func capWord(dst, raw []byte, n int, limit, unix int64) []byte {
	line, behind := lineOf(raw)
	word, rest := NextWord(line)
	for range n {
		word, rest = NextWord(rest)
	}
	exptime, ok := ParseInt(word)
	if !ok {
		return append(dst, raw...)
	}
	dst = append(dst, line[:len(line)-len(rest)-len(word)]...)
	dst = strconv.AppendInt(dst, capped(exptime, limit, unix), 10)
	return append(append(dst, rest...), behind...)
}

// capFlags caps the flags T and N of a meta request, and gives an ms without T one.
func capFlags(dst []byte, v Verb, raw []byte, limit, unix int64) []byte {
	line, behind := lineOf(raw)
	_, rest := NextWord(line)
	_, rest = NextWord(rest) // the key
	if v == MetaSet {
		_, rest = NextWord(rest) // the length
	}
	dst = append(dst, line[:len(line)-len(rest)]...)
	timed := v != MetaSet
	for word, more := NextWord(rest); len(word) > 0; word, more = NextWord(more) {
		rest = more
		exptime, ok := ParseInt(word[1:])
		if ok && (word[0] == 'T' || word[0] == 'N') {
			timed = timed || word[0] == 'T'
			dst = append(dst, ' ', word[0])
			dst = strconv.AppendInt(dst, capped(exptime, limit, unix), 10)
		} else {
			dst = append(append(dst, ' '), word...)
		}
	}
	if !timed {
		dst = strconv.AppendInt(append(dst, " T"...), capped(0, limit, unix), 10)
	}
	return append(append(dst, rest...), behind...)
}
