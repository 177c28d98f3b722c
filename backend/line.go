package backend

import (
	"bytes"
	"slices"

	"cacherouter/memproto"
)

// Gets of single keys that are sent one after the other in one turn travel on one line:
// "get a", "get b" as "get a b". memcached answers each line of gets with a write of its
// own, which is most of what it spends on a get, and each write is one more piece for us to
// read. What a get is told is what it would have been told by itself: the server looks keys up
// in their order, and nothing that was sent in between is overtaken.
//
// A key stands on a line once. Twice, another client's write between the two look-ups could
// show the second get a miss, and the first one what was written: they tell a hit by its key.

// maxJoined bounds the keys of a line, so that the first reply need not wait for many.
const maxJoined = 32

// line is what was written to a connection last, if more keys may go on it. The zero value
// stands for something else.
type line struct {
	last   *Call // of those on it
	n      int
	hashes [maxJoined]uint64 // of their keys
}

// begin notes that a request was written, which others may join.
func (n *line) begin(c *Call, req []byte) {
	n.last = nil
	if c.Whole && c.Repeatable && c.keys == 1 && keyOf(c, req) != nil {
		n.last, n.n, n.hashes[0] = c, 1, c.hash
	}
}

// keyOf returns the key of a get that is put as simply as can be, with the space before it
// and the end of the line behind it; nil for any other request.
func keyOf(c *Call, req []byte) []byte {
	word := 0
	switch c.Verb {
	case memproto.Get:
		word = len("get")
	case memproto.Gets:
		word = len("gets")
	default:
		return nil
	}
	rest := req[word:]
	key, more := memproto.NextWord(rest)
	if len(more) > 0 || len(rest) != 1+len(key) || !bytes.HasSuffix(key, []byte("\r\n")) {
		return nil
	}
	return rest
}

// join puts a call's key on the line that was written last, if that has not left yet, and
// reports whether it has.
func (l *lane) join(c *Call, req []byte) bool {
	n := &l.line
	last := n.last
	if last == nil || last != l.waiting.tail || last.Verb != c.Verb || n.n == maxJoined || !c.Whole || !c.Repeatable ||
		c.keys != 1 || slices.Contains(n.hashes[:n.n], c.hash) {
		return false
	}
	key := keyOf(c, req)
	if key == nil || !l.conn.Unwrite(len("\r\n")) {
		return false
	}
	l.conn.Write(key)
	last.more = true
	n.last, n.hashes[n.n] = c, c.hash
	n.n++
	l.s.stats.Joined++
	return true
}

// endLine ends the reply to a line of gets.
var endLine = []byte("END\r\n")

// part reads the share of a call in the reply to its line: what the call would have been
// told by itself, and how many bytes of the reply that has used up. What is left is for
// the next call on the line.
func (l *lane) part(c *Call, rest []byte) (u memproto.Unit, reply []byte, used int, err error) {
	if !c.more {
		u, err = memproto.NextUnit(rest, c.Verb, c.Whole)
		if err == nil && c.Whole && !c.answeredBy(rest[:u.Size]) {
			err = memproto.ErrBadReply
		}
		return u, rest[:u.Size], u.Size, err
	}
	u, err = memproto.NextUnit(rest, c.Verb, false)
	if err != nil || u.Size == 0 {
		return u, nil, 0, err
	}
	block := rest[:u.Size]
	switch {
	case !memproto.IsValue(block): // the end, or an error, for all the rest
		return u, block, 0, nil
	case c.answeredBy(block):
		l.whole = append(append(l.whole[:0], block...), endLine...)
		u.Last = true
		return u, l.whole, len(block), nil
	case c.answeredLater(block):
		return memproto.Unit{Size: len(endLine), Last: true}, endLine, 0, nil
	}
	return u, nil, 0, memproto.ErrBadReply
}

// answeredLater reports whether a value is that of a call behind this one on its line.
func (c *Call) answeredLater(block []byte) bool {
	for c.more {
		if c = c.next; c.answeredBy(block) {
			return true
		}
	}
	return false
}

// keepWhole is the capacity above which a value's copy is not kept, in bytes.
const keepWhole = 64 << 10

// tidyWhole gives up the memory of a large value.
func (l *lane) tidyWhole() {
	if cap(l.whole) > keepWhole {
		l.whole = nil
	}
}
