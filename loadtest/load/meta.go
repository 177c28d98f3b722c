//go:build linux

package load

import (
	"bytes"
	"fmt"
)

// meta is the meta protocol with the flags that a plain get and set need. Replies do not repeat the
// key; a hit is known by its value, which begins with it.
type meta struct {
	*keyspace
	setTo []byte // " SIZE\r\n", what follows the key of a set
}

func newMeta(k *keyspace) meta {
	return meta{k, fmt.Appendf(nil, " %d\r\n", k.size)}
}

func (d meta) appendGet(dst []byte, i uint32) []byte {
	dst = append(dst, "mg "...)
	dst = append(dst, d.key(i)...)
	return append(dst, " v\r\n"...)
}

func (d meta) appendSet(dst []byte, i uint32) []byte {
	dst = append(dst, "ms "...)
	dst = append(dst, d.key(i)...)
	dst = append(dst, d.setTo...)
	dst = d.appendValue(dst, i)
	return append(dst, '\r', '\n')
}

func (d meta) scan(buf []byte, _ call) (r reply, taken, want int, err error) {
	line, next, err := scanLine(buf)
	if next == 0 {
		return r, 0, 0, err
	}
	r.line = line
	if size, ok := bytes.CutPrefix(line, []byte("VA ")); ok {
		return scanMetaHit(buf, next, size, r)
	}
	if r.kind = metaKind(line); r.kind == 0 {
		return r, 0, 0, strange(line)
	}
	return r, next, 0, nil
}

func metaKind(line []byte) replyKind {
	switch {
	case string(line) == "EN":
		return replyMiss
	case string(line) == "HD":
		return replyStored
	case string(line) == "NS", refused(line):
		return replyRefused
	}
	return 0
}

// scanMetaHit reads the value that starts at begin. Flags after the size were not asked for.
func scanMetaHit(buf []byte, begin int, digits []byte, r reply) (reply, int, int, error) {
	size, ok := parseSize(digits)
	if !ok {
		return r, 0, 0, strange(r.line)
	}
	end := begin + size
	if len(buf) < end+2 {
		return r, 0, end + 2, nil
	}
	if string(buf[end:end+2]) != "\r\n" {
		return r, 0, 0, fmt.Errorf("value of %d bytes is not followed by the end of a line: %w", size, strange(r.line))
	}
	r.kind, r.data = replyHit, buf[begin:end]
	return r, end + 2, 0, nil
}
