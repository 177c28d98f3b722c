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
	replyRefused // not stored, or an error: answered, but not as asked
	replyOther   // a whole reply, but to another request
)

// reply is one whole answer to a get of one key or to a set. Its slices are views into the scanned
// buffer.
type reply struct {
	kind replyKind
	key  []byte // of a hit; nil when the protocol does not repeat it
	data []byte // the value of a hit
	line []byte // the first line without its end, or the header, or the text of a binary error
}

const (
	longestLine  = 2048
	shownOfReply = 80
)

// scanLine cuts the first line, without its end, from buf. Next is where the line after it begins,
// 0 when the line is not whole yet.
func scanLine(buf []byte) (line []byte, next int, err error) {
	end := bytes.IndexByte(buf, '\n')
	if end >= 0 {
		return bytes.TrimSuffix(buf[:end], []byte{'\r'}), end + 1, nil
	}
	if len(buf) > longestLine {
		return nil, 0, strange(buf)
	}
	return nil, 0, nil
}

// refused reports whether a line is an error of the text and meta protocols.
func refused(line []byte) bool {
	return string(line) == "ERROR" ||
		bytes.HasPrefix(line, []byte("SERVER_ERROR")) || bytes.HasPrefix(line, []byte("CLIENT_ERROR"))
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
