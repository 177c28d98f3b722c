package router

import (
	"time"

	"cacherouter/backend"
	"cacherouter/memproto"
)

// copyTTL bounds the life of a copy on a server that is not its key's home, in seconds:
// so long may a copy that another router does not know of be out of date.
const copyTTL = 10

// refill copies an item to the servers that missed it, with the time it has left. Its
// request has been answered by then, unless it waits to be asked again.
type refill struct {
	w     *worker
	hash  uint64
	token uint64 // the key's epoch from before the item was asked for
	key   []byte
	coded bool // the key is sent in base64
	flags []byte
	value []byte
	to    [2]refillCall
	n     int // servers that get a copy
	left  int // replies to come, or to wait for before there are any
	found bool
	life  time.Duration // what the item has left, in whole seconds; 0 for ever
	gone  bool          // it is not there any more
	// again says that the item comes from a copy.
	again bool
	ask   ttlCall
	line  []byte
	then  *request // is asked again at the end
}

// refillCall stores the copy on one server.
type refillCall struct {
	call backend.Call
	f    *refill
	node *node
	copy bool // must not live long
}

// ttlCall asks how long the item has left.
type ttlCall struct {
	call backend.Call
	f    *refill
}

// startRefill begins to copy a key's item from a server, of which it was just asked, to
// those that missed it. The item itself follows with take or abandon.
func (q *request) startRefill(from *node) *refill {
	w := q.w
	if q.token == 0 || w.epochs.Now(q.hash) != q.token {
		w.stats.Overtaken++
		return nil
	}
	f := w.refills.take()
	f.w, f.hash, f.token, f.coded = w, q.hash, q.token, q.coded
	f.key = append(f.key[:0], q.call.Key...)
	for i := range q.from.at {
		f.to[f.n].node = q.from.nodes[i]
		f.to[f.n].copy = q.from.isCopy(i)
		f.n++
	}
	f.again = q.from.isCopy(q.from.at)
	f.left = 2 // the item and its time
	f.line = memproto.AppendAskTTL(f.line[:0], f.key, f.coded)
	f.ask.f = f
	w.errand(from, &f.ask.call, &f.ask, memproto.MetaGet, f.hash, f.key, f.line)
	return f
}

// errand sends a request of the router's own about a key.
func (w *worker) errand(n *node, c *backend.Call, o backend.Owner, v memproto.Verb, hash uint64, key, line []byte) {
	c.Owner, c.Verb, c.Key = o, v, append(c.Key[:0], key...)
	c.Repeatable = v == memproto.MetaGet || v == memproto.Get
	lane := n.LaneOf(hash, len(line))
	n.Claim(c, lane, hash)
	n.Send(c, lane, line)
}

// Replied takes the time that is left. A server too old to tell it does no harm: a copy
// lives shortly anyway, and an item that is handed over then does so as well.
func (a *ttlCall) Replied(_ *backend.Call, u memproto.Unit, b []byte) bool {
	f := a.f
	seconds, ok := memproto.ParseTTL(b)
	switch {
	case ok && seconds < 0:
		f.life = 0
	case ok && seconds > 0:
		f.life = time.Duration(seconds) * time.Second
	case u.Fault:
		f.life = copyTTL * time.Second
	default:
		f.gone = true
	}
	f.arrived()
	return true
}

func (a *ttlCall) Failed(*backend.Call, backend.Failure) {
	a.f.gone = true
	a.f.arrived()
}

func (a *ttlCall) Restarted(*backend.Call) {}

// take takes the item out of a reply, which is copied.
func (f *refill) take(reply []byte) {
	if it, ok := memproto.ParseItem(reply); ok {
		f.found = true
		f.flags = append(f.flags[:0], it.Flags...)
		f.value = append(f.value[:0], it.Value...)
	}
	f.arrived()
}

// abandon says that there is no item.
func (f *refill) abandon() { f.arrived() }

// arrived counts one reply less to wait for.
func (f *refill) arrived() {
	f.left--
	switch {
	case f.left > 0:
	case f.found && !f.gone && f.shorten():
		f.found = false
		f.store()
	default:
		f.end()
	}
}

// shorten takes a second from the life of what was a copy already, and reports whether it
// has any left: two servers whose clocks tick at different moments could else give each
// other the item back for ever. What lives longer than copies do was there before the
// server was one for copies.
func (f *refill) shorten() bool {
	if f.again && f.life > 0 && f.life <= copyTTL*time.Second {
		f.life -= time.Second
		return f.life > 0
	}
	return true
}

// store sends the copies, each of which is a fill that no write may overtake.
func (f *refill) store() {
	w := f.w
	f.left = 1 // held while some are not sent yet, as one may fail at once
	for i := range f.to[:f.n] {
		c := &f.to[i]
		if c.node.Retired() {
			continue
		}
		if c.copy {
			w.p.copies.mark(f.hash, w.now())
		}
		if !w.epochs.FillBegan(f.hash, f.token) {
			w.stats.Overtaken++
			break
		}
		f.left++
		c.f = f
		it := memproto.Item{Flags: f.flags, Value: f.value}
		var verb memproto.Verb
		f.line, verb = memproto.AppendAdd(f.line[:0], f.key, f.coded, it, f.seconds(c))
		w.errand(c.node, &c.call, c, verb, f.hash, f.key, f.line)
	}
	f.arrived()
}

// seconds returns the exptime of a copy.
func (f *refill) seconds(c *refillCall) int64 {
	s := int64(f.life / time.Second)
	switch {
	case c.copy && (s == 0 || s > copyTTL):
		return copyTTL
	case s > 60*60*24*30: // is taken for a date
		return time.Now().Unix() + s
	}
	return s
}

func (c *refillCall) Replied(_ *backend.Call, _ memproto.Unit, b []byte) bool {
	if b[0] == 'S' || b[0] == 'H' { // STORED, HD
		c.f.w.stats.Copied++
	}
	c.done()
	return true
}

// Failed says that nobody knows whether the copy was stored: it may be yet.
func (c *refillCall) Failed(_ *backend.Call, f backend.Failure) {
	if f == backend.Lost || f == backend.TimedOut || f == backend.BadReply {
		c.f.w.uncleaned(c.node, c.f.hash, c.f.key)
	}
	c.done()
}

func (c *refillCall) Restarted(*backend.Call) {}

func (c *refillCall) done() {
	c.f.w.epochs.FillEnded(c.f.hash)
	c.f.arrived()
}

// end takes back the refill, and asks the request again that waits for it.
func (f *refill) end() {
	w, q := f.w, f.then
	for i := range f.to {
		f.to[i].call.Reset()
		f.to[i] = refillCall{call: f.to[i].call}
	}
	f.ask.call.Reset()
	*f = refill{key: f.key, flags: f.flags, value: spare(f.value), to: f.to, ask: f.ask, line: spare(f.line)}
	w.refills.give(f)
	if q != nil {
		q.again()
	}
}
