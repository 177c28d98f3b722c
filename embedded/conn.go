package embedded

import (
	"io"
	"net"
	"time"

	"cacherouter/memproto"
)

const (
	firstBuffer = 4 << 10  // bytes a connection reads at least
	keptBuffer  = 64 << 10 // bytes of buffer an idle connection may keep
	maxLine     = 8 << 20  // bytes, of a retrieval
)

// conn is one client.
type conn struct {
	s   *Server
	net net.Conn
	id  uint64

	in      []byte // received and not yet used
	need    int    // bytes of in without which it makes no sense to look again
	out     []byte // replies not yet sent
	skip    int    // bytes of a refused request still to be dropped
	refusal string // is said after skip
	ended   bool
	req     memproto.Request
}

// serve answers the client until it has sent all, or the connection or the server ends.
func (c *conn) serve() {
	defer c.s.forget(c)
	for !c.ended {
		if c.receive() != nil {
			return
		}
		c.work()
		c.flush()
	}
}

// receive waits for more bytes.
func (c *conn) receive() error {
	if len(c.in) == 0 && cap(c.in) > keptBuffer {
		c.in = nil
	}
	if room := max(c.need, len(c.in)+firstBuffer); cap(c.in) < room {
		c.in = append(make([]byte, 0, max(room, 2*cap(c.in))), c.in...)
	}
	for {
		n, err := c.net.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		c.s.bytesRead.Add(uint64(n))
		switch {
		case n > 0 && len(c.in) >= c.need:
			return nil
		case err != nil:
			return err
		}
	}
}

// work does all requests that are whole.
func (c *conn) work() {
	used := 0
	for used < len(c.in) && !c.ended {
		n := c.step(c.in[used:])
		if n == 0 {
			break
		}
		used += n
		if len(c.out) > keptBuffer {
			c.flush()
		}
	}
	c.in = c.in[:copy(c.in, c.in[used:])]
}

// step deals with what is at the start of b, and returns the bytes it has used, 0 if it
// needs more.
func (c *conn) step(b []byte) int {
	c.need = 0
	if c.skip > 0 {
		n := min(c.skip, len(b))
		if c.skip -= n; c.skip == 0 {
			c.reply(func(out []byte) []byte { return say(out, c.refusal) })
		}
		return n
	}
	p := memproto.Parser{MaxValue: c.s.cfg.MaxItem, MaxLine: maxLine}
	n, status := p.Parse(b, &c.req)
	switch status {
	case memproto.Incomplete:
		c.need = c.req.Need
	case memproto.Hangup:
		c.ended = true
	case memproto.Refused:
		c.refuse()
	case memproto.Complete:
		if c.req.Verb == memproto.Quit {
			c.ended = true
			break
		}
		c.reply(func(out []byte) []byte { return c.s.execute(out, &c.req) })
	}
	return n
}

// refuse answers a malformed request once what belongs to it has passed.
func (c *conn) refuse() {
	if c.req.Drops {
		c.s.dropRefused(&c.req)
	}
	c.skip, c.refusal = c.req.Skip, c.req.Refusal
	if c.skip == 0 {
		c.reply(func(out []byte) []byte { return say(out, c.refusal) })
	}
}

// dropRefused removes the item whose new value was too large even to be received.
func (s *Server) dropRefused(r *memproto.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := metaFlags{key: r.Key}
	if r.Base64 && f.decodeKey() != "" {
		return
	}
	s.memory.stats.tooLarge++
	s.memory.drop(f.key)
}

// reply answers a request with what do appends, in the way that the fault of the moment
// has it.
func (c *conn) reply(do func(out []byte) []byte) {
	fault := Fault(c.s.fault.Load())
	switch fault {
	case Stuck:
		c.flush()
		io.Copy(io.Discard, c.net)
		c.ended = true
		return
	case Reset:
		c.flush()
		c.reset()
		return
	}
	start := len(c.out)
	c.out = do(c.out)
	if len(c.out) == start {
		return
	}
	c.pause(start)
	switch fault {
	case Garbage:
		c.out = append(c.out[:start], garbage...)
	case HalfReply:
		c.out = c.out[:start+(len(c.out)-start)/2]
		c.ended = true
	}
}

// pause lets a reply, which begins at start, wait if it must. What was answered before
// it is sent first.
func (c *conn) pause(start int) {
	d := time.Duration(c.s.delay.Load())
	if d <= 0 {
		return
	}
	late := append([]byte(nil), c.out[start:]...)
	c.out = c.out[:start]
	c.flush()
	if !c.s.wait(d) {
		c.ended = true
	}
	c.out = append(c.out, late...)
}

// reset closes the connection so that the peer sees a reset, where the network has such
// a thing.
func (c *conn) reset() {
	if tcp, ok := c.net.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.net.Close()
	c.ended = true
}

// flush sends the replies so far.
func (c *conn) flush() {
	if len(c.out) == 0 {
		return
	}
	n, err := c.net.Write(c.out)
	c.s.bytesWritten.Add(uint64(n))
	if err != nil {
		c.ended = true
	}
	c.out = c.out[:0]
	if cap(c.out) > 2*keptBuffer {
		c.out = nil
	}
}
