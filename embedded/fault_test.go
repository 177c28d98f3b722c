package embedded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func setFault(t *testing.T, s *Server, f Fault) {
	t.Helper()
	if err := s.SetFault(f); err != nil {
		t.Fatal(err)
	}
}

func TestReset(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	c.want("set a 0 0 1\r\nx\r\n", "STORED\r\n")
	setFault(t, s, Reset)
	io.WriteString(c.net, "delete a\r\n")
	if got, err := c.rest(); got != "" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %q and %v, want a reset", got, err)
	}
	setFault(t, s, None)
	dial(t, s).want("get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n") // the delete was not done
}

func TestGarbage(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	setFault(t, s, Garbage)
	c.want("set a 0 0 1\r\nx\r\nset b 0 0 1 noreply\r\nx\r\nnonsense\r\n", garbage+garbage)
	setFault(t, s, None)
	c.want("get a b\r\n", "VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\nx\r\nEND\r\n")
}

func TestHalfReply(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	c.want("set a 0 0 1\r\nx\r\n", "STORED\r\n")
	setFault(t, s, HalfReply)
	io.WriteString(c.net, "get a\r\n")
	whole := "VALUE a 0 1\r\nx\r\nEND\r\n"
	if got, err := c.rest(); got != whole[:len(whole)/2] || err != nil {
		t.Errorf("got %q and %v, want half of %q", got, err, whole)
	}
}

func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		c.want("set a 0 0 1\r\nx\r\n", "STORED\r\n")
		setFault(t, s, Stuck)
		for range 100 { // a pipe has no buffer: all of this is read
			c.want("delete a\r\n", "")
		}
		setFault(t, s, None)
		c.want("version\r\n", "")
		c.net.SetReadDeadline(time.Now().Add(24 * time.Hour))
		if got, err := c.rest(); got != "" || err == nil {
			t.Errorf("got %q and %v on a connection that was stuck, want silence", got, err)
		}
		other := pipe(t, s)
		defer other.net.Close()
		other.want("get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n")
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		s.SetDelay(3 * time.Second)
		begin := time.Now()
		f := func(request, reply string, want time.Duration) {
			t.Helper()
			c.want(request, reply)
			if took := time.Since(begin); took != want {
				t.Errorf("answered after %v, want %v", took, want)
			}
		}
		f("set a 0 0 1\r\nx\r\n", "STORED\r\n", 3*time.Second)
		f("mn\r\nmn\r\n", "MN\r\n", 6*time.Second) // every reply waits, pipelined or not
		f("", "MN\r\n", 9*time.Second)
		f("delete a noreply\r\nget a\r\n", "END\r\n", 12*time.Second)
		setFault(t, s, Garbage)
		f("mn\r\n", garbage, 15*time.Second)
		setFault(t, s, None)
		s.SetDelay(0)
		f("mn\r\n", "MN\r\n", 15*time.Second)

		s.SetDelay(time.Hour)
		c.want("mn\r\n", "")
		synctest.Wait()
		s.Close() // does not wait for the delay
		if got, err := c.rest(); got != "" || err != nil {
			t.Errorf("got %q and %v, want the end", got, err)
		}
		if took := time.Since(begin); took != 15*time.Second {
			t.Errorf("Close took %v", took-15*time.Second)
		}
	})
}

func TestRefuseConnections(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "unix:" + t.TempDir() + "/socket"} {
		s, err := Start(addr, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c := dial(t, s)
		c.want("set a 0 0 1\r\nx\r\n", "STORED\r\n")
		for range 3 {
			was := s.Addr()
			setFault(t, s, RefuseConnections)
			setFault(t, s, RefuseConnections) // twice is as good as once
			if got, _ := c.rest(); got != "" {
				t.Errorf("got %q on a connection that should end", got)
			}
			if s.Addr() != was {
				t.Errorf("the address is now %s, was %s", s.Addr(), was)
			}
			if c, err := net.Dial(s.addr.Network(), s.addr.String()); err == nil {
				c.Close()
				t.Errorf("%s accepts connections", s.Addr())
			}
			setFault(t, s, None)
			c = dial(t, s)
			c.want("get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n")
		}
	}
}

func TestRefusalLastsWhileTheAddressIsTaken(t *testing.T) {
	s := start(t, Config{})
	setFault(t, s, RefuseConnections)
	ln, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetFault(None); err == nil || !strings.HasPrefix(err.Error(), "cannot listen again") {
		t.Errorf("got %v, want that it cannot listen", err)
	}
	ln.Close()
	setFault(t, s, None)
	dial(t, s).want("mn\r\n", "MN\r\n")
}

// Faults may change at any time: connections either work, or end.
func TestFaultsChangeUnderLoad(t *testing.T) {
	s := start(t, Config{})
	stop := make(chan struct{})
	done := make(chan error)
	for i := range 4 {
		go func() { done <- hammer(s, i, stop) }()
	}
	for range 20 {
		for f := None; f <= RefuseConnections; f++ {
			setFault(t, s, f)
			s.SetDelay(time.Duration(f) * time.Microsecond)
		}
	}
	setFault(t, s, None)
	close(stop)
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	dial(t, s).want("mn\r\n", "MN\r\n")
}

// hammer asks for a number of its own until stop, and reports a wrong one.
func hammer(s *Server, id int, stop <-chan struct{}) error {
	request := fmt.Sprintf("set k%d 0 0 1\r\n%d\r\nget k%d\r\n", id, id, id)
	want := fmt.Sprintf("STORED\r\nVALUE k%d 0 1\r\n%d\r\nEND\r\n", id, id)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			continue // refused
		}
		c.SetDeadline(time.Now().Add(10 * time.Millisecond)) // stuck
		io.WriteString(c, request)
		got := make([]byte, len(want))
		n, err := io.ReadFull(c, got)
		c.Close()
		if err == nil && !strings.Contains(string(got), garbage[:3]) && string(got) != want {
			return fmt.Errorf("got %q, want %q", got[:n], want)
		}
	}
}
