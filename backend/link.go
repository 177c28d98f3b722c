package backend

import (
	"io"

	"cacherouter/reactor"
)

// tooMany is what a server at its limit of connections says unasked before it hangs up.
// It is not the answer to the request that waits.
const tooMany = "ERROR Too many open connections\r\n"

// link is the handler of one connection of a lane. It outlives its usefulness by what
// the loop still has to say of it, which is then ignored.
type link struct {
	lane *lane
	conn *reactor.Conn
}

func (k *link) current() bool { return k.lane.conn == k.conn }

// Received hands replies to the calls that wait, in order.
func (k *link) Received(b []byte) int {
	l, taken := k.lane, 0
	if l.greeting && k.current() {
		if taken = l.greeted(b); l.greeting {
			return taken
		}
	}
	for taken < len(b) && k.current() {
		rest := b[taken:]
		c := l.waiting.head
		if c == nil {
			l.s.stats.Unsolicited++
			l.lost(BadReply)
			break
		}
		c.fetchNext()
		u, reply, used, ok := l.unit(c, rest)
		if !ok {
			if c.more || l.within {
				l.s.keepApart()
			}
			l.lost(BadReply)
			break
		}
		if u.Size == 0 {
			l.s.expecting(c, u.Need)
			c.began(l.s.loop.Elapsed())
			k.conn.Expect(u.Need)
			break
		}
		if u.Fault && string(reply) == tooMany {
			l.dismiss(Refused) // another connection would fare no better
			break
		}
		taken += used
		l.tries = 0
		l.s.count(c, u, reply)
		if u.Last {
			l.within = c.more
			l.take()
			took := l.s.took(c)
			l.s.stats.Latency.Observe(took)
			l.s.watch.answered(took)
		}
		if !c.Owner.Replied(c, u, reply) && !u.Last {
			l.lost(BadReply)
		}
	}
	l.tidyWhole()
	l.s.stats.BytesIn += uint64(taken)
	l.closeIfIdle()
	return taken
}

func (k *link) Flushed() {}

func (k *link) Ended() { k.Closed(io.EOF) }

func (k *link) Closed(err error) {
	switch {
	case !k.current():
	case k.lane.greeting:
		k.lane.dismiss(Lost)
	default:
		k.lane.lost(Lost)
	}
}
