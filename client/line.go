package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"

	"cacherouter/reactor"
	"cacherouter/router"
)

// maxKey is the longest key, in bytes.
const maxKey = 250

// line is a connection to one loop of the router. Replies come in the order of the requests.
type line struct {
	pipe *reactor.Pipe
	room chan struct{} // one for each operation that may be under way

	mu      sync.Mutex
	buf     []byte  // guarded by mu: of a request
	waiting []*call // guarded by mu: in the order they were sent
	ended   bool    // guarded by mu
	read    []byte  // of the loop: what is not yet a whole reply
}

// call is an operation that is under way.
type call struct {
	got chan struct{} // closed when reply and err are there
	r   reply
	err error
}

func newLine(r *router.Router, loop, inFlight int) *line {
	l := &line{room: make(chan struct{}, inFlight)}
	l.pipe = r.Connect(loop, l.took, l.gone)
	return l
}

func (l *line) close() { l.pipe.Close() }

// send sends a request when there is room for it. A value of nil is none.
func (l *line) send(ctx context.Context, key, verb string, value []byte, flags string) (*call, error) {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := &call{got: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		<-l.room
		return nil, ErrClosed
	}
	l.buf = appendRequest(l.buf[:0], key, verb, value, flags)
	// Under the lock, so that what is sent first is also first in waiting.
	if err := l.pipe.Send(l.buf); err != nil {
		<-l.room
		return nil, ErrClosed
	}
	l.waiting = append(l.waiting, c)
	if cap(l.buf) > maxScratch {
		l.buf = nil
	}
	return c, nil
}

// maxScratch is the size above which the memory of a request is not kept.
const maxScratch = 64 << 10

// appendRequest appends a request of the meta protocol. Keys that it cannot carry go in base64.
func appendRequest(b []byte, key, verb string, value []byte, flags string) []byte {
	b = append(append(b, verb...), ' ')
	coded := !plain(key)
	if coded {
		b = base64.StdEncoding.AppendEncode(b, []byte(key))
	} else {
		b = append(b, key...)
	}
	if value != nil {
		b = strconv.AppendInt(append(b, ' '), int64(len(value)), 10)
	}
	if flags != "" {
		b = append(append(b, ' '), flags...)
	}
	if coded {
		b = append(b, " b"...)
	}
	b = append(b, "\r\n"...)
	if value != nil {
		b = append(append(b, value...), "\r\n"...)
	}
	return b
}

// wireLen is how long a key is as it is sent.
func wireLen(key string) int {
	if plain(key) {
		return len(key)
	}
	return base64.StdEncoding.EncodedLen(len(key))
}

// plain reports whether a key can be sent as it is.
func plain(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] == 0x7f {
			return false
		}
	}
	return true
}

// wait waits for the reply. Who gives up leaves it to whoever reads it.
func (c *call) wait(ctx context.Context) (reply, error) {
	select {
	case <-c.got:
		return c.r, c.err
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// took reads what the router says, on the loop's goroutine.
func (l *line) took(p []byte) {
	if len(l.read) > 0 {
		l.read = append(l.read, p...)
		p = l.read
	}
	for len(p) > 0 {
		r, n := parseReply(p)
		if n == 0 {
			break
		}
		p = p[n:]
		l.answer(r)
	}
	l.read = append(l.read[:0], p...)
	if len(l.read) == 0 && cap(l.read) > maxScratch {
		l.read = nil
	}
}

// answer gives a reply to the call that has waited longest.
func (l *line) answer(r reply) {
	l.mu.Lock()
	if len(l.waiting) == 0 { // nobody has asked
		l.mu.Unlock()
		return
	}
	c := l.waiting[0]
	l.waiting[0] = nil
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	l.mu.Unlock()
	c.r = r
	close(c.got)
	<-l.room
}

// gone fails all calls: the router has ended, or the client is closed.
func (l *line) gone() {
	l.mu.Lock()
	all := l.waiting
	l.waiting, l.ended = nil, true
	l.mu.Unlock()
	for _, c := range all {
		c.err = ErrClosed
		close(c.got)
		<-l.room
	}
}

// reply is what came back.
type reply struct {
	code  string // of two letters; empty if it is an error
	flags []byte // that were asked for
	value []byte
	err   error
}

var crlf = []byte("\r\n")

// parseReply reads the reply at the beginning of b, of which it keeps nothing, and returns how long it
// is, 0 if it is not yet whole.
func parseReply(b []byte) (r reply, n int) {
	end := bytes.Index(b, crlf)
	if end < 0 {
		return r, 0
	}
	code, rest, _ := bytes.Cut(b[:end], []byte(" "))
	n = end + 2
	switch string(code) {
	case "VA":
		size, flags, _ := bytes.Cut(rest, []byte(" "))
		length, err := strconv.Atoi(string(size))
		if err != nil || length < 0 {
			return reply{err: fmt.Errorf("bad reply %q", b[:end])}, n
		}
		if len(b) < n+length+2 {
			return r, 0
		}
		value := make([]byte, length)
		copy(value, b[n:])
		return reply{code: "VA", flags: bytes.Clone(flags), value: value}, n + length + 2
	case "HD", "EN", "NF", "NS", "EX", "OK":
		return reply{code: string(code)}, n
	}
	return reply{err: ServerError(b[:end])}, n
}

// done is what a reply without a value means.
func (r *reply) done() error {
	switch {
	case r.err != nil:
		return r.err
	case r.code == "HD" || r.code == "VA":
		return nil
	case r.code == "EN" || r.code == "NF":
		return ErrMiss
	case r.code == "NS":
		return ErrNotStored
	case r.code == "EX":
		return ErrConflict
	}
	return fmt.Errorf("bad reply %q", r.code)
}

// item fills in what came of an item.
func (r *reply) item(it *Item) error {
	if err := r.done(); err != nil {
		return err
	}
	it.Value = r.value
	for word := range bytes.FieldsSeq(r.flags) {
		n, err := strconv.ParseUint(string(word[1:]), 10, 64)
		switch {
		case err != nil:
			return fmt.Errorf("bad flag %q in a reply", word)
		case word[0] == 'f':
			it.Flags = uint32(n)
		case word[0] == 'c':
			it.token = n
		}
	}
	return nil
}

// number is the value as a number.
func (r *reply) number() (uint64, error) {
	if err := r.done(); err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(r.value), 10, 64)
}
