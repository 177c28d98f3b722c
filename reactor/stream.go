package reactor

import (
	"io"
	"net"
	"sync"
	"time"
)

// stream makes a net.Conn look like a socket that never waits. One goroutine reads into
// a chunk and stops until the loop has taken it; one writes what the loop hands over.
type stream struct {
	nc    net.Conn
	loop  *Loop
	wrote func() // posted when a chunk was written, made once
	got   func() // posted when a chunk was read, made once

	mu      sync.Mutex
	cond    sync.Cond
	chunk   []byte // guarded by mu: read and not yet taken
	readErr error  // guarded by mu
	pending []byte // guarded by mu: to be written
	writing bool   // guarded by mu
	sendErr error  // guarded by mu
	closed  bool   // guarded by mu
}

// streamChunk is how much a stream reads or writes at a time, in bytes.
const streamChunk = 32 << 10

// streamLinger is how long a closing stream tries to write its last chunk.
const streamLinger = time.Second

func (l *Loop) attachStream(nc net.Conn, accepted bool, h func(*Conn) Handler) *Conn {
	s := &stream{nc: nc, loop: l}
	s.cond.L = &s.mu
	c := newConn(l, s, accepted)
	s.got = func() { c.event(s.reading()) }
	s.wrote = func() { c.event(s.written()) }
	c.handler = h(c)
	l.streams.Go(s.readAll)
	l.streams.Go(s.writeAll)
	return c
}

func (s *stream) read(p []byte) (n int, again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = copy(p, s.chunk)
	s.chunk = s.chunk[n:]
	if n > 0 {
		s.cond.Broadcast()
		return n, false, nil
	}
	if s.readErr == io.EOF {
		return 0, false, nil
	}
	return 0, s.readErr == nil, s.readErr
}

func (s *stream) write(p []byte) (n int, again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sendErr != nil || s.writing {
		return 0, s.sendErr == nil, s.sendErr
	}
	n = min(len(p), streamChunk)
	s.pending = append(s.pending[:0], p[:n]...)
	s.writing = true
	s.cond.Broadcast()
	return n, false, nil
}

// close lets the writer finish what it was given; the connection closes after it.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cond.Broadcast()
	if !s.writing {
		s.nc.Close()
		return
	}
	s.nc.SetDeadline(time.Now().Add(streamLinger))
}

func (s *stream) readAll() {
	buf := make([]byte, streamChunk)
	for {
		n, err := s.nc.Read(buf)
		s.mu.Lock()
		s.chunk, s.readErr = buf[:n], err
		s.mu.Unlock()
		s.loop.Post(s.got)
		if err != nil {
			return
		}
		if !s.awaitTaken() {
			return
		}
	}
}

// reading tells what the reader has come to.
func (s *stream) reading() event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event{readable: true, peerDone: s.readErr != nil, hungUp: s.readErr != nil && s.readErr != io.EOF}
}

// written tells what the writer has come to.
func (s *stream) written() event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event{writable: true, readable: s.sendErr != nil, hungUp: s.sendErr != nil}
}

// awaitTaken waits until the loop has taken the chunk; false means it never will.
func (s *stream) awaitTaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.chunk) > 0 && !s.closed {
		s.cond.Wait()
	}
	return !s.closed
}

func (s *stream) writeAll() {
	for s.awaitPending() {
		_, err := s.nc.Write(s.pending)
		s.mu.Lock()
		s.writing, s.sendErr = false, err
		closed := s.closed
		s.mu.Unlock()
		if closed || err != nil {
			s.nc.Close()
		}
		s.loop.Post(s.wrote)
		if err != nil {
			return
		}
	}
}

// awaitPending waits for something to write; false means that nothing more will come.
func (s *stream) awaitPending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.writing && !s.closed {
		s.cond.Wait()
	}
	return s.writing
}

func (s *stream) peer() string {
	a := s.nc.RemoteAddr()
	return a.Network() + ":" + a.String()
}

func (s *stream) more() bool   { return false }
func (s *stream) unsent() bool { return false }
func (s *stream) woke(event)   {}

// unacknowledged knows of the chunk that is being written only.
func (s *stream) unacknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.writing {
		return 0
	}
	return len(s.pending)
}
