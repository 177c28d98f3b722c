//go:build !linux

package reactor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// automatic are the engines that Auto stands for, the best first.
var automatic = []Engine{Portable}

func newPoller(c Config) (poller, error) {
	if c.Engine != Portable {
		return nil, fmt.Errorf("engine %q needs Linux: %w", c.Engine, errors.ErrUnsupported)
	}
	return newParker(), nil
}

func (l *Loop) attach(nc net.Conn, h func(*Conn) Handler) (*Conn, error) {
	return l.attachStream(nc, false, h), nil
}

func (l *Loop) attachTLS(_ *wire, tc *tls.Conn, h func(*Conn) Handler) { l.attachStream(tc, true, h) }

func listenFd(Listener, []*Loop) (func(), error) {
	return nil, errors.ErrUnsupported
}
