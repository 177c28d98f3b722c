package embedded

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// patience bounds waits for what must happen.
const patience = 20 * time.Second

// client is a connection to a server.
type client struct {
	t   *testing.T
	net net.Conn
	in  *bufio.Reader
}

func dial(t *testing.T, s *Server) *client {
	t.Helper()
	network, addr := "tcp", s.Addr()
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	c, err := net.DialTimeout(network, addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return newClient(t, c)
}

// pipe connects to a server without a network, as fake time needs it.
func pipe(t *testing.T, s *Server) *client {
	ours, theirs := net.Pipe()
	go s.ServeConn(theirs)
	return newClient(t, ours)
}

func newClient(t *testing.T, c net.Conn) *client {
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

// want sends a request and checks its reply.
func (c *client) want(request, reply string) {
	c.t.Helper()
	if err := c.send(request); err != nil {
		c.t.Errorf("cannot send %.60q: %v", request, err)
		return
	}
	got := make([]byte, len(reply))
	n, err := io.ReadFull(c.in, got)
	if string(got[:n]) != reply {
		c.t.Errorf("%.60q: got %.200q (%v), want %.200q", request, got[:n], err, reply)
	}
}

func (c *client) send(request string) error {
	if request == "" { // a pipe makes even nothing wait for a reader
		return nil
	}
	_, err := io.WriteString(c.net, request)
	return err
}

// rest reads until the connection ends, and returns what came and why it ended: nil if
// the server closed it in order.
func (c *client) rest() (string, error) {
	b, err := io.ReadAll(c.in)
	return string(b), err
}

// line reads one line.
func (c *client) line() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

// waitFor waits until cond returns nil.
func waitFor(t *testing.T, cond func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	err := errors.New("never tried")
	for tick := time.NewTicker(time.Millisecond); time.Now().Before(deadline); <-tick.C {
		if err = cond(); err == nil {
			return
		}
	}
	t.Fatalf("waited %v in vain: %v", patience, err)
}
