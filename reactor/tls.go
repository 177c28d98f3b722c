package reactor

import (
	"crypto/tls"
	"io"
	"net"
)

// tlsSocket is a TLS connection that its loop reads and writes itself: the records go
// through a wire that never waits. Goroutines serve it only until its handshake is over.
type tlsSocket struct {
	conn *tls.Conn
	wire *wire
	rest bool  // there may be more to read without a new event
	err  error // to be told by the next read
}

// tlsChunk is how many bytes a write puts into records at a time.
const tlsChunk = 64 << 10

func (s *tlsSocket) read(p []byte) (n int, again bool, err error) {
	for n < len(p) && s.err == nil {
		var m int
		m, s.err = s.conn.Read(p[n:])
		n += m
	}
	err, s.err = s.err, nil
	s.rest = err != errDry
	switch {
	case err == errDry:
		return n, n == 0, nil
	case err != nil && n > 0:
		s.err = err
		return n, false, nil
	case err == io.EOF:
		return 0, false, nil
	}
	return n, false, err
}

func (s *tlsSocket) write(p []byte) (n int, again bool, err error) {
	if again, err = s.wire.flush(); again || err != nil || len(p) == 0 {
		return 0, again, err
	}
	if n, err = s.conn.Write(p[:min(len(p), tlsChunk)]); err != nil {
		return n, false, err
	}
	again, err = s.wire.flush()
	return n, again, err
}

// close tells the peer that this is the end, if the socket takes that much.
func (s *tlsSocket) close() {
	s.conn.CloseWrite()
	s.wire.flush()
	s.wire.sock.close()
}

func (s *tlsSocket) peer() string { return s.wire.sock.peer() }
func (s *tlsSocket) more() bool   { return s.rest }
func (s *tlsSocket) unsent() bool { return len(s.wire.out) > 0 }

func (s *tlsSocket) unacknowledged() int { return len(s.wire.out) + s.wire.sock.unacknowledged() }

func (s *tlsSocket) woke(e event) {
	s.wire.dry = s.wire.dry && !e.readable
	s.wire.done = s.wire.done || e.peerDone
}

// wire is what lies under the TLS of a connection: a net.Conn, which may wait, until sock
// is set, and then sock, which does not. TLS keeps what it has of a record when a read
// ends with an error that calls itself temporary.
type wire struct {
	net.Conn
	sock socket
	dry  bool   // the last read emptied the socket, and no event has come since
	done bool   // the peer has sent its last byte: read on to the end
	out  []byte // records that the socket has not taken
}

// errDry says that there is nothing to read now.
var errDry net.Error = dryError{}

type dryError struct{}

func (dryError) Error() string   { return "nothing to read now" }
func (dryError) Timeout() bool   { return true }
func (dryError) Temporary() bool { return true }

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	switch {
	case w.sock == nil:
		return w.Conn.Read(p)
	case w.dry:
		return 0, errDry
	}
	n, again, err := w.sock.read(p)
	w.dry = !w.done && n < len(p)
	switch {
	case err != nil:
		return 0, err
	case again:
		return 0, errDry
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn. Once there is a sock it only keeps p for flush.
func (w *wire) Write(p []byte) (int, error) {
	if w.sock == nil {
		return w.Conn.Write(p)
	}
	w.out = append(w.out, p...)
	return len(p), nil
}

// recordsKept is how large an empty buffer of records may be to be kept for the next ones, in bytes.
const recordsKept = 16 << 10

// flush writes what is kept, as much as the socket takes.
func (w *wire) flush() (again bool, err error) {
	for len(w.out) > 0 {
		n, again, err := w.sock.write(w.out)
		if again || err != nil {
			return again, err
		}
		w.out = w.out[:copy(w.out, w.out[n:])]
	}
	if cap(w.out) > recordsKept {
		w.out = nil
	}
	return false, nil
}
