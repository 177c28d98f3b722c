package router

import (
	"io"
	"time"

	"cacherouter/memproto"
	"cacherouter/quota"
	"cacherouter/reactor"
)

// What a client may have outstanding before it is no longer read.
const (
	maxUnread = 512 << 10 // bytes of replies, those to come estimated
	// firstReply is the estimate of a reply while none has come: a new client may have
	// few requests outstanding until it is known that their replies are small.
	firstReply = 64 << 10
)

// session is one client. Its requests wait in a list in the order they came, and their
// replies leave in that order.
type session struct {
	front      *front
	only       *worker // of all keys; nil if routes say of which, or there is a quota
	routes     *routes
	by         *entrance    // that it came by
	quota      *quota.Quota // of its network; nil if there is none
	guest      *guest       // the same
	conn       *reactor.Conn
	head, tail *request
	n          int // requests in the list
	held       int // bytes of replies that wait for an earlier one
	replySize  int // estimate of the bytes of a reply to come

	skip    int    // bytes of a refused request still to be dropped
	refusal string // is said after skip

	spoken  bool // the client has begun, and with that chosen its protocol
	binary  bool // the binary one
	partial bool // the beginning of a request is there
	alone   bool // the request at the head bears no company: nothing is read until it is done
	fenced  bool // the next request must wait until nothing is outstanding
	astray  bool // its routes have changed: so must it, for them to be taken over
	// stepping counts requests that may ask one server after another: a later one on the
	// same key could overtake them.
	stepping int
	id       uint64        // unique within the router
	leases   []grants      // that it was given
	loose    []*request    // are not in the list: their replies may come at any time
	parked   int           // requests that have waited for a write, and are not answered yet
	parkedBy time.Duration // until when they may, on the router's clock
	ended    bool          // no more requests come: close when all are answered
	moving   bool          // to another process: nothing more is read

	passwords Passwords // who must approve before anything is served; nil afterwards
	attempts  int       // to authenticate that failed
	watch     watch

	peer string // where there are records
}

// newSession serves a new client. Where there are passwords it must authenticate first.
func (f *front) newSession(c *reactor.Conn, by *entrance) *session {
	s := &session{front: f, by: by, conn: c, replySize: firstReply, passwords: by.passwords, id: f.r.sessions.Add(1)}
	if f.recorder != nil {
		s.peer = c.Peer()
	}
	if s.guest = f.r.welcome(c, by); s.guest != nil {
		s.quota = s.guest.quota
	}
	s.reroute()
	f.sessions[s] = struct{}{}
	f.stats.Clients++
	s.watch.active = f.loop.Elapsed()
	switch {
	case f.drained != nil:
		s.end()
	case f.full() && !by.local:
		s.turnAway()
	}
	f.sweepLater()
	return s
}

// Received reads requests, as many as the client may have outstanding.
func (s *session) Received(b []byte) int {
	taken := 0
	s.watch.active = s.front.loop.Elapsed()
	for taken < len(b) && !s.ended {
		if !s.ready() {
			s.conn.Pause()
			break
		}
		n := s.step(b[taken:])
		if n == 0 {
			break
		}
		taken += n
	}
	if s.ended {
		return len(b)
	}
	s.partial = taken < len(b)
	if s.moving && s.skip == 0 && !s.conn.Paused() { // the end of what was to be dropped
		s.conn.Pause()
		s.front.loop.Post(s.settle)
	}
	return taken
}

// ready reports whether the client may have one more request outstanding.
func (s *session) ready() bool {
	switch {
	case s.moving && s.skip == 0:
		return false
	case s.n == 0:
		return s.conn.Buffered() < maxUnread
	case s.alone || s.fenced || s.astray || s.n >= s.front.r.cfg.MaxOutstanding:
		return false
	}
	return s.conn.Buffered()+s.held+s.n*s.replySize < maxUnread
}

// step deals with what is at the start of b and returns the bytes it has used, 0 if more
// are needed or the request must wait for those before it.
func (s *session) step(b []byte) int {
	if s.skip > 0 {
		return s.drop(len(b))
	}
	if !s.spoken {
		s.speak(b[0])
	}
	if s.binary {
		return s.stepBinary(b)
	}
	if s.passwords != nil {
		return s.authenticate(b)
	}
	f := s.front
	n, status := f.parser.Parse(b, &f.req)
	switch status {
	case memproto.Incomplete:
		s.conn.Expect(f.req.Need)
	case memproto.Hangup:
		f.stats.Hangups++
		s.end()
	case memproto.Refused:
		s.refuse(&f.req)
	case memproto.Complete:
		if !s.dispatch(&f.req) {
			s.conn.Pause()
			return 0
		}
	}
	return n
}

