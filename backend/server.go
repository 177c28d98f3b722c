package backend

import (
	"log/slog"
	"sync/atomic"
	"time"

	"cacherouter/latency"
	"cacherouter/memproto"
	"cacherouter/reactor"
)

// Config says how a server is reached.
type Config struct {
	// Name is the server's stable name, for logs.
	Name string
	// Address is host:port, or "unix:" and a path.
	Address string
	// Timeout is how long a call may take, waiting for a connection included. On the bulk
	// lane calls may take up to 60 times as long while bytes of big values move.
	Timeout time.Duration
	// ConnectTimeout is how long connecting may take.
	ConnectTimeout time.Duration
	// MaxQueue is how many bytes may wait to be sent on one connection before calls are
	// failed as busy.
	MaxQueue int
	// BulkSize is the size in bytes from which a request or reply is big.
	BulkSize int
	// Join has gets that are sent one after the other in one turn travel on one line.
	Join bool
	// Dial opens connections; nil means plain ones.
	Dial reactor.Dialer
	// User and Password are said first on each connection, if User is not empty.
	User, Password string
	// Retry is asked, on the loop's goroutine, whether a repeatable call may be sent again
	// as its connection was lost; nil means always.
	Retry func() bool
	// Log gets changes of state; nil means none.
	Log *slog.Logger
	// Reached is told, on the loop's goroutine, when the first of all views that share Health
	// cannot reach the server, and when the last one can again; nil means that nobody wants
	// to know.
	Reached func()
	// Health is shared by all loops' views of the server, so that a change of state is
	// logged once; nil means that this view is alone.
	Health *Health
	// Observe is told what happened to the calls, on the loop's goroutine and never from
	// within a call: at the end of the turn in which one failed, else no more than about
	// every 250 ms, and only if there is something to tell. Busy and Denied are not urgent.
	// Retire and Close tell what is left; there is nothing after them. nil means that
	// nobody wants to know.
	Observe func(Observation)
}

// Health counts the views of a server, one per loop, that cannot reach it. The zero
// value is ready. Any goroutine may use it.
type Health struct {
	down  atomic.Int32
	apart atomic.Bool // gets are not joined any more
}

// Down returns how many views cannot reach the server.
func (h *Health) Down() int { return int(h.down.Load()) }

// Stats counts what one loop has had to do with a server.
type Stats struct {
	Calls       uint64
	Failures    [NumFailures]uint64
	Retries     uint64
	Joined      uint64 // gets that travelled on another one's line
	BytesOut    uint64
	BytesIn     uint64
	Connects    uint64
	Unsolicited uint64 // connections dropped for bytes that nobody had asked for
	InFlight    int    // calls waiting now
	Up          int    // views that can reach the server
	// Latency has how long calls took that were answered, be it with an error, from the turn
	// of the loop that sent them to the one that read the end of the reply: each may be off
	// by the length of a turn, and includes the wait for a connection.
	Latency latency.Histogram
	// Outcomes counts the replies to requests on keys by what they say, and for a request of
	// several keys each of those.
	Outcomes [memproto.NumOutcomes]uint64
}

// Add adds the counters of another view.
func (st *Stats) Add(o Stats) {
	st.Calls += o.Calls
	for i, n := range o.Failures {
		st.Failures[i] += n
	}
	st.Retries += o.Retries
	st.Joined += o.Joined
	st.BytesOut += o.BytesOut
	st.BytesIn += o.BytesIn
	st.Connects += o.Connects
	st.Unsolicited += o.Unsolicited
	st.InFlight += o.InFlight
	st.Up += o.Up
	st.Latency.Add(&o.Latency)
	for i, n := range o.Outcomes {
		st.Outcomes[i] += n
	}
}

// Lane names one of a server's connections.
type Lane uint8

// The lanes of a server.
const (
	Small Lane = iota
	Bulk
	NumLanes
)

// Server is one memcached as one loop sees it. All methods belong to that loop's
// goroutine.
type Server struct {
	cfg     Config
	loop    *reactor.Loop
	lanes   [NumLanes]lane
	slots   [numSlots]slot
	retired bool
	closed  bool
	stats   Stats
	watch   observer
}

// New returns a view of a server and begins to connect to it.
func New(l *reactor.Loop, c Config) *Server {
	if c.Health == nil {
		c.Health = new(Health)
	}
	if c.Retry == nil {
		c.Retry = func() bool { return true }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: c, loop: l}
	s.watch.init(l, c.Observe)
	for i := range s.lanes {
		s.lanes[i].init(s, Lane(i))
	}
	s.lanes[Small].connect()
	return s
}

