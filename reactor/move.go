package reactor

import (
	"fmt"
	"net"
	"os"
)

// Adopt gives a connection that was detached, in this process or another, to the loop that has
// the fewest, and offers rest to its handler before anything else. It keeps the file.
func Adopt(f *os.File, rest []byte, loops []*Loop, h func(*Conn) Handler) error {
	nc, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("cannot adopt a connection: %w", err)
	}
	place(nc, loops, func(l *Loop) {
		if c := l.adopt(nc, h); c != nil && len(rest) > 0 && !c.closed {
			c.in = append(l.buffers.take(len(rest)), rest...)
			c.offer = true
			c.queue()
		}
	})
	return nil
}
