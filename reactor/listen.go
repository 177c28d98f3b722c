package reactor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// acceptPause is how long accepting rests when descriptors or memory are short.
const acceptPause = 50 * time.Millisecond

// handshakeTimeout is how long a client may take for a TLS handshake.
const handshakeTimeout = 10 * time.Second

// Listener says how connections are accepted.
type Listener struct {
	// Net is where connections come from, without TLS.
	Net net.Listener
	// TLS makes connections begin with a handshake, which is waited for before a handler
	// is made; nil means none.
	TLS *tls.Config
	// Allow decides whether a client may connect; nil allows all. It is called with the
	// zero Addr for clients without one, and must be safe for concurrent use.
	Allow func(netip.Addr) bool
	// Handler makes the handler of a connection, on its loop's goroutine.
	Handler func(*Conn) Handler
}

// allows asks Allow about the other side of a connection.
func (ln *Listener) allows(nc net.Conn) bool {
	if ln.Allow == nil {
		return true
	}
	a, _ := nc.RemoteAddr().(*net.TCPAddr)
	return ln.Allow(a.AddrPort().Addr().Unmap())
}

// Serve accepts connections until stop is called, and gives each to the loop that has
// the fewest. stop closes the listener and returns when nothing more will be accepted.
//
// The loops must all have been made with the same Config.
func Serve(ln Listener, loops []*Loop) (stop func(), err error) {
	if ln.TLS == nil && pollsDescriptors(ln.Net, loops[0]) {
		return listenFd(ln, loops)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		acceptAll(&ln, loops)
	}()
	return func() {
		ln.Net.Close()
		<-done
	}, nil
}

// pollsDescriptors reports whether l can accept from ln by itself.
func pollsDescriptors(ln net.Listener, l *Loop) bool {
	if _, parked := l.poller.(*parker); parked {
		return false
	}
	switch ln.(type) {
	case *net.TCPListener, *net.UnixListener:
		return true
	}
	return false
}

func acceptAll(ln *Listener, loops []*Loop) {
	var pending sync.WaitGroup // connections in their handshake
	defer pending.Wait()
	for {
		nc, err := ln.Net.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // descriptors or memory are short
			loops[0].Post(func() { loops[0].stats.AcceptErrors++ })
			time.Sleep(acceptPause)
			continue
		}
		if !ln.allows(nc) {
			loops[0].Post(func() { loops[0].stats.Denied++ })
			nc.Close()
			continue
		}
		if ln.TLS != nil {
			pending.Go(func() { welcome(ln, nc, loops) })
			continue
		}
		place(nc, loops, func(l *Loop) { l.attachStream(nc, true, ln.Handler) })
	}
}

// welcome waits for a handshake.
func welcome(ln *Listener, nc net.Conn, loops []*Loop) {
	ctx, cancel := context.WithTimeout(loops[0].dials, handshakeTimeout)
	defer cancel()
	w := &wire{Conn: nc}
	tc := tls.Server(w, ln.TLS)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		loops[0].Post(func() { loops[0].stats.HandshakeErrors++ })
		return
	}
	place(nc, loops, func(l *Loop) { l.attachTLS(w, tc, ln.Handler) })
}

// place gives a connection to the loop that has the fewest, which attaches it.
func place(nc net.Conn, loops []*Loop, attach func(*Loop)) {
	l := leastLoaded(loops)
	l.load.Add(1)
	if !l.Post(func() { attach(l) }) {
		nc.Close()
	}
}

func leastLoaded(loops []*Loop) *Loop {
	best := loops[0]
	for _, l := range loops[1:] {
		if l.Load() < best.Load() {
			best = l
		}
	}
	return best
}

// Dialer opens a connection; nil stands for a plain one. It may take its time.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Dial connects to an address ("host:port", or "unix:" and a path). It calls done on the
// loop's goroutine with the connection, whose handler h has made, or with an error. The
// returned function gives up; done then gets an error, unless it is too late for that and the
// connection is on its way. Once the loop has ended done is not called.
func (l *Loop) Dial(address string, timeout time.Duration, dial Dialer, h func(*Conn) Handler, done func(*Conn, error)) (cancel func()) {
	ctx, cancel := context.WithTimeout(l.dials, timeout)
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	l.streams.Go(func() {
		defer cancel()
		network, addr := SplitAddress(address)
		nc, err := dial(ctx, network, addr)
		if !l.Post(func() { done(l.dialed(nc, err, h)) }) && err == nil {
			nc.Close()
		}
	})
	return cancel
}

func (l *Loop) dialed(nc net.Conn, err error, h func(*Conn) Handler) (*Conn, error) {
	if err != nil {
		return nil, err
	}
	c, err := l.attach(nc, h)
	if err != nil {
		return nil, fmt.Errorf("cannot use connection to %s: %w", nc.RemoteAddr(), err)
	}
	return c, nil
}

// SplitAddress returns the network and address, as net wants them, of "host:port" or of
// "unix:" and a path.
func SplitAddress(address string) (network, addr string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		return "unix", path
	}
	return "tcp", address
}
