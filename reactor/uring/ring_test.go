//go:build linux

package uring

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kinds runs a test with all that the kernel has, and as on older ones.
func kinds(t *testing.T, f func(t *testing.T, r *Ring)) {
	for name, c := range map[string]Config{
		"new":  {Entries: 8, Completions: 64},
		"6.1":  {Entries: 8, Completions: 64, Kernel: Linux61},
		"5.19": {Entries: 8, Completions: 64, Kernel: Linux519},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // which is the one that has enabled the ring
			defer runtime.UnlockOSThread()
			r, err := New(c)
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { r.Close() })
			if err := r.Enable(); err != nil {
				t.Fatal(err)
			}
			f(t, r)
		})
	}
}

// next waits for one completion.
func next(t *testing.T, r *Ring) Completion {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if c, ok := r.Next(); ok {
			return c
		}
		if err := r.Wait(1, time.Second, true); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no completion")
	return Completion{}
}

// none submits what there is and wants no completion of it.
func none(t *testing.T, r *Ring) {
	t.Helper()
	if err := r.Collect(); err != nil {
		t.Fatal(err)
	}
	if c, ok := r.Next(); ok {
		t.Fatalf("unexpected completion %+v", c)
	}
}

// sockets returns two ends of a connection.
func sockets(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func buffersOf(t *testing.T, r *Ring, n, size int) *Buffers {
	t.Helper()
	b, err := r.NewBuffers(n, size)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestSend(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		a, b := sockets(t)
		p := []byte("hello")
		r.Send(a, p, 1)
		none(t, r) // what is sent whole makes no completion
		copy(p, "XXXXX")
		got := make([]byte, 10)
		if n, err := unix.Read(b, got); string(got[:max(n, 0)]) != "hello" {
			t.Errorf("got %q, %v", got[:max(n, 0)], err)
		}
		much := make([]byte, 8<<20)
		r.Send(a, much, 2)
		c := next(t, r)
		if c.UserData != 2 || c.Res <= 0 || int(c.Res) >= len(much) {
			t.Errorf("sending too much completes with %+v", c)
		}
		r.Send(a, much, 3)
		if c := next(t, r); c.UserData != 3 || unix.Errno(-c.Res) != unix.EAGAIN {
			t.Errorf("sending to a full socket completes with %+v", c)
		}
		unix.Close(b)
		r.Send(a, p, 4)
		if c := next(t, r); c.UserData != 4 || unix.Errno(-c.Res) != unix.EPIPE {
			t.Errorf("sending to a closed socket completes with %+v", c)
		}
	})
}

// More entries than there is room for are submitted meanwhile, in their order.
func TestManyEntries(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		a, b := sockets(t)
		var want []byte
		for i := range 100 {
			want = append(want, byte(i))
		}
		for i := range want {
			r.Send(a, want[i:i+1], 1)
		}
		none(t, r)
		got := make([]byte, 200)
		if n, _ := unix.Read(b, got); !bytes.Equal(got[:max(n, 0)], want) {
			t.Errorf("got %v", got[:max(n, 0)])
		}
	})
}

// All buffers are used many times, by receivers that keep parts for different times.
func TestReceive(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		buffers := buffersOf(t, r, 4, 64)
		a, b := sockets(t)
		r.Receive(b, buffers, 1)
		none(t, r)
		var want, got []byte
		var kept []Part
		for i := range 200 {
			piece := bytes.Repeat([]byte{byte(i)}, 1+i%50)
			want = append(want, piece...)
			unix.Write(a, piece)
			for len(got) < len(want) {
				c := next(t, r)
				part := buffers.Received(c)
				got = append(got, part.Bytes...)
				if !bytes.HasSuffix(want[:len(got)], part.Bytes) {
					t.Fatalf("piece %d: got %v", i, part.Bytes)
				}
				if kept = append(kept, part); len(kept) > i%3 {
					for _, p := range kept {
						buffers.Release(p.ID)
					}
					kept = kept[:0]
				}
				if !c.More() {
					r.Receive(b, buffers, 1)
				}
			}
		}
		if !bytes.Equal(got, want) {
			t.Error("what was received is not what was sent")
		}
		unix.Close(a)
		c := next(t, r)
		for unix.Errno(-c.Res) == unix.ENOBUFS { // the last parts were kept
			r.Receive(b, buffers, 1)
			c = next(t, r)
		}
		if c.Res != 0 || c.More() || buffers.Received(c).Bytes != nil {
			t.Errorf("the end is %+v", c)
		}
	})
}

// While all buffers are in use nothing is received, and nothing is lost.
func TestNoBuffers(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		buffers := buffersOf(t, r, 2, 16)
		a, b := sockets(t)
		text := []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL")
		unix.Write(a, text)
		var parts []Part
		var got []byte
		for {
			r.Receive(b, buffers, 1)
			c := next(t, r)
			for c.Res > 0 && c.More() {
				parts = append(parts, buffers.Received(c))
				c = next(t, r)
			}
			if unix.Errno(-c.Res) == unix.ENOBUFS {
				break
			}
			parts = append(parts, buffers.Received(c))
		}
		for _, p := range parts {
			got = append(got, p.Bytes...)
			buffers.Release(p.ID)
		}
		if len(got) != 32 {
			t.Fatalf("%d bytes in two buffers of 16", len(got))
		}
		for len(got) < len(text) {
			r.Receive(b, buffers, 1)
			p := buffers.Received(next(t, r))
			got = append(got, p.Bytes...)
			buffers.Release(p.ID)
		}
		if !bytes.Equal(got, text) {
			t.Errorf("got %q", got)
		}
	})
}

// What is under way when it is cancelled says so, and the descriptor closes in its turn.
func TestCancel(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		buffers := buffersOf(t, r, 2, 16)
		a, b := sockets(t)
		r.Receive(b, buffers, 1)
		r.Poll(b, unix.POLLRDHUP, 2)
		none(t, r)
		r.CancelOne(2, 9)
		if c := next(t, r); c.UserData != 2 || unix.Errno(-c.Res) != unix.ECANCELED {
			t.Errorf("a cancelled poll completes with %+v", c)
		}
		again, err := unix.Dup(b)
		if err != nil {
			t.Fatal(err)
		}
		r.Send(again, []byte("bye"), 8)
		r.Cancel(b, 9)
		r.CloseFd(again, 9)
		if c := next(t, r); c.UserData != 1 || unix.Errno(-c.Res) != unix.ECANCELED || c.More() {
			t.Errorf("a cancelled receive completes with %+v", c)
		}
		got := make([]byte, 10)
		if n, _ := unix.Read(a, got); string(got[:max(n, 0)]) != "bye" {
			t.Errorf("got %q", got[:max(n, 0)])
		}
		if err := unix.Close(again); !errors.Is(err, unix.EBADF) {
			t.Errorf("the descriptor was not closed: %v", err)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	kinds(t, func(t *testing.T, r *Ring) {
		for _, announce := range []bool{false, true} {
			began := time.Now()
			if err := r.Wait(1, 20*time.Millisecond, announce); err != nil {
				t.Error(err)
			}
			// A signal may end it, as it may any wait.
			if c, ok := r.Next(); ok {
				t.Errorf("completion %+v after %v", c, time.Since(began))
			}
		}
	})
}
