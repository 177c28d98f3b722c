//go:build linux

package load

type op uint8

const (
	opGet op = iota + 1
	opSet
)

// call is one request that is to be sent or waits for its reply.
type call struct {
	op  op
	key uint32
}

// client is one connection of the load: what it has asked, what it still has to write, and the
// part of a reply that has arrived so far. It does no input or output itself.
type client struct {
	fd     int
	slot   int    // its place in the lane
	asked  []call // the batch, in order
	next   int    // the first of asked that is not answered
	out    []byte // the batch as bytes
	sent   int    // how much of out is written
	in     []byte // the beginning of a reply that is not whole
	since  int64  // when the batch was written, in nanoseconds of the lane's clock
	closed bool
}

func (c *client) waiting() int { return len(c.asked) - c.next }

// compose makes the next batch from what next yields, up to n requests. It reports whether there
// is anything to send.
func (c *client) compose(d dialect, n int, next func() (call, bool), counts *Counts) bool {
	c.asked, c.next, c.out, c.sent = c.asked[:0], 0, c.out[:0], 0
	for range n {
		q, ok := next()
		if !ok {
			break
		}
		c.asked = append(c.asked, q)
		if q.op == opGet {
			counts.Gets++
			c.out = d.appendGet(c.out, q.key)
		} else {
			counts.Sets++
			c.out = d.appendSet(c.out, q.key)
		}
	}
	return len(c.asked) > 0
}

// consume takes the whole replies at the start of buf and has each of them judged. It returns the
// bytes taken, and how long the rest must grow to hold a whole reply, 0 when that is not known.
func (c *client) consume(d dialect, buf []byte, judge func(call, reply)) (taken, want int, err error) {
	for taken < len(buf) {
		if c.waiting() == 0 {
			return taken, 0, strange(buf[taken:])
		}
		q := c.asked[c.next]
		r, n, more, err := d.scan(buf[taken:], q)
		if err != nil || n == 0 {
			return taken, more, err
		}
		judge(q, r)
		c.next++
		taken += n
	}
	return taken, 0, nil
}
