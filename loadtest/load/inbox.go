//go:build linux

package load

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const readSize = 64 << 10

// inbox turns what is read into judged replies. The clients of one thread share it.
type inbox struct {
	keys   *keyspace
	speaks dialect
	buf    []byte
	tally  *tally
	run    *run  // valid while there is one
	now    int64 // when the last read was, nanoseconds of the run
	live   func() uint32
	fills  []fill // in order; those before first are done
	first  int
}

// fill is a value that the origin gives at a time, in nanoseconds of the run, which is then to be set.
type fill struct {
	at  int64
	key uint32
}

func newInbox(k *keyspace, d dialect) inbox {
	return inbox{keys: k, speaks: d, buf: make([]byte, readSize), tally: newTally()}
}

// enter begins a run.
func (b *inbox) enter(r *run, driver int) {
	b.run, b.tally, b.now = r, newTally(), 0
	b.fills, b.first = b.fills[:0], 0
	b.live = r.plan.Lives.Chooser(rand.New(rand.NewPCG(r.plan.Seed, uint64(driver))))
	b.tally.pulse = newPulse(r.series, driver)
	if r.schedule != nil {
		b.tally.delay = hdrhistogram.New(1, slowest, digits)
	}
}

// leave ends it.
func (b *inbox) leave() *tally {
	b.tally.pulse.end(b.tally.Counts)
	return b.tally
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

// answered takes in a whole reply.
func (b *inbox) answered(q call, r reply) {
	if !q.more {
		b.tally.took(time.Duration(b.now - q.due))
	}
	b.tally.judge(b.keys, q, r, b.run.second(b.now))
	if q.op == opGet && r.kind == replyMiss && b.run.origin != nil {
		b.fetch(q.key)
	}
}

// fetch asks the origin for what was missed.
func (b *inbox) fetch(key uint32) {
	b.tally.Fetches++
	at := b.run.origin.Ask(b.run.begin.Add(time.Duration(b.now)))
	b.fills = append(b.fills, fill{int64(at.Sub(b.run.begin)), key})
}

// nextFill is when the origin gives the next answer.
func (b *inbox) nextFill() (at int64, ok bool) {
	if b.first == len(b.fills) {
		return 0, false
	}
	return b.fills[b.first].at, true
}

// filled returns the set of what the origin has given by now.
func (b *inbox) filled() (call, bool) {
	at, ok := b.nextFill()
	if !ok || at > b.now {
		return call{}, false
	}
	q := call{op: opSet, key: b.fills[b.first].key, ttl: b.live()}
	if b.first++; b.first == len(b.fills) {
		b.fills, b.first = b.fills[:0], 0
	}
	b.tally.Fills++
	return q, true
}

// lose counts what c still waits for as unanswered, because of why.
func (b *inbox) lose(c *client, why error) {
	if b.tally.firstBroken == nil {
		b.tally.firstBroken = why
	}
	b.tally.Unanswered += uint64(c.waiting())
	if b.keys.writes != nil {
		for _, q := range c.asked[c.next:] {
			if q.op == opSet {
				b.keys.writes.end(q.key, q.version, false, 0)
			}
		}
	}
	c.asked, c.next, c.open, c.closed = nil, 0, 0, true
}
