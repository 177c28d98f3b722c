package router

import (
	"bytes"

	"cacherouter/memproto"
)

// Authentication in the text protocol: a client's first request is a set, whose value is
// a user and a password with a space between them. Whatever else it says is answered as
// memcached does, and nothing of it is served.
const (
	maxSecret   = 1024 // bytes of user and password
	maxAttempts = 3    // failures until the client is closed
)

// authenticate reads one line of a client that is not known yet, and the value behind
// it. It returns the bytes it has used.
func (s *session) authenticate(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		if len(b) > 2*maxSecret {
			s.front.stats.Hangups++
			s.end()
		}
		return 0
	}
	length, ok := secretLength(b[:end])
	if !ok {
		s.say("CLIENT_ERROR unauthenticated")
		return end + 1
	}
	total := end + 1 + length + 2
	if len(b) < total {
		s.conn.Expect(total)
		return 0
	}
	s.judge(b[end+1 : total])
	return total
}

// secretLength reads the length off a set line; memcached looks at nothing else of it.
func secretLength(line []byte) (int, bool) {
	verb, rest := memproto.NextWord(bytes.TrimSuffix(line, []byte{'\r'}))
	var word []byte
	for range 4 {
		word, rest = memproto.NextWord(rest)
	}
	n, ok := memproto.ParseUint(word)
	return int(n), ok && string(verb) == "set" && n <= maxSecret
}

// judge checks a user and password.
func (s *session) judge(secret []byte) {
	text, whole := bytes.CutSuffix(secret, []byte("\r\n"))
	user, rest := memproto.NextWord(text)
	password, _ := memproto.NextWord(rest)
	switch {
	case !whole:
		s.say("CLIENT_ERROR bad command line termination")
	case len(password) == 0:
		s.say("CLIENT_ERROR bad authentication token format")
	case s.admit(user, password):
		s.say("STORED")
	default:
		s.say("CLIENT_ERROR authentication failure")
	}
	if s.passwords != nil && s.attempts >= maxAttempts {
		s.end()
	}
}

// admit serves the client from now on if it is who it says.
func (s *session) admit(user, password []byte) bool {
	if s.passwords.Check(user, password) {
		s.passwords = nil
		s.front.stats.Authenticated++
		return true
	}
	s.attempts++
	s.front.stats.AuthFailures++
	return false
}
