package reactor

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbid makes a system call fail with EPERM, as filters of container runtimes do, on the calling
// thread.
func forbid(call uint32) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

func TestUringForbidden(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := forbid(unix.SYS_IO_URING_SETUP); err != nil {
			t.Logf("skipped, as system calls cannot be filtered: %v", err)
			return
		}
		err := Usable(Uring)
		if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("where io_uring is forbidden the engine says: %v", err)
		}
		if got := Engines(); !slices.Equal(got, []Engine{Epoll, Portable}) {
			t.Errorf("engines are %v", got)
		}
		if _, err := NewLoop(Config{Engine: Uring}); err == nil {
			t.Error("a loop was made all the same")
		}
		wantChosen(t, Config{}, Epoll, "forbidden")
	}()
	<-done
}

// wantChosen wants two loops to be on an engine, and to say why they are not on another one.
func wantChosen(t *testing.T, c Config, want Engine, why string) {
	t.Helper()
	loops, err := NewLoops(2, c)
	if err != nil {
		t.Error(err)
		return
	}
	for _, l := range loops {
		defer l.poller.close()
		e, refused := l.Engine()
		if e != want || (refused != nil) != (why != "") || refused != nil && !strings.Contains(refused.Error(), why) {
			t.Errorf("engine %q took %q, as %v; want %q, as %q", c.Engine, e, refused, want, why)
		}
	}
}

// Auto takes io_uring where it is cheap; who asks for it gets it where it works.
func TestAutoTakesTheCheapest(t *testing.T) {
	p, err := newRingPoller(Config{})
	if err != nil {
		t.Skip(err)
	}
	cheap := p.buffers.Piecemeal()
	p.close()
	if cheap {
		wantChosen(t, Config{}, Uring, "")
		wantChosen(t, Config{Engine: Auto}, Uring, "")
	}
	for _, kernel := range []uint8{linux519, linux61} {
		wantChosen(t, Config{kernel: kernel}, Epoll, "6.12")
		wantChosen(t, Config{kernel: kernel, Engine: Uring}, Uring, "")
	}
	wantChosen(t, Config{Engine: Epoll}, Epoll, "")
	wantChosen(t, Config{Engine: Portable}, Portable, "")
}

// closing is a poller that counts those that are not closed.
type closing struct {
	poller
	open *int
}

func (c closing) close() error { *c.open--; return nil }

// If the last ring cannot be made, no loop has one.
func TestLoopsAreAlike(t *testing.T) {
	for _, test := range []struct {
		rings int // that can be made
		want  Engine
	}{{0, Epoll}, {2, Epoll}, {3, Uring}} {
		rings, others := 0, 0
		loops, err := firstUsable(automatic, func(e Engine) ([]*Loop, error) {
			return newLoops(3, func() (poller, error) {
				switch {
				case e != Uring:
					others++
					return closing{open: &others}, nil
				case rings == test.rings:
					return nil, unix.ENOMEM
				}
				rings++
				return closing{open: &rings}, nil
			})
		})
		if err != nil || len(loops) != 3 {
			t.Fatalf("%d loops, %v", len(loops), err)
		}
		for _, l := range loops {
			if e, refused := l.Engine(); e != test.want || errors.Is(refused, unix.ENOMEM) != (e == Epoll) {
				t.Errorf("of %d rings: took %q, as %v", test.rings, e, refused)
			}
		}
		if test.want == Epoll && rings != 0 || rings+others != 3 {
			t.Errorf("%d rings and %d others are open", rings, others)
		}
	}
	nothing := func(e Engine) ([]*Loop, error) { return nil, errors.New("no " + string(e)) }
	if _, err := firstUsable(automatic, nothing); err == nil || !strings.Contains(err.Error(), "no uring\nno epoll") {
		t.Errorf("without any engine: %v", err)
	}
}

func TestUnknownEngine(t *testing.T) {
	if err := Usable("steam"); err == nil || !strings.Contains(err.Error(), "steam") {
		t.Errorf("an unknown engine: %v", err)
	}
}
