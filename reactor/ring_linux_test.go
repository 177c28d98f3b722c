package reactor

import (
	"bytes"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// silent is the handler of a connection that only writes.
type silent struct{}

func (silent) Received(b []byte) int { return len(b) }
func (silent) Flushed()              {}
func (silent) Ended()                {}
func (silent) Closed(error)          {}

// A turn that writes much has sent it when it is over, so that its length includes it. What is
// little waits for the next call.
func TestMuchIsSentInItsTurn(t *testing.T) {
	if err := Usable(Uring); err != nil {
		t.Skip(err)
	}
	much, little := bytes.Repeat([]byte("x"), manyBytes), []byte("x")
	for _, test := range []struct {
		conns int
		write []byte
		sent  bool
	}{{manyWrites, little, true}, {1, much, true}, {manyWrites - 1, little, false}} {
		runtime.LockOSThread()
		l, err := NewLoop(Config{Engine: Uring})
		if err != nil {
			t.Fatal(err)
		}
		var peers []int
		l.Post(func() {
			for range test.conns {
				fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
				if err != nil {
					t.Error(err)
					return
				}
				peers = append(peers, fds[1])
				c, err := l.attachFd(l.poller.(fdPoller).open(fds[0], false), false, func(*Conn) Handler { return silent{} })
				if err != nil {
					t.Error(err)
					return
				}
				c.Write(test.write)
			}
		})
		if err := l.Turn(); err != nil {
			t.Fatal(err)
		}
		for _, fd := range peers {
			if n, err := unix.Read(fd, make([]byte, 10)); (n > 0) != test.sent {
				t.Errorf("%d connections with %d bytes: got %d bytes, %v", test.conns, len(test.write), n, err)
			}
			unix.Close(fd)
		}
		l.close()
		runtime.UnlockOSThread()
	}
}
