package embedded

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how a Server shall be. The zero value is a server like memcached with its
// defaults.
type Config struct {
	// Memory bounds what the items take, in bytes, bookkeeping included. The least
	// recently used make room for new ones. 0 means 64 MiB.
	Memory int64
	// MaxItem is the largest item, in bytes as memcached counts them: key, value and 59
	// or 63 bytes. 0 means 1 MiB.
	MaxItem int
	// Version is what version answers. Empty means that of the memcached whose ways
	// the server has.
	Version string
	// Now tells the time for expiry; nil means time.Now. It is called from many
	// goroutines, though never from two at once.
	Now func() time.Time
}

// withDefaults returns the configuration with its zero fields filled in.
func (c Config) withDefaults() Config {
	if c.Memory == 0 {
		c.Memory = 64 << 20
	}
	if c.MaxItem == 0 {
		c.MaxItem = 1 << 20
	}
	if c.Version == "" {
		c.Version = "1.6.18"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Server is an embedded memcached server. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	started int64 // second

	mu        sync.Mutex // guards what a request sees: the two below
	memory    memory
	verbosity int

	netMu  sync.Mutex // guards what follows; may be taken while mu is held
	ln     net.Listener
	addr   net.Addr // stays when ln is closed
	conns  map[*conn]struct{}
	closed bool

	done                    chan struct{} // closed by Close
	running                 sync.WaitGroup
	fault                   atomic.Int32 // a Fault; changed under netMu
	delay                   atomic.Int64 // a time.Duration
	accepted                atomic.Uint64
	bytesRead, bytesWritten atomic.Uint64
}

// New returns a server that listens nowhere yet.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	return &Server{
		cfg:     cfg,
		started: cfg.Now().Unix(),
		memory:  newMemory(&cfg),
		conns:   make(map[*conn]struct{}),
		done:    make(chan struct{}),
	}
}

// Start returns a server that serves at addr: host:port, with port 0 for any, or unix:
// and a path. Close ends it.
func Start(addr string, cfg Config) (*Server, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		return nil, fmt.Errorf("cannot start an embedded server: %w", err)
	}
	s := New(cfg)
	if err := s.attach(ln); err != nil {
		return nil, err
	}
	return s, nil
}

// ErrListening means that Serve was called on a server that listens already.
var ErrListening = errors.New("server listens already")

// Serve serves clients of ln, which the server then owns, until Close. It returns nil
// after Close, and ErrListening if the server listens elsewhere.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.attach(ln); err != nil {
		return err
	}
	<-s.done
	return nil
}

// ServeConn serves one client, until it has ended or Close is called. The connection is
// closed then.
func (s *Server) ServeConn(c net.Conn) {
	if conn := s.admit(c, nil); conn != nil {
		conn.serve()
	}
}

func (s *Server) attach(ln net.Listener) error {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	switch {
	case s.closed:
		return errors.Join(net.ErrClosed, ln.Close())
	case s.addr != nil:
		return errors.Join(ErrListening, ln.Close())
	}
	s.accept(ln)
	return nil
}

// Addr returns where clients connect: host:port, or unix: and a path. It is empty before
// Serve.
func (s *Server) Addr() string {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	switch {
	case s.addr == nil:
		return ""
	case s.addr.Network() == "unix":
		return "unix:" + s.addr.String()
	}
	return s.addr.String()
}

// Close stops listening, closes every connection and returns when no goroutine of the
// server is left. Closing twice is harmless.
func (s *Server) Close() error {
	s.netMu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		s.refuse()
	}
	s.netMu.Unlock()
	s.running.Wait()
	return nil
}

// refuse closes the listener and all connections. netMu is held.
func (s *Server) refuse() {
	if s.ln != nil {
		s.ln.Close()
		s.ln = nil
	}
	for c := range s.conns {
		c.net.Close()
	}
}

// listenAgain listens where the server did before. netMu is held.
func (s *Server) listenAgain() error {
	if s.addr == nil {
		return nil
	}
	ln, err := net.Listen(s.addr.Network(), s.addr.String())
	if err != nil {
		return fmt.Errorf("cannot listen again: %w", err)
	}
	s.accept(ln)
	return nil
}

// accept starts accepting clients of ln. netMu is held.
func (s *Server) accept(ln net.Listener) {
	s.ln, s.addr = ln, ln.Addr()
	s.running.Go(func() {
		for {
			c, err := ln.Accept()
			switch {
			case err == nil:
				if conn := s.admit(c, ln); conn != nil {
					go conn.serve() // admit has counted it as running
				}
			case errors.Is(err, net.ErrClosed), !s.wait(acceptPause):
				return
			}
		}
	})
}

// acceptPause is how long accepting rests when there are no descriptors.
const acceptPause = 10 * time.Millisecond

// admit takes in a connection, unless the server has closed or refuses connections, as it
// may have begun to while c was being accepted. The connection then counts as running
// until its serve returns.
func (s *Server) admit(c net.Conn, ln net.Listener) *conn {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	if s.closed || ln != nil && ln != s.ln || Fault(s.fault.Load()) == RefuseConnections {
		c.Close()
		return nil
	}
	conn := &conn{s: s, net: c, id: s.accepted.Add(1)}
	s.conns[conn] = struct{}{}
	s.running.Add(1)
	return conn
}

// forget is the end of a connection.
func (s *Server) forget(c *conn) {
	c.net.Close()
	s.netMu.Lock()
	delete(s.conns, c)
	s.netMu.Unlock()
	s.running.Done()
}

func (s *Server) countConns() int {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	return len(s.conns)
}

// connStats appends what stats conns answers.
func (s *Server) connStats(out []byte) []byte {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	for c := range s.conns {
		peer := strings.ReplaceAll(c.net.RemoteAddr().String(), " ", "_")
		out = fmt.Appendf(out, "STAT %d:addr %s:%s\r\nSTAT %d:state conn_read\r\n",
			c.id, c.net.RemoteAddr().Network(), peer, c.id)
	}
	return append(out, "END\r\n"...)
}