// Name returns the server's stable name.
func (s *Server) Name() string { return s.cfg.Name }

// Address returns where the server is reached: host:port, or "unix:" and a path.
func (s *Server) Address() string { return s.cfg.Address }

// Retired reports whether Retire was called: nothing may be sent any more.
func (s *Server) Retired() bool { return s.retired }

// Stats returns the counters.
func (s *Server) Stats() Stats {
	st := s.stats
	st.InFlight = s.InFlight()
	if s.Up() {
		st.Up = 1
	}
	return st
}

// InFlight returns how many calls wait now.
func (s *Server) InFlight() (n int) {
	for i := range s.lanes {
		n += s.lanes[i].waiting.n
	}
	return n
}

// Up reports whether the last attempt to connect succeeded or has not ended.
func (s *Server) Up() bool { return !s.lanes[Small].down }

// LaneOf returns the lane for a request of the given size, in bytes, on a key. A key
// with calls outstanding stays on their lane, which keeps its requests in order; size
// decides only when there are none. No slot ever has calls on both lanes, so the rule
// cannot contradict itself even where keys share a slot.
func (s *Server) LaneOf(hash uint64, size int) Lane {
	slot := &s.slots[slotOf(hash)]
	switch {
	case slot.calls[Bulk] > 0:
		return Bulk
	case slot.calls[Small] > 0:
		return Small
	case size >= s.cfg.BulkSize || slot.big == hash && hash != 0:
		return Bulk
	}
	return Small
}

// Reconnect makes an attempt to connect now, for who has learned that a server that was
// unreachable answers again: attempts may be 2 s apart, and calls between them fail. Those
// that come now wait for it. It does nothing where a connection stands.
func (s *Server) Reconnect() {
	for i := range s.lanes {
		if l := &s.lanes[i]; (l.down || l.again.Armed()) && !l.expected {
			l.reconnect()
		}
	}
}

// Claim notes, before a call is sent on a lane, that it is about a key. Until the call is
// over, requests on the key stay on the lane.
func (s *Server) Claim(c *Call, n Lane, hash uint64) {
	slot := slotOf(hash)
	c.claim(slot, hash)
	s.slots[slot].calls[n]++
}

// Saw tells the size of a key's value, so that a big one's next request goes by Bulk.
func (s *Server) Saw(hash uint64, size int) {
	slot := &s.slots[slotOf(hash)]
	if size >= s.cfg.BulkSize {
		slot.big = hash
	} else if slot.big == hash {
		slot.big = 0
	}
}

// Send sends a request for c on a lane. req may change afterwards.
func (s *Server) Send(c *Call, n Lane, req []byte) {
	s.stats.Calls++
	s.stats.BytesOut += uint64(len(req))
	c.keep(req)
	c.retried = false
	c.sent, c.waited = s.loop.Elapsed(), 0
	s.lanes[n].send(c, req)
}

// count counts what a unit of a reply says. That keys were not found, of several that were
// asked for, is seen by who knows which: see Missing.
func (s *Server) count(c *Call, u memproto.Unit, b []byte) {
	switch o := memproto.OutcomeOf(c.Verb, b); {
	case len(c.Key) > 0, !c.Verb.Retrieves(), o != memproto.Miss:
		if o != memproto.Done && (u.Last || o == memproto.Hit) {
			s.stats.Outcomes[o]++
		}
	}
}

// Missing counts keys that a reply did not have, of several that were asked for.
func (s *Server) Missing(keys int) { s.stats.Outcomes[memproto.Miss] += uint64(keys) }

// took returns for how long a call has been under way.
func (s *Server) took(c *Call) time.Duration { return s.loop.Elapsed() - c.sent }

// deadline returns until when a call has time.
func (s *Server) deadline(c *Call) time.Time {
	return s.loop.Now().Add(s.cfg.Timeout - s.took(c))
}

func (s *Server) reached() {
	if s.cfg.Reached != nil {
		s.cfg.Reached()
	}
}

func (s *Server) fail(c *Call, f Failure) {
	s.stats.Failures[f]++
	s.watch.failed(f)
	c.Owner.Failed(c, f)
}

// Retire lets outstanding calls end and then closes the connections. Nothing may be sent
// afterwards.
func (s *Server) Retire() {
	s.retired = true
	s.watch.end()
	for i := range s.lanes {
		s.lanes[i].closeIfIdle()
	}
}

// Close closes the connections and fails outstanding calls.
func (s *Server) Close() {
	s.closed = true
	s.watch.end()
	for i := range s.lanes {
		s.lanes[i].close()
	}
}
