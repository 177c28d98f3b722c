//go:build !linux

package reactor

import (
	"crypto/tls"
	"errors"
	"net"
)

func newPoller(Config) (poller, error) { return newParker(), nil }

func (l *Loop) attach(nc net.Conn, h func(*Conn) Handler) (*Conn, error) {
	return l.attachStream(nc, false, h), nil
}

func (l *Loop) attachTLS(_ *wire, tc *tls.Conn, h func(*Conn) Handler) { l.attachStream(tc, true, h) }

func listenFd(Listener, []*Loop) (func(), error) {
	return nil, errors.ErrUnsupported
}
