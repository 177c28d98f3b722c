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
	}()
	<-done
}

func TestUnknownEngine(t *testing.T) {
	if err := Usable("steam"); err == nil || !strings.Contains(err.Error(), "steam") {
		t.Errorf("an unknown engine: %v", err)
	}
}
