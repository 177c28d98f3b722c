package backend

import (
	"bytes"
	"fmt"
)

// maxGreeting bounds the line that answers a greeting, in bytes.
const maxGreeting = 512

// greet says user and password, as memcached's text protocol wants them: as the value of
// a set whose key does not matter. Requests wait until they are accepted, as a server
// that does not would take the lines of a value for commands.
func (l *lane) greet() {
	l.greeting = true
	secret := l.s.cfg.User + " " + l.s.cfg.Password
	l.conn.WriteString(fmt.Sprintf("set auth 0 0 %d\r\n%s\r\n", len(secret), secret))
	l.greetBy = l.s.loop.Now().Add(l.s.cfg.Timeout)
	if !l.expiry.Armed() {
		l.s.loop.Set(&l.expiry, l.greetBy)
	}
}

// greeted reads the answer to a greeting and returns the bytes it took.
func (l *lane) greeted(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	switch {
	case end < 0 && len(b) <= maxGreeting:
		return 0
	case end >= 0 && string(b[:end+1]) == "STORED\r\n":
		l.open()
		return end + 1
	}
	l.dismiss(Denied)
	return len(b)
}

// dismiss gives up a connection that the server does not want: the greeting was not
// accepted, or it has too many. As another would fare no better, the next attempt waits.
func (l *lane) dismiss(f Failure) {
	conn := l.conn
	l.conn, l.greeting = nil, false
	conn.Close()
	l.unreachable(f)
}
