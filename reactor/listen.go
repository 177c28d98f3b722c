package reactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// acceptPause is how long accepting rests when descriptors or memory are short.
const acceptPause = 50 * time.Millisecond

// Serve accepts connections from ln until stop is called, and gives each to the loop
// that has the fewest. The handler is made on that loop's goroutine. stop closes ln and
// returns when nothing more will be accepted.
//
// The loops must all have been made with the same Config.
func Serve(ln net.Listener, loops []*Loop, h func(*Conn) Handler) (stop func(), err error) {
	if pollsDescriptors(ln, loops[0]) {
		return listenFd(ln, loops, h)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		acceptAll(ln, loops, h)
	}()
	return func() {
		ln.Close()
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

func acceptAll(ln net.Listener, loops []*Loop, h func(*Conn) Handler) {
	for {
		nc, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // descriptors or memory are short
			loops[0].Post(func() { loops[0].stats.AcceptErrors++ })
			time.Sleep(acceptPause)
			continue
		}
		l := leastLoaded(loops)
		l.load.Add(1)
		if !l.Post(func() { l.attachStream(nc, true, h) }) {
			nc.Close()
		}
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

// Dial connects to an address ("host:port", or "unix:" and a path). It calls done on the
// loop's goroutine with the connection, whose handler h has made, or with an error. The
// returned function gives up; done then gets an error. Once the loop has ended done is
// not called.
func (l *Loop) Dial(address string, timeout time.Duration, h func(*Conn) Handler, done func(*Conn, error)) (cancel func()) {
	ctx, cancel := context.WithTimeout(l.dials, timeout)
	l.streams.Go(func() {
		defer cancel()
		var d net.Dialer
		network, addr := SplitAddress(address)
		nc, err := d.DialContext(ctx, network, addr)
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
	c, err := l.attach(nc, false, h)
	if err != nil {
		return nil, fmt.Errorf("cannot use connection to %s: %w", nc.RemoteAddr(), err)
	}
	return c, nil
}

// SplitAddress returns the network and address, as net wants them, of "host:port" or of
// "unix:" and a path.
func SplitAddress(address string) (network, addr string) {
	const prefix = "unix:"
	if len(address) > len(prefix) && address[:len(prefix)] == prefix {
		return "unix", address[len(prefix):]
	}
	return "tcp", address
}
