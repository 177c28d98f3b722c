//go:build !linux

package reactor

import (
	"errors"
	"net"
)

func newPoller(Config) (poller, error) { return newParker(), nil }

func (l *Loop) attach(nc net.Conn, accepted bool, h func(*Conn) Handler) (*Conn, error) {
	return l.attachStream(nc, accepted, h), nil
}

func listenFd(Listener, []*Loop) (func(), error) {
	return nil, errors.ErrUnsupported
}
