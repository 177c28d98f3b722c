//go:build linux

package uring

import (
	"testing"

	"golang.org/x/sys/unix"
)

// received returns what a socket has, "" if it is nothing or the end.
func received(fd int) (string, error) {
	b := make([]byte, 100)
	n, err := unix.Read(fd, b)
	return string(b[:max(n, 0)]), err
}

func filesOf(t *testing.T, r *Ring, n int) {
	t.Helper()
	if err := r.NewFiles(n); err != nil {
		t.Skip(err)
	}
}

// What is put is done with the file that was in the place then, though all is submitted at
// once.
func TestFilesTakeTurns(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		filesOf(t, r, 4)
		a1, b1 := sockets(t)
		a2, b2 := sockets(t)
		r.SetFile(3, a1, 1)
		r.SendFile(3, []byte("one"), 2)
		r.SetFile(3, -1, 3)
		r.SetFile(3, a2, 4)
		r.SendFile(3, []byte("two"), 5)
		none(t, r)
		if got, err := received(b1); got != "one" {
			t.Errorf("the first got %q, %v", got, err)
		}
		if got, err := received(b2); got != "two" {
			t.Errorf("the second got %q, %v", got, err)
		}
	})
}

// A file stays open until it is taken out, even while it is received from by its descriptor.
func TestFileIsLetGo(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		filesOf(t, r, 4)
		buffers := buffersOf(t, r, 2, 16)
		a, b := sockets(t)
		fd, err := unix.Dup(a)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(a)
		other, _ := sockets(t)
		r.Receive(other, buffers, 9) // which goes on
		r.SetFile(0, fd, 1)
		r.Receive(fd, buffers, 2)
		r.SendFile(0, []byte("hello"), 3)
		none(t, r)
		if got, err := received(b); got != "hello" {
			t.Errorf("got %q, %v", got, err)
		}
		r.Cancel(fd, 4)
		r.CloseFd(fd, 5)
		if c := next(t, r); c.UserData != 2 {
			t.Errorf("completion %+v", c)
		}
		if _, err := received(b); err != unix.EAGAIN {
			t.Errorf("with the file registered: %v", err)
		}
		r.SetFile(0, -1, 6)
		none(t, r)
		if got, err := received(b); got != "" || err != nil {
			t.Errorf("after the file was taken out: %q, %v", got, err)
		}
	})
}

func TestNoFile(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		filesOf(t, r, 4)
		a, _ := sockets(t)
		r.SendFile(0, []byte("x"), 1)
		if c := next(t, r); c.UserData != 1 || unix.Errno(-c.Res) != unix.EBADF {
			t.Errorf("sending to an empty place completes with %+v", c)
		}
		r.SetFile(4, a, 2)
		if c := next(t, r); c.UserData != 2 || c.Res >= 0 {
			t.Errorf("registering in a place that is not there completes with %+v", c)
		}
		r.SetFile(0, 1<<20, 3)
		if c := next(t, r); c.UserData != 3 || unix.Errno(-c.Res) != unix.EBADF {
			t.Errorf("registering what is not open completes with %+v", c)
		}
	})
}

// Where files could be kept open by others there is no table.
func TestFilesNeedTheirKernel(t *testing.T) {
	for _, kernel := range []Kernel{Linux519, Linux61} {
		r, err := New(Config{Entries: 8, Completions: 64, Kernel: kernel})
		if err != nil {
			t.Skip(err)
		}
		if r.NewFiles(4) == nil {
			t.Errorf("kernel %d has a table", kernel)
		}
		r.Close()
	}
}
