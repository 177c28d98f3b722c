package top

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminals returns both ends of a terminal of its own: what a person sees, and what a program
// has.
func terminals(t *testing.T) (person, program *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	person = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	fd, err = unix.Open(fmt.Sprint("/dev/pts/", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, os.NewFile(uintptr(fd), "pts")
}

func settings(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// Whatever happens, a terminal that does not echo is of no use to anybody.
func TestAPanicGivesTheTerminalBack(t *testing.T) {
	person, program := terminals(t)
	was := settings(t, person)
	s := new(screen)
	if err := s.take(program); err != nil {
		t.Fatal(err)
	}
	if settings(t, person) == was {
		t.Error("keys do not come one by one")
	}
	func() {
		defer func() { recover() }()
		s.closedByPanic(func() { panic("on purpose") })
	}()
	if now := settings(t, person); now != was {
		t.Fatalf("it was %+v and is %+v", was, now)
	}
	seen := make([]byte, len(enter)+len(leave))
	if _, err := io.ReadFull(person, seen); err != nil || string(seen) != enter+leave {
		t.Errorf("seen: %q, %v", seen, err)
	}
	s.close()
	if err := s.draw(viewOf(1)); err != nil {
		t.Errorf("what is drawn later: %v", err)
	}
}
