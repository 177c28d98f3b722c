package backend

import (
	"time"

	"cacherouter/internal/prefetch"
	"cacherouter/memproto"
)

// Owner gets what becomes of a call. Its methods run on the loop's goroutine, and may
// run before [Server.Send] returns.
type Owner interface {
	// Replied brings one unit of the reply, valid during the call; with u.Last the call
	// is over and may be used again. Before that, false says that the unit is no answer
	// to the call; the connection is then dropped as out of step.
	Replied(c *Call, u memproto.Unit, b []byte) bool
	// Failed says that there will be no reply; the call is over.
	Failed(c *Call, f Failure)
	// Restarted says that the call was sent once more: units brought so far are void.
	Restarted(c *Call)
}

// Call is one request on its way to a server. Its exported fields are set by the owner
// before Send and left alone until the call is over.
//
// With many calls under way their memory has long left the processor's caches when the
// replies come, so it is fetched shortly before: the call's, and some 200 bytes behind it.
// An owner does well to keep there what it needs then.
type Call struct {
	Owner Owner
	// Key is that of a request on one key, as the server knows it; empty for others. A retrieval's
	// single value and its end are then one unit, and must be of the key. Reset keeps the memory.
	Key  []byte
	Verb memproto.Verb
	// Repeatable lets the call be sent again when its connection is lost.
	Repeatable bool

	retried bool
	plain   bool  // raw is not kept, as verb and key say it
	more    bool  // the next call's key is on the same line
	slot    uint8 // class of the key that the call is about
	keys    uint32
	waited  uint32 // microseconds from sent until some of the reply was seen, and not all; 0
	hash    uint64 // of the last of them
	next    *Call
	raw     []byte        // what was sent, kept if it may be sent again
	sent    time.Duration // on the loop's clock
	slots   []uint8       // classes of all keys but the first
}

// keepRaw is the capacity above which a call does not keep its buffer, in bytes.
const keepRaw = 4 << 10

// Raw returns what was sent, if the call is repeatable. It is valid until the call is
// used again.
func (c *Call) Raw() []byte {
	if c.plain && len(c.raw) == 0 {
		c.raw = append(append(append(c.raw, c.Verb.String()...), ' '), c.Key...)
		c.raw = append(c.raw, crlf...)
	}
	return c.raw
}

const crlf = "\r\n"

// keep keeps what is sent, should it have to be sent again. A get that is put as simply as can be is
// not copied.
func (c *Call) keep(req []byte) {
	c.raw = c.raw[:0] // of what the call was used for before
	c.plain = (c.Verb == memproto.Get || c.Verb == memproto.Gets) && len(c.Key) > 0 &&
		len(req) == len(c.Verb.String())+len(" ")+len(c.Key)+len(crlf) && req[len(req)-2] == '\r'
	if c.Repeatable && !c.plain {
		c.raw = append(c.raw, req...)
	}
}

// Sent returns when the call was sent, as [reactor.Loop.Elapsed] tells it: what it was sent
// again for, as a connection was lost, is not told.
func (c *Call) Sent() time.Duration { return c.sent }

// First returns the time of the turn in which the first bytes of the reply were there, as
// Sent does. It is 0 if the turn of Replied saw all of them.
func (c *Call) First() time.Duration {
	if c.waited == 0 {
		return 0
	}
	return c.sent + time.Duration(c.waited)*time.Microsecond
}

// answeredBy checks that a value is the one that was asked for. It is the last line of
// defence against a server whose replies are out of step with the requests.
func (c *Call) answeredBy(unit []byte) bool {
	return len(c.Key) == 0 || memproto.IsValueOf(unit, c.Key) || !memproto.IsValue(unit)
}

// began notes that some of a reply is there, but not all.
func (c *Call) began(now time.Duration) {
	if c.waited == 0 {
		c.waited = max(1, uint32((now-c.sent)/time.Microsecond))
	}
}

// Reset makes a call that is over ready for another use. What a call is told on its way is told
// anew by the next one.
func (c *Call) Reset() {
	c.Owner, c.Key, c.Verb, c.Repeatable = nil, c.Key[:0], 0, false
	if c.raw = c.raw[:0]; cap(c.raw) > keepRaw {
		c.raw, c.slots = nil, nil
	}
}

// fetchNext has the processor fetch what the replies after this one need. The key is
// asked for one reply later than the rest, which tells where it is.
func (c *Call) fetchNext() {
	n := c.next
	if n == nil {
		return
	}
	if len(n.Key) > 0 {
		prefetch.Line(&n.Key[0])
	}
	prefetch.Lines(n.next)
}

// claim notes one more key that the call is about.
func (c *Call) claim(slot uint8, hash uint64) {
	if c.keys == 0 {
		c.slot = slot
	} else {
		c.slots = append(c.slots, slot)
	}
	c.keys++
	c.hash = hash
}

// numSlots is how many classes of keys a server's view tells apart.
const numSlots = 256

// slot is what is known of a class of keys. It is together, as each call looks at it when it is
// sent and when it is answered.
type slot struct {
	calls [NumLanes]uint32 // outstanding
	big   uint64           // hash of the key whose value was big when last seen
}

func slotOf(hash uint64) uint8 { return uint8(hash >> 24) }

// queue is a list of calls, first in, first out.
type queue struct {
	head, tail *Call
	n          int
}

func (q *queue) push(c *Call) {
	c.next = nil
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	q.tail = c
	q.n++
}

func (q *queue) pop() *Call {
	c := q.head
	q.head = c.next
	if q.head == nil {
		q.tail = nil
	}
	c.next = nil
	q.n--
	return c
}
