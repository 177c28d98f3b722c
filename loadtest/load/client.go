//go:build linux

package load

type op uint8

const (
	opGet op = iota + 1
	opSet
)

// call is one request that is to be sent or waits for its reply, or one key of a multiget.
type call struct {
	op      op
	more    bool   // the next call is for another key of the same request
	loose   bool   // in an open loop: how late it is sent is not due to the generator
	key     uint32 // number
	ttl     uint32 // of a set, in seconds; 0 is for ever
	version uint32 // of a set
	mark    mark   // of a get
	due     int64  // when latency begins, in nanoseconds of the run
}

// client is one connection of the load: what it has asked, what it still has to write, and the
// part of a reply that has arrived so far. It does no input or output itself.
type client struct {
	fd         int
	slot       int    // its place in the lane
	asked      []call // in order
	next       int    // the first of asked that is not answered
	open       int    // requests that are not answered
	made       int    // requests since it was connected
	out        []byte // what is being written
	sent       int    // how much of out is written
	in         []byte // the beginning of a reply that is not whole
	since      int64  // since when it waits in vain, in nanoseconds of the run
	connecting bool   // nothing can be written yet
	closed     bool
}

func (c *client) waiting() int { return len(c.asked) - c.next }

// compose adds requests to what the client asks: what next yields, up to n. It reports how many it was.
func (b *inbox) compose(c *client, n int, next source, due int64) (requests int) {
	if c.next == len(c.asked) {
		c.asked, c.next = c.asked[:0], 0
	}
	if c.sent == len(c.out) {
		c.out, c.sent = c.out[:0], 0
	}
	for requests < n {
		q, ok := next(b.now)
		if !ok {
			break
		}
		q.due = due
		b.add(c, q)
		if !q.more {
			requests++
		}
	}
	c.open += requests
	c.made += requests
	return requests
}

// add counts a call and appends it to what c asks, and its whole request if it is the last of it.
func (b *inbox) add(c *client, q call) {
	q = b.count(q)
	c.asked = append(c.asked, q)
	switch {
	case q.op == opSet:
		c.out = b.speaks.appendSet(c.out, q)
	case !q.more:
		c.out = b.speaks.appendGet(c.out, lastRequest(c.asked))
	}
}

// count counts a call as made, and begins it if values have versions.
func (b *inbox) count(q call) call {
	writes := b.keys.writes
	if q.op == opSet {
		b.tally.Sets++
		if writes != nil {
			q.version = writes.begin(q.key)
		}
	} else {
		b.tally.Gets++
		if writes != nil {
			q.mark = writes.read(q.key)
		}
	}
	return q
}

// lastRequest is the calls of the last request of all.
func lastRequest(all []call) []call {
	first := len(all) - 1
	for first > 0 && all[first-1].more {
		first--
	}
	return all[first:]
}

// consume takes the whole replies at the start of buf, which c has asked for. It returns the bytes taken, and how
// long the rest must grow to hold a whole reply, 0 when that is not known.
func (b *inbox) consume(c *client, buf []byte) (taken, want int, err error) {
	for taken < len(buf) {
		if c.waiting() == 0 {
			return taken, 0, strange(buf[taken:])
		}
		q := c.asked[c.next]
		r, n, more, err := b.speaks.scan(buf[taken:], q)
		if err != nil || r.kind == 0 {
			return taken, more, err
		}
		b.answered(q, r)
		c.next++
		if !q.more {
			c.open--
		}
		taken += n
	}
	c.compact()
	return taken, 0, nil
}

// compact forgets calls that were answered, when they are many.
func (c *client) compact() {
	const many = 1024
	if c.next >= many && c.next >= len(c.asked)/2 {
		c.asked = c.asked[:copy(c.asked, c.asked[c.next:])]
		c.next = 0
	}
}
