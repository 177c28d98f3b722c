//go:build linux

package load

import (
	"slices"
	"time"
)

const readSize = 64 << 10

// inbox turns what is read into judged replies. The clients of one thread share it.
type inbox struct {
	keys   *keyspace
	speaks dialect
	buf    []byte
	tally  *tally
	now    int64 // when the last read was, nanoseconds
}

func newInbox(k *keyspace, d dialect) inbox {
	return inbox{keys: k, speaks: d, buf: make([]byte, readSize), tally: newTally()}
}

// space is where the next read of c goes: the shared buffer, or behind what c already holds.
func (b *inbox) space(c *client) []byte {
	if len(c.in) == 0 {
		return b.buf
	}
	return c.in[len(c.in):cap(c.in)]
}

// digest consumes the n bytes just read into space(c) and keeps what is left for the next read.
func (b *inbox) digest(c *client, n int) error {
	data := b.buf
	if len(c.in) > 0 {
		data = c.in[:cap(c.in)]
	}
	data = data[:len(c.in)+n]
	taken, want, err := b.consume(c, data)
	rest := data[taken:]
	room := max(want, 2*len(rest), 4<<10)
	if len(rest) > 0 && cap(c.in) < room {
		c.in = slices.Grow([]byte(nil), room)
	}
	c.in = append(c.in[:0], rest...)
	return err
}

func (b *inbox) consume(c *client, data []byte) (taken, want int, err error) {
	waited := time.Duration(b.now - c.since)
	return c.consume(b.speaks, data, func(q call, r reply) {
		b.tally.took(waited)
		b.tally.judge(b.keys, q, r)
	})
}

// lose counts what c still waits for as lost, because of why. What is lost is not waited for.
func (b *inbox) lose(c *client, why error) {
	if b.tally.firstBroken == nil {
		b.tally.firstBroken = why
	}
	b.tally.Lost += uint64(c.waiting())
	c.asked, c.next, c.closed = nil, 0, true
}
