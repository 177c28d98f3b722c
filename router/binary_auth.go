package router

import (
	"bytes"

	"cacherouter/memproto"
)

// Authentication in the binary protocol: SASL with the one mechanism PLAIN, by which the
// client says a user and a password in a single step.
const mechanism = "PLAIN"

// sasl serves the requests of SASL. Where nothing is to be proved, they are as unknown
// as to a memcached without it, and clients go on without.
func (s *session) sasl(r *memproto.BinaryRequest) {
	switch {
	case s.passwords == nil:
		s.tell(s.front.say(memproto.CodeUnknownCommand, ""))
	case r.Op == memproto.OpSASLMechanisms:
		s.tell(s.front.say(memproto.CodeOK, mechanism))
	case r.Op == memproto.OpSASLAuth && string(r.Key) == mechanism && s.admitPlain(r.Value):
		s.tell(s.front.say(memproto.CodeOK, "Authenticated"))
	default:
		s.tell(s.front.say(memproto.CodeAuth, ""))
		if s.attempts >= maxAttempts {
			s.end()
		}
	}
}

// admitPlain checks the message of PLAIN (RFC 4616): whom to act for, which is not looked
// at, the user and the password, with zero bytes between them.
func (s *session) admitPlain(message []byte) bool {
	_, rest, _ := bytes.Cut(message, []byte{0})
	user, password, _ := bytes.Cut(rest, []byte{0})
	return s.admit(user, password)
}

// unauthenticated turns away a request that must be approved first. As with memcached,
// the connection ends.
func (s *session) unauthenticated() {
	s.tell(s.front.say(memproto.CodeAuth, ""))
	s.end()
}
