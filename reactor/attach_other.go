//go:build !linux

package reactor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

func newPoller(c Config) (poller, error) {
	if err := Usable(c.Engine); err != nil {
		return nil, err
	}
	return newParker(), nil
}

// Usable returns why an engine cannot be used on this system, nil if it can.
func Usable(e Engine) error {
	switch e {
	case "", Auto, Portable:
		return nil
	}
	return fmt.Errorf("engine %q needs Linux: %w", e, errors.ErrUnsupported)
}

func (l *Loop) attach(nc net.Conn, h func(*Conn) Handler) (*Conn, error) {
	return l.attachStream(nc, false, h), nil
}

func (l *Loop) attachTLS(_ *wire, tc *tls.Conn, h func(*Conn) Handler) { l.attachStream(tc, true, h) }

func listenFd(Listener, []*Loop) (func(), error) {
	return nil, errors.ErrUnsupported
}
