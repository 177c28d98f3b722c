//go:build linux

package load

import (
	"bytes"
	"fmt"
)

type replyKind uint8

const (
	replyHit replyKind = iota + 1
	replyMiss
	replyStored
	replyRefused // NOT_STORED, ERROR, CLIENT_ERROR or SERVER_ERROR: answered, but not as asked
)

// reply is one whole answer to a get of one key or to a set. Its slices are views into the scanned
// buffer.
type reply struct {
	kind replyKind
	key  []byte // of a hit
	data []byte // the value of a hit
	line []byte // the first line, without its end
}

const (
	longestLine  = 2048
	afterValue   = "\r\nEND\r\n"
	shownOfReply = 80
)

// scanReply finds the reply at the start of buf and the bytes it takes. A reply that is not whole
// yet takes 0 bytes; want is then how long buf must grow at least, or 0 when that is not known. An
// error means that the other side is out of step, or is no memcached.
func scanReply(buf []byte) (r reply, taken, want int, err error) {
	end := bytes.IndexByte(buf, '\n')
	if end < 0 {
		if len(buf) > longestLine {
			return r, 0, 0, strange(buf)
		}
		return r, 0, 0, nil
	}
	r.line = bytes.TrimSuffix(buf[:end], []byte{'\r'})
	if bytes.HasPrefix(r.line, []byte("VALUE ")) {
		return scanHit(buf, end+1, r)
	}
	if r.kind = kindOf(r.line); r.kind == 0 {
		return r, 0, 0, strange(r.line)
	}
	return r, end + 1, 0, nil
}

func kindOf(line []byte) replyKind {
	switch {
	case string(line) == "END":
		return replyMiss
	case string(line) == "STORED":
		return replyStored
	case string(line) == "NOT_STORED", string(line) == "ERROR",
		bytes.HasPrefix(line, []byte("SERVER_ERROR")), bytes.HasPrefix(line, []byte("CLIENT_ERROR")):
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

func parseSize(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' || n > maxValue {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(b) > 0
}

func strange(b []byte) error {
	return fmt.Errorf("reply is not memcached's: %q", b[:min(len(b), shownOfReply)])
}
