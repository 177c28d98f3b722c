package memproto

import (
	"bytes"
	"math"
)

// isSpace is C's isspace in the default locale.
func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

// digits reads a decimal number as strtoull does: white space and a sign before it,
// and after it the end or white space. It reports false on overflow.
func digits(word []byte) (n uint64, negative, ok bool) {
	i := 0
	for i < len(word) && isSpace(word[i]) {
		i++
	}
	if i < len(word) && (word[i] == '-' || word[i] == '+') {
		negative = word[i] == '-'
		i++
	}
	start := i
	for ; i < len(word) && word[i]-'0' < 10; i++ {
		d := uint64(word[i] - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, negative, false
		}
		n = n*10 + d
	}
	return n, negative, i > start && (i == len(word) || isSpace(word[i]))
}

// ParseUint reads an unsigned number as memcached does: strtoull negates modulo 2^64,
// and only a result with its top bit set makes memcached look for a minus.
func ParseUint(word []byte) (uint64, bool) {
	n, negative, ok := digits(word)
	if negative {
		n = -n
	}
	if n > math.MaxInt64 && bytes.IndexByte(word, '-') >= 0 {
		return 0, false
	}
	return n, ok
}

// ParseInt reads a signed 64-bit number as memcached does.
func ParseInt(word []byte) (int64, bool) {
	n, negative, ok := digits(word)
	switch {
	case !ok:
		return 0, false
	case negative && n <= 1<<63:
		return -int64(n), true
	case n > math.MaxInt64:
		return 0, false
	}
	return int64(n), true
}
