package router

import (
	"fmt"

	"cacherouter/memproto"
)

// A client whose first byte is memproto.BinaryMagic speaks the binary protocol to the
// end. Its requests are put into text for the servers, and their replies into binary
// when they are shown; in between they are requests like others.

// keepScratch is the capacity above which a loop does not keep its scratch, in bytes.
const keepScratch = 1 << 20

// speak notes which protocol the client speaks, by its first byte.
func (s *session) speak(first byte) {
	s.spoken = true
	s.binary = first == memproto.BinaryMagic
}

// stepBinary is step in the binary protocol.
func (s *session) stepBinary(b []byte) int {
	p, r := s.front.parser, &s.front.frame
	if s.passwords != nil {
		p.MaxValue = maxSecret
	}
	n, status := p.ParseBinary(b, r)
	switch status {
	case memproto.Incomplete:
		s.conn.Expect(r.Need)
	case memproto.Hangup:
		s.front.stats.Hangups++
		s.end()
	case memproto.Refused:
		s.refuseBinary(r)
	case memproto.Complete:
		if !s.dispatchBinary(r) {
			s.conn.Pause()
			return 0
		}
	}
	return n
}

// refuseBinary answers a malformed frame, after what belongs to it has been dropped.
func (s *session) refuseBinary(r *memproto.BinaryRequest) {
	s.front.stats.Refused[memproto.FaultOf(r.Refusal)]++
	if s.passwords != nil {
		s.unauthenticated()
		return
	}
	if r.Drops { // the old value must not outlive the new one that was refused
		line, verb := r.ForwardDelete(nil)
		q := s.push(nil)
		q.hidden = true
		if q.lead(r.Key, memproto.Changes, verb) {
			q.about(r.Key, r.Base64, verb, memproto.Changes)
			q.submit(line)
		}
	}
	if r.Skip > 0 {
		s.skip, s.refusal = r.Skip, string(s.front.say(r.Refusal, ""))
		return
	}
	s.tell(s.front.say(r.Refusal, ""))
	if r.Close {
		s.end()
	}
}

// dispatchBinary is dispatch in the binary protocol.
func (s *session) dispatchBinary(r *memproto.BinaryRequest) bool {
	verb := r.Op.Verb()
	switch {
	case verb == memproto.Unknown:
		s.sasl(r)
		return true
	case s.passwords != nil && verb != memproto.Version:
		s.unauthenticated()
		return true
	case s.mustWait(verb):
		return false
	}
	s.front.stats.Requests[verb]++
	s.serveBinary(r, verb)
	return true
}

func (s *session) serveBinary(r *memproto.BinaryRequest, verb memproto.Verb) {
	switch verb {
	case memproto.MetaNoop: // what it waits for is answered before it
		s.tell(s.front.say(memproto.CodeOK, ""))
	case memproto.Version:
		s.tell(s.front.say(memproto.CodeOK, s.front.r.cfg.Version))
	case memproto.FlushAll:
		s.flushBinary(r)
	case memproto.Stats:
		s.statBinary(string(r.Key))
	case memproto.Quit:
		if !r.Op.Quiet() {
			s.tell(s.front.say(memproto.CodeOK, ""))
		}
		s.end()
	default:
		s.sendBinary(r)
	}
}

// sendBinary sends a request on one key to the servers.
func (s *session) sendBinary(r *memproto.BinaryRequest) {
	w := s.front
	q := s.push(nil)
	q.came = w.stamp()
	kind := memproto.Changes
	if r.Op.Verb() == memproto.Get { // which asks for the cas, so that no copy will do
		kind = memproto.Reads
	}
	if !q.lead(r.Key, kind, r.Op.Verb()) || q.strayed && !q.renameBinary(r) {
		return
	}
	raw, verb := r.Forward(w.scratch[:0])
	q.about(r.Key, r.Base64, verb, kind)
	if verb == memproto.Gets {
		q.parts = memproto.ClassicItem | memproto.ClassicCAS
	}
	q.adds = r.Op.Verb() == memproto.Add
	q.call.Repeatable = verb == memproto.Gets || verb == memproto.MetaGet
	q.repeatable = q.call.Repeatable
	if q.strayed {
		q.submit(q.obey(raw))
	} else {
		q.submit(raw)
	}
	if cap(raw) <= keepScratch {
		w.scratch = raw[:0]
	}
}

// renameBinary gives a request the servers' name for its key. It reports false if that is
// none; then the request is over.
func (q *request) renameBinary(r *memproto.BinaryRequest) bool {
	if !q.under.renames() {
		return true
	}
	f := q.w.front
	f.key = q.under.appendKey(f.key[:0], r.Key)
	if r.Rename(f.key); r.Refusal == memproto.CodeOK && len(f.key) > 0 && len(f.key) <= memproto.MaxKey {
		return true
	}
	f.stats.Refused[memproto.BadLine]++
	q.came, q.under = 0, nil
	q.finish(badKey)
	return false
}

// answer puts a reply into binary. Both parts are valid until the next one.
func (q *request) answer(reply []byte) (head, value []byte) {
	w := q.w
	head, value = q.binary.Answer(w.head[:0], reply)
	if cap(head) <= keepReply {
		w.head = head[:0]
	}
	return head, value
}

// say writes the answer to the binary request at hand. It is valid until the next one.
func (f *front) say(code memproto.Code, text string) []byte {
	f.told.Remember(&f.frame)
	f.head = f.told.Say(f.head[:0], code, text)
	return f.head
}

// tell answers without asking a server, in turn.
func (s *session) tell(b []byte) {
	if s.head == nil {
		s.conn.Write(b)
		return
	}
	q := s.push(nil)
	q.keep(b)
	q.done = true
}

// flushBinary flushes every server.
func (s *session) flushBinary(r *memproto.BinaryRequest) {
	if !s.front.mayFlush() {
		s.tell(s.front.say(memproto.CodeAuth, ""))
		return
	}
	line := fmt.Appendf(nil, "flush_all %d\r\n", r.FlushDelay())
	s.flush(&memproto.Request{Verb: memproto.FlushAll}, false, line)
}
