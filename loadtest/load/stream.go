//go:build linux

package load

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// stream is one goroutine that drives one connection which is more than a socket.
type stream struct {
	inbox
	client client
	conn   net.Conn
	batch  int // requests
	origin time.Time
	limit  time.Duration // how long a batch may take
}

func newStream(k *keyspace, d dialect, conn net.Conn, batch int) *stream {
	return &stream{inbox: newInbox(k, d), conn: conn, batch: batch, origin: time.Now(), limit: patience}
}

func (s *stream) depth(n int) { s.batch = n }

func (s *stream) close() { s.conn.Close() }

// offer does what lane.offer does.
func (s *stream) offer(next source, stop *atomic.Bool) *tally {
	s.tally = newTally()
	next = next.until(stop)
	c := &s.client
	for !c.closed && c.compose(s.speaks, s.batch, next, &s.tally.Counts) {
		if err := s.exchange(c); err != nil {
			s.lose(c, err)
			s.conn.Close()
		}
	}
	return s.tally
}

// exchange writes a batch and reads until it is answered.
func (s *stream) exchange(c *client) error {
	now := time.Now()
	c.since = int64(now.Sub(s.origin))
	s.conn.SetDeadline(now.Add(s.limit))
	if _, err := s.conn.Write(c.out); err != nil {
		return fmt.Errorf("cannot write request: %w", err)
	}
	for c.waiting() > 0 {
		n, err := s.conn.Read(s.space(c))
		s.now = int64(time.Since(s.origin))
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
