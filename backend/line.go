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
// in their order, and nothing that was sent in between is overtaken. On the bulk lane none do, as
// a value that is not the last of its line is copied.
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

// begin notes that a call was written by itself.
func (n *line) begin(c *Call) {
	n.last = nil
	if c.joinable() {
		n.last, n.n, n.hashes[0] = c, 1, c.hash
	}
}

// joinable reports whether a call may share a line: a get of one key that can be sent again
// by itself.
func (c *Call) joinable() bool { return c.plain && c.Repeatable && c.keys == 1 }

// join puts a call's key on the line that was written last, if that has not left yet, and
// reports whether it has.
func (l *lane) join(c *Call, req []byte) bool {
	n := &l.line
	last := n.last
	switch {
	case last == nil || last != l.waiting.tail || last.Verb != c.Verb || n.n == maxJoined || !c.joinable():
		return false
	case slices.Contains(n.hashes[:n.n], c.hash) || !l.conn.Unwrite(len(crlf)):
		return false
	}
	l.conn.Write(req[len(c.Verb.String()):])
	last.more = true
	n.last, n.hashes[n.n] = c, c.hash
	n.n++
	l.s.stats.Joined++
	return true
}

// end ends the reply to a line of gets.
const end = "END\r\n"

var endLine = []byte(end)

// unit reads what a call is told next, and how many bytes of the reply that uses up. It reports false
// for what is no answer.
func (l *lane) unit(c *Call, rest []byte) (u memproto.Unit, reply []byte, used int, ok bool) {
	switch size := c.block(rest); {
	case size > 0 && c.more:
		l.whole = append(append(l.whole[:0], rest[:size]...), end...)
		return memproto.Unit{Size: size, Last: true}, l.whole, size, true
	case size > 0 && bytes.HasPrefix(rest[size:], endLine):
		size += len(end)
		return memproto.Unit{Size: size, Last: true}, rest[:size], size, true
	case c.more:
		return l.share(c, rest)
	}
	u, err := memproto.NextUnit(rest, c.Verb, len(c.Key) > 0)
	reply = rest[:u.Size]
	return u, reply, u.Size, err == nil && c.answeredBy(reply)
}

// block returns the size of the value that a call of one key waits for, 0 if it is not there, or not whole.
func (c *Call) block(rest []byte) int {
	if len(c.Key) == 0 {
		return 0
	}
	return memproto.BlockOf(rest, c.Verb, c.Key)
}

// share is unit for a call whose value is not there, and whose line has more keys behind its own. It is
// told what it would have been told by itself; what is not its own is left for the next call, and the end
// of the reply for the last.
func (l *lane) share(c *Call, rest []byte) (u memproto.Unit, reply []byte, used int, ok bool) {
	u, err := memproto.NextUnit(rest, c.Verb, false)
	if err != nil || u.Size == 0 {
		return u, nil, 0, err == nil
	}
	block := rest[:u.Size]
	switch {
	case !memproto.IsValue(block): // the end, or an error
		return u, block, 0, true
	case c.answeredLater(block):
		return memproto.Unit{Size: len(endLine), Last: true}, endLine, 0, true
	}
	return u, nil, 0, false
}

// answeredLater reports whether a value is that of a call behind this one on its line.
func (c *Call) answeredLater(block []byte) bool {
	for c.more {
		if c = c.next; memproto.IsValueOf(block, c.Key) {
			return true
		}
	}
	return false
}

// keepApart has each get travel by itself from now on, as the server is no memcached, or not
// only: a proxy before several may put values into an order of its own.
func (s *Server) keepApart() {
	if !s.cfg.Health.apart.Swap(true) {
		s.cfg.Log.Warn("server answers a get of several keys as memcached would not, gets are not joined any more",
			"server", s.cfg.Name, "addr", s.cfg.Address)
	}
}

// keepWhole is the capacity above which a value's copy is not kept, in bytes.
const keepWhole = 64 << 10

// tidyWhole gives up the memory of a large value.
func (l *lane) tidyWhole() {
	if cap(l.whole) > keepWhole {
		l.whole = nil
	}
}
