//go:build linux

package load

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// stream is one goroutine that drives one connection which is more than a socket.
type stream struct {
	inbox
	client client
	conn   net.Conn
	batch  int           // requests
	limit  time.Duration // how long a batch may take
}

func newStream(k *keyspace, d dialect, conn net.Conn, batch int) *stream {
	return &stream{inbox: newInbox(k, d), conn: conn, batch: batch, limit: patience}
}

func (s *stream) depth(n int) { s.batch = n }

func (s *stream) close() { s.conn.Close() }

// offer does what lane.offer does.
func (s *stream) offer(r *run, driver int, next source) *tally {
	s.enter(r, driver)
	next = next.until(&r.stop)
	s.now = r.clock()
	c := &s.client
	for !c.closed && s.compose(c, s.batch, next, s.now) > 0 {
		if err := s.exchange(c); err != nil {
			s.lose(c, err)
			s.conn.Close()
		}
	}
	return s.leave()
}

// exchange writes a batch and reads until it is answered.
func (s *stream) exchange(c *client) error {
	s.tally.lastSent = s.now
	s.conn.SetDeadline(time.Now().Add(s.limit))
	if _, err := s.conn.Write(c.out); err != nil {
		return fmt.Errorf("cannot write request: %w", err)
	}
	c.sent = len(c.out)
	for c.waiting() > 0 {
		n, err := s.conn.Read(s.space(c))
		s.now = s.run.clock()
		s.tally.pulse.beat(s.now, s.tally.Counts)
		if err := s.digest(c, n); err != nil {
			return err
		}
		if err != nil && c.waiting() > 0 {
			return unread(err)
		}
	}
	return nil
}

func unread(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errLate
	case errors.Is(err, io.EOF):
		return errClosed
	}
	return fmt.Errorf("cannot read reply: %w", err)
}
