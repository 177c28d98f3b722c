//go:build linux

package load

import (
	"bytes"
	"fmt"
)

const afterValue = "\r\nEND\r\n"

// text is the classic protocol.
type text struct {
	*keyspace
	setTo []byte // " 0 0 SIZE\r\n", what follows the key of a set
}

func newText(k *keyspace) text {
	return text{k, fmt.Appendf(nil, " 0 0 %d\r\n", k.size)}
}

func (d text) appendGet(dst []byte, i uint32) []byte {
	dst = append(dst, "get "...)
	dst = append(dst, d.key(i)...)
	return append(dst, '\r', '\n')
}

func (d text) appendSet(dst []byte, i uint32) []byte {
	dst = append(dst, "set "...)
	dst = append(dst, d.key(i)...)
	dst = append(dst, d.setTo...)
	dst = d.appendValue(dst, i)
	return append(dst, '\r', '\n')
}

func (d text) scan(buf []byte, _ call) (r reply, taken, want int, err error) {
	line, next, err := scanLine(buf)
	if next == 0 {
		return r, 0, 0, err
	}
	r.line = line
	if bytes.HasPrefix(line, []byte("VALUE ")) {
		return scanHit(buf, next, r)
	}
	if r.kind = textKind(line); r.kind == 0 {
		return r, 0, 0, strange(line)
	}
	return r, next, 0, nil
}

func textKind(line []byte) replyKind {
	switch {
	case string(line) == "END":
		return replyMiss
	case string(line) == "STORED":
		return replyStored
	case string(line) == "NOT_STORED", refused(line):
		return replyRefused
	}
	return 0
}

// scanHit reads "VALUE key flags size", the value that starts at begin, and END.
func scanHit(buf []byte, begin int, r reply) (reply, int, int, error) {
	fields := r.line[len("VALUE "):]
	space, last := bytes.IndexByte(fields, ' '), bytes.LastIndexByte(fields, ' ')
	size, ok := parseSize(fields[last+1:])
	if space <= 0 || last == space || !ok {
		return r, 0, 0, strange(r.line)
	}
	whole := begin + size + len(afterValue)
	if len(buf) < whole {
		return r, 0, whole, nil
	}
	if string(buf[begin+size:whole]) != afterValue {
		return r, 0, 0, fmt.Errorf("value of %d bytes is not followed by END: %w", size, strange(r.line))
	}
	r.kind, r.key, r.data = replyHit, fields[:space], buf[begin:begin+size]
	return r, whole, 0, nil
}
