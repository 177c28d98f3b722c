//go:build !linux

package reactor

import (
	"net"
	"os"
)

// Detach takes a connection from its loop. Only the loops of Linux can do that.
func (c *Conn) Detach() (f *os.File, rest []byte, ok bool) { return nil, nil, false }

// Movable reports whether Detach can ever take the connection.
func (c *Conn) Movable() bool { return false }

// adopt makes nc, which was accepted once, a connection of l.
func (l *Loop) adopt(nc net.Conn, h func(*Conn) Handler) *Conn { return l.attachStream(nc, true, h) }
