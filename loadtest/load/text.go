//go:build linux

package load

import (
	"bytes"
	"fmt"
	"strconv"
)

const afterValue = "\r\nEND\r\n"

// text is the classic protocol.
type text struct{ *keyspace }

func (d text) appendGet(dst []byte, calls []call) []byte {
	dst = append(dst, "get"...)
	for _, q := range calls {
		dst = append(append(dst, ' '), d.key(q.key)...)
	}
	return append(dst, '\r', '\n')
}

func (d text) appendSet(dst []byte, q call) []byte {
	dst = append(append(dst, "set "...), d.key(q.key)...)
	dst = strconv.AppendUint(append(dst, " 0 "...), uint64(q.ttl), 10)
	dst = strconv.AppendInt(append(dst, ' '), int64(d.sizeOf(q.key)), 10)
	dst = d.appendValue(append(dst, '\r', '\n'), q.key, q.version)
	return append(dst, '\r', '\n')
}

func (d text) scan(buf []byte, q call) (r reply, taken, want int, err error) {
	line, next, err := scanLine(buf)
	if next == 0 {
		return r, 0, 0, err
	}
	r.line = line
	if bytes.HasPrefix(line, []byte("VALUE ")) {
		return d.scanHit(buf, next, r, q)
	}
	if r.kind = textKind(line); r.kind == 0 {
		return r, 0, 0, strange(line)
	}
	if q.more {
		next = 0 // it is said once for all that is left of the request
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

// scanHit reads "VALUE key flags size", the value that starts at begin, and END if no more keys were asked for.
func (d text) scanHit(buf []byte, begin int, r reply, q call) (reply, int, int, error) {
	fields := r.line[len("VALUE "):]
	space, last := bytes.IndexByte(fields, ' '), bytes.LastIndexByte(fields, ' ')
	size, ok := parseSize(fields[last+1:])
	if space <= 0 || last == space || !ok {
		return r, 0, 0, strange(r.line)
	}
	r.key = fields[:space]
	after := afterValue
	if q.more {
		if !bytes.Equal(r.key, d.key(q.key)) {
			return reply{kind: replyMiss}, 0, 0, nil
		}
		after = "\r\n"
	}
	whole := begin + size + len(after)
	if len(buf) < whole {
		return reply{}, 0, whole, nil
	}
	if string(buf[begin+size:whole]) != after {
		return r, 0, 0, fmt.Errorf("value of %d bytes is not followed by %q: %w", size, after, strange(r.line))
	}
	r.kind, r.data = replyHit, buf[begin:begin+size]
	return r, whole, 0, nil
}
