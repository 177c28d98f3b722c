//go:build linux

package load

import (
	"bytes"
	"fmt"
	"strconv"
)

// meta is the meta protocol with the flags that a plain get and set need. The keys of a multiget are
// asked for one by one, all but the last quietly, and hits repeat the key; that of a plain get is known by
// its value.
type meta struct{ *keyspace }

func (d meta) appendGet(dst []byte, calls []call) []byte {
	for i, q := range calls {
		dst = append(append(dst, "mg "...), d.key(q.key)...)
		switch {
		case len(calls) == 1:
			dst = append(dst, " v\r\n"...)
		case i < len(calls)-1:
			dst = append(dst, " v k q\r\n"...)
		default:
			dst = append(dst, " v k\r\n"...)
		}
	}
	return dst
}

func (d meta) appendSet(dst []byte, q call) []byte {
	dst = append(append(dst, "ms "...), d.key(q.key)...)
	dst = strconv.AppendInt(append(dst, ' '), int64(d.sizeOf(q.key)), 10)
	if q.ttl != 0 {
		dst = strconv.AppendUint(append(dst, " T"...), uint64(q.ttl), 10)
	}
	dst = d.appendValue(append(dst, '\r', '\n'), q.key, q.version)
	return append(dst, '\r', '\n')
}

func (d meta) scan(buf []byte, q call) (r reply, taken, want int, err error) {
	line, next, err := scanLine(buf)
	if next == 0 {
		return r, 0, 0, err
	}
	r.line = line
	if fields, ok := bytes.CutPrefix(line, []byte("VA ")); ok {
		return d.scanHit(buf, next, fields, r, q)
	}
	if r.kind = metaKind(line); r.kind == 0 {
		return r, 0, 0, strange(line)
	}
	if q.more && r.kind == replyMiss {
		next = 0 // quiet keys are not missed aloud: it is the last one's
	}
	return r, next, 0, nil
}

func metaKind(line []byte) replyKind {
	switch {
	case string(line) == "EN", bytes.HasPrefix(line, []byte("EN ")): // with the flags that were asked for
		return replyMiss
	case string(line) == "HD":
		return replyStored
	case string(line) == "NS", refused(line):
		return replyRefused
	}
	return 0
}

// scanHit reads the value that starts at begin, whose size and flags are given.
func (d meta) scanHit(buf []byte, begin int, fields []byte, r reply, q call) (reply, int, int, error) {
	digits, flags, flagged := bytes.Cut(fields, []byte{' '})
	size, ok := parseSize(digits)
	key, named := bytes.CutPrefix(flags, []byte{'k'})
	if !ok || flagged && !named {
		return r, 0, 0, strange(r.line)
	}
	if named {
		if r.key = key; q.more && !bytes.Equal(key, d.key(q.key)) {
			return reply{kind: replyMiss}, 0, 0, nil
		}
	}
	end := begin + size
	if len(buf) < end+2 {
		return reply{}, 0, end + 2, nil
	}
	if string(buf[end:end+2]) != "\r\n" {
		return r, 0, 0, fmt.Errorf("value of %d bytes is not followed by the end of a line: %w", size, strange(r.line))
	}
	r.kind, r.data = replyHit, buf[begin:end]
	return r, end + 2, 0, nil
}
