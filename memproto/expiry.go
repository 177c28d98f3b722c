package memproto

import (
	"strconv"
)

// monthSeconds is the exptime above which a number is a Unix time and not a span.
const monthSeconds = 60 * 60 * 24 * 30

// CapExpiry appends a whole request of a verb with its exptime changed where needed so
// that what it stores or touches lives for at most limit seconds. Requests that set no
// exptime are appended as they are. Unix is the time in seconds.
func CapExpiry(dst []byte, v Verb, raw []byte, limit, unix int64) []byte {
	switch v {
	case Set, Add, Replace, Append, Prepend, Cas:
		return capWord(dst, raw, 3, limit, unix)
	case Touch:
		return capWord(dst, raw, 2, limit, unix)
	case Gat, Gats:
		return capWord(dst, raw, 1, limit, unix)
	case MetaSet, MetaGet, MetaArithmetic:
		return capFlags(dst, v, raw, limit, unix)
	}
	return append(dst, raw...)
}

// capped returns an exptime that is over after limit seconds at the latest.
func capped(exptime, limit, unix int64) int64 {
	switch {
	case exptime < 0: // over already
		return exptime
	case exptime == 0:
		return limit
	case exptime <= monthSeconds:
		return min(exptime, limit)
	case exptime-unix > limit:
		return limit
	}
	return exptime
}

// capWord caps the nth word of a line.
func capWord(dst, raw []byte, n int, limit, unix int64) []byte {
	word, rest := nextLineWord(raw)
	for range n {
		word, rest = nextLineWord(rest)
	}
	exptime, ok := ParseInt(word)
	if !ok {
		return append(dst, raw...)
	}
	dst = append(dst, raw[:len(raw)-len(rest)-len(word)]...)
	dst = strconv.AppendInt(dst, capped(exptime, limit, unix), 10)
	return append(dst, rest...)
}

// nextLineWord is NextWord for bytes that go on behind the line.
func nextLineWord(s []byte) (word, rest []byte) {
	i := 0
	for i < len(s) && s[i] == ' ' {
		i++
	}
	j := i
	for j < len(s) && s[j] != ' ' && s[j] != '\r' && s[j] != '\n' {
		j++
	}
	return s[i:j], s[j:]
}

// capFlags caps the flags T and N of a meta request, and gives an ms without T one.
func capFlags(dst []byte, v Verb, raw []byte, limit, unix int64) []byte {
	_, rest := nextLineWord(raw)
	_, rest = nextLineWord(rest) // the key
	if v == MetaSet {
		_, rest = nextLineWord(rest) // the length
	}
	dst = append(dst, raw[:len(raw)-len(rest)]...)
	timed := v != MetaSet
	for word, more := nextLineWord(rest); len(word) > 0; word, more = nextLineWord(rest) {
		exptime, ok := ParseInt(word[1:])
		if ok && (word[0] == 'T' || word[0] == 'N') {
			timed = timed || word[0] == 'T'
			dst = append(dst, ' ', word[0])
			dst = strconv.AppendInt(dst, capped(exptime, limit, unix), 10)
		} else {
			dst = append(append(dst, ' '), word...)
		}
		rest = more
	}
	if !timed {
		dst = strconv.AppendInt(append(dst, " T"...), limit, 10)
	}
	return append(dst, rest...)
}