// drop passes over bytes of a refused request.
func (s *session) drop(n int) int {
	n = min(n, s.skip)
	s.skip -= n
	switch {
	case s.skip > 0:
	case s.binary:
		s.tell([]byte(s.refusal))
	default:
		s.say(s.refusal)
	}
	return n
}

func (s *session) refuse(r *memproto.Request) {
	s.front.stats.Refused[r.Fault]++
	if r.Drops { // the old value must not outlive the new one that was refused
		s.forget(r)
	}
	s.skip, s.refusal = r.Skip, r.Refusal
	if s.skip == 0 {
		s.say(s.refusal)
	}
}

// say answers without asking a server, in turn. An empty line says nothing.
func (s *session) say(line string) {
	switch {
	case line == "":
	case s.head == nil:
		s.conn.WriteString(line)
		s.conn.WriteString("\r\n")
	default:
		q := s.push(nil)
		q.keep([]byte(line))
		q.keep([]byte("\r\n"))
		q.done = true
	}
}

// push adds a request to the list. It is the first pool's until it is known whose it is.
func (s *session) push(r *memproto.Request) *request {
	q := s.front.workers[0].newRequest()
	q.session = s
	if r != nil {
		q.verb, q.quiet = r.Verb, r.NoReply
		q.came = s.front.stamp()
	}
	if s.binary {
		q.binary.Remember(&s.front.frame)
	}
	if s.tail == nil {
		s.head = q
	} else {
		s.tail.next = q
	}
	s.tail = q
	s.n++
	s.front.waiting++
	return q
}

// settle sends the replies that are due and reads on if the client may have more
// outstanding again.
func (s *session) settle() {
	for s.head != nil && s.head.done {
		q := s.pop()
		s.conn.Write(q.reply)
		s.held -= len(q.reply)
		q.w.replied(q)
		s.front.recycle(q)
	}
	if s.head != nil && s.head.gather != nil {
		s.head.gather.proceed()
	}
	if s.n == 0 && s.astray {
		s.reroute()
	}
	if s.n == 0 && (s.ended || s.front.drained != nil) && s.leave() {
		return
	}
	if s.conn.Paused() && s.n <= s.front.r.cfg.MaxOutstanding/2 && s.ready() {
		s.conn.Resume()
	}
}

// sized learns from the size of a reply: at once when it is large, slowly when small.
func (s *session) sized(n int) {
	s.replySize = max(n, s.replySize-(s.replySize-n)/8)
}

func (s *session) pop() *request {
	q := s.head
	s.head = q.next
	if s.head == nil {
		s.tail = nil
	}
	s.left(q)
	return q
}

// left counts one request less.
func (s *session) left(q *request) {
	s.n--
	s.front.waiting--
	s.stepped(q)
	if q.strayed && q.waited {
		s.parked--
	}
}

// stepped notes that no later request can overtake the request any more.
func (s *session) stepped(q *request) {
	if q.steps {
		q.steps = false
		s.stepping--
	}
}

// end reads no more requests; the connection closes when all are answered.
func (s *session) end() {
	s.ended = true
	s.settle()
}

// Flushed is called when a paused client has taken most of its replies.
func (s *session) Flushed() { s.settle() }

// Ended is called when the client will send nothing more. It is still answered.
func (s *session) Ended() { s.end() }

// Closed is called when the connection is gone. Requests that wait for a server are
// left to it; their replies will be dropped.
func (s *session) Closed(err error) {
	if err != nil && err != io.EOF {
		s.front.stats.ClientErrors++
	}
	for s.head != nil {
		q := s.pop()
		s.abandoned(q)
		q.disown()
		if q.done {
			s.front.recycle(q)
		}
	}
	for _, q := range s.loose {
		s.abandoned(q)
		q.disown()
		s.front.waiting--
	}
	s.loose = nil
	s.endLeases()
	s.front.gone(s)
}
