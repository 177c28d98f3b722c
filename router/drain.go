package router

import (
	"context"
	"fmt"
	"os"
	"sync"

	"cacherouter/reactor"
)

// Client is one that moves to another process: its connection, and all that must be known of
// it. Nothing is owed to it.
type Client struct {
	// File is the connection, the receiver's to close.
	File *os.File
	// Rest is what it has sent and what was not looked at yet.
	Rest []byte
	// Listener is the name of the one that it came by.
	Listener string
	// Approved says that its password was checked, or that there was none to check.
	Approved bool
	// Spoken says that it has begun, and Binary that it did with the binary protocol.
	Spoken, Binary bool
}

// Drain stops listening and closes each client when it has been answered. It returns
// when all are gone, or with an error when ctx ends before.
func (r *Router) Drain(ctx context.Context) error { return r.drain(ctx, nil) }

// Move is Drain, but gives clients to take instead of closing them, as soon as nothing is owed to
// them: a client whose connection goes on elsewhere notices nothing. Clients that speak TLS are
// closed, as are all with goroutines for loops. Take is called on all loops, and must not wait.
func (r *Router) Move(ctx context.Context, take func(Client)) error { return r.drain(ctx, take) }

func (r *Router) drain(ctx context.Context, take func(Client)) error {
	r.StopListening()
	var left sync.WaitGroup
	for _, f := range r.fronts {
		left.Add(1)
		if !f.loop.Post(func() { f.drain(take, left.Done) }) {
			left.Done()
		}
	}
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot drain in time: %w", ctx.Err())
	}
}

// drain lets go of every client as soon as it is owed nothing, and calls done after the last
// one.
func (f *front) drain(take func(Client), done func()) {
	f.drained, f.take = done, take
	for s := range f.sessions {
		if take != nil && s.conn.Movable() {
			s.moving = true
			if s.skip == 0 {
				s.conn.Pause()
			}
		}
		s.settle()
	}
	f.gone(nil)
}

// leave lets a client go that is owed nothing, and reports whether it did: what is still to be
// sent to one that moves must leave before.
func (s *session) leave() bool {
	if !s.moving || s.ended {
		if s.partial && !s.ended {
			return false
		}
		s.ended = true
		s.conn.Finish()
		return true
	}
	if s.skip > 0 || len(s.loose) > 0 {
		return false
	}
	s.conn.Pause() // so that it tells when all is sent
	file, rest, ok := s.conn.Detach()
	if !ok {
		return true
	}
	f := s.front
	s.endLeases()
	f.stats.Moved++
	f.take(Client{
		File: file, Rest: rest, Listener: s.by.name, Approved: s.passwords == nil,
		Spoken: s.spoken, Binary: s.binary,
	})
	f.gone(s)
	return true
}

// Adopt serves a client that another process has let go, as if it had come by the listener of
// that name. It keeps the client's file. Any goroutine may call it while the router runs.
func (r *Router) Adopt(c Client) error {
	by := r.entrance(c.Listener)
	if by == nil {
		c.File.Close()
		return fmt.Errorf("cannot adopt a client of %q: there is no such listener", c.Listener)
	}
	return reactor.Adopt(c.File, c.Rest, r.loops, func(conn *reactor.Conn) reactor.Handler {
		s := r.frontOf(conn).newSession(conn, by)
		s.spoken, s.binary = c.Spoken, c.Binary
		if c.Approved {
			s.passwords = nil
		}
		return s
	})
}

func (r *Router) entrance(name string) *entrance {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entrances {
		if e.name == name {
			return e
		}
	}
	return nil
}
