//go:build linux

package load

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls do not tell the Go scheduler that the thread is in the kernel, which would cost more
// than a short call itself. For the waiting one that means that the lane keeps its processor (a P)
// while it waits, and that a collection or a preemption is served only when a signal of the runtime
// interrupts the wait. A lane allocates nothing while it runs, and there are more Ps than lanes.

// readRaw and writeRaw are for non-blocking descriptors; b must not be empty.
func readRaw(fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(n, errno)
}

func writeRaw(fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(n, errno)
}

func waitRaw(epoll int, events []unix.EpollEvent, patience time.Duration) (int, error) {
	limit := unix.NsecToTimespec(int64(patience))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	return result(n, errno)
}

func result(n uintptr, errno unix.Errno) (int, error) {
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
