package netlab

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// asks reports whether a memcached answers a host within half a second.
func asks(t *testing.T, from *Host, s *memcachedtest.Server) error {
	t.Helper()
	c, err := from.DialTimeout(s.Addr(), 500*time.Millisecond)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := c.Write([]byte("version\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "VERSION ") {
		t.Errorf("answer %q", line)
	}
	return err
}

func reaches(t *testing.T, from *Host, s *memcachedtest.Server) {
	t.Helper()
	if err := asks(t, from, s); err != nil {
		t.Errorf("%s does not reach %s: %v", from.Name(), s.Addr(), err)
	}
}

func timesOut(t *testing.T, from *Host, s *memcachedtest.Server) {
	t.Helper()
	if err := asks(t, from, s); !errors.Is(err, os.ErrDeadlineExceeded) && !strings.Contains(errText(err), "i/o timeout") {
		t.Errorf("%s reaches %s: %v, want silence", from.Name(), s.Addr(), err)
	}
}

func errText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// TestPartitionsAndCables: hosts reach a real memcached on another one, and do not when
// they are parted or its cable is out; a killed one refuses.
func TestPartitionsAndCables(t *testing.T) {
	l := New(t)
	a, b, m := l.Host("a"), l.Host("b"), l.Host("m")
	s := memcachedtest.StartAt(t, m)
	reaches(t, a, s)
	l.Cut(a, m)
	timesOut(t, a, s)
	reaches(t, b, s)
	l.Heal()
	l.Partition([]*Host{a, b}, []*Host{m})
	timesOut(t, a, s)
	timesOut(t, b, s)
	l.Heal()
	reaches(t, a, s)
	m.Unplug()
	timesOut(t, a, s)
	m.Plug()
	reaches(t, a, s)
	s.Stop()
	if err := asks(t, a, s); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server: %v, want refusal", err)
	}
	s.Restart()
	reaches(t, a, s)
	if err := asks(t, a, memcachedtest.Start(t)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a server on the machine's own loopback: %v, want refusal", err)
	}
}

// TestLoss: of the pings between two hosts about so many arrive as are not to be lost.
func TestLoss(t *testing.T) {
	l := New(t)
	a, b := l.Host("a"), l.Host("b")
	l.Lose(0.2, a, b)
	server, arrived := listen(t, b)
	c, err := a.Dial(t.Context(), "udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const sent = 200 // more at once might fill the receiver's buffer
	for range sent {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	l.Heal()
	if _, err := c.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if n := <-arrived; n < sent*65/100 || n > sent*95/100 {
		t.Errorf("%d of %d packets arrived, want about four fifths", n, sent)
	}
}

// listen takes packets in on a host until one says that it is the last, and then tells how
// many there were before; -1 if that one does not come.
func listen(t *testing.T, h *Host) (address string, arrived chan int) {
	t.Helper()
	var conn net.PacketConn
	var err error
	if inside := h.within(func() { conn, err = net.ListenPacket("udp", h.IP()+":0") }); inside != nil || err != nil {
		t.Fatal(inside, err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	arrived = make(chan int, 1)
	go func() {
		n, buf := 0, make([]byte, 8)
		for {
			size, _, err := conn.ReadFrom(buf)
			switch {
			case err != nil:
				arrived <- -1
				return
			case string(buf[:size]) == "end":
				arrived <- n
				return
			}
			n++
		}
	}()
	return conn.LocalAddr().String(), arrived
}

// TestLeftOvers of processes that are gone are removed, those of this one are not.
func TestLeftOvers(t *testing.T) {
	l := New(t)
	left := "netlab-999999999-1-x"
	l.ip("netns", "add", left)
	New(t)
	if _, err := os.Stat("/run/netns/" + left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a namespace was left: %v", err)
	}
	if _, err := os.Stat("/run/netns/" + l.prefix + "switch"); err != nil {
		t.Error(err)
	}
}
