package conformance

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"cacherouter/internal/memcachedtest"
)

// patience bounds every wait for bytes that must come. It is long because a slow machine is not a wrong answer.
const patience = 20 * time.Second

// stream is a connection whose replies are collected as they come, so that neither side can block the other however
// much is written before anything is read.
type stream struct {
	conn net.Conn
	done chan struct{} // closed when reading has ended

	mu      sync.Mutex
	got     []byte        // received and not yet taken
	err     error         // why reading ended; io.EOF for an orderly close
	arrived chan struct{} // closed and replaced when got or err changes
}

// dial connects to host:port, or to the unix socket /path for "unix:/path".
func dial(addr string) (*stream, error) {
	conn, err := memcachedtest.Dial(addr, patience)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	s := &stream{conn: conn, done: make(chan struct{}), arrived: make(chan struct{})}
	go s.collect()
	return s, nil
}

func (s *stream) collect() {
	defer close(s.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := s.conn.Read(buf)
		s.mu.Lock()
		s.got = append(s.got, buf[:n]...)
		s.err = err
		close(s.arrived)
		s.arrived = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends the connection and its reader.
func (s *stream) close() {
	s.conn.Close()
	<-s.done
}

func (s *stream) send(bytes string) error {
	s.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(s.conn, bytes); err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return nil
}

// finish closes the sending half.
func (s *stream) finish() error {
	half, ok := s.conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("cannot half-close a %T", s.conn)
	}
	return half.CloseWrite()
}

// take waits until enough, given all bytes received and whether more can come, says how many of them to take (or a
// negative number to wait for more), and takes them. It fails when the stream ends or patience runs out before that.
func (s *stream) take(enough func(got []byte, ended bool) int) (string, error) {
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		n := enough(s.got, s.err != nil)
		if n >= 0 {
			taken := string(s.got[:n])
			s.got = s.got[n:]
			s.mu.Unlock()
			return taken, nil
		}
		got, err, arrived := string(s.got), s.err, s.arrived
		s.mu.Unlock()
		if err != nil {
			return got, fmt.Errorf("the stream ended (%w) after %s", err, shorten(got))
		}
		select {
		case <-arrived:
		case <-timeout:
			return got, fmt.Errorf("waited %v in vain; so far %s", patience, shorten(got))
		}
	}
}

// settle returns what comes until nothing has come for the given time, or the stream ended.
func (s *stream) settle(quiet time.Duration) string {
	for {
		s.mu.Lock()
		n, arrived, err := len(s.got), s.arrived, s.err
		s.mu.Unlock()
		if err != nil {
			return s.rest(n)
		}
		select {
		case <-arrived:
		case <-time.After(quiet):
			return s.rest(n)
		}
	}
}

func (s *stream) rest(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := string(s.got[:n])
	s.got = s.got[n:]
	return taken
}

// shorten quotes bytes for a message, with the middle left out when they are many.
func shorten(s string) string {
	const most = 300
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q … %q (%d bytes)", s[:most/2], s[len(s)-most/2:], len(s))
}
