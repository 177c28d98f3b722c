package history

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrValue is wrapped by what Parse returns for bytes that were not made of pieces.
var ErrValue = errors.New("no value of a history")

// AppendPiece appends to dst the piece with the given name, padded by pad bytes. A value is a row of pieces, the first
// one set and the others appended, so each value tells its whole descent. The name must not contain a colon or a plus.
func AppendPiece(dst []byte, name string, pad int) []byte {
	dst = append(dst, name...)
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, int64(pad), 10)
	dst = append(dst, ':')
	dst = append(dst, bytes.Repeat([]byte{'.'}, pad)...)
	return append(dst, ';')
}

// Parse returns the names of a value's pieces, joined by plus signs, as Op.Value wants them.
func Parse(value []byte) (string, error) {
	var names []string
	for rest := value; len(rest) > 0; {
		name, after, _ := bytes.Cut(rest, []byte{':'})
		size, after, found := bytes.Cut(after, []byte{':'})
		pad, err := strconv.Atoi(string(size))
		if !found || err != nil || pad < 0 || pad >= len(after) || after[pad] != ';' || !dotted(after[:pad]) {
			return "", fmt.Errorf("%w: %.200q", ErrValue, value)
		}
		names = append(names, string(name))
		rest = after[pad+1:]
	}
	return strings.Join(names, "+"), nil
}

func dotted(pad []byte) bool { return len(bytes.Trim(pad, ".")) == 0 }

// descent yields a value and what it was before each append, the longest first.
func descent(value string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(value) {
			end := strings.LastIndexByte(value, '+')
			if end < 0 {
				return
			}
			value = value[:end]
		}
	}
}

// lastPiece splits a value into what it was before the last append, "" for one never appended to, and what was
// appended.
func lastPiece(value string) (before, piece string) {
	end := strings.LastIndexByte(value, '+')
	if end < 0 {
		return "", value
	}
	return value[:end], value[end+1:]
}
