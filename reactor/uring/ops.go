//go:build linux

package uring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Accept accepts connections on a listening socket, as descriptors that do not block and
// are not inherited. Each is a completion; it goes on while those say More.
func (r *Ring) Accept(fd int, userData uint64) {
	e := r.put(opAccept, fd, userData)
	e.opFlags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	if r.multishot {
		e.ioprio = acceptMultishot
	}
}

// Receive receives into buffers of b, which [Buffers.Received] finds by the completion.
// It goes on while those say More.
func (r *Ring) Receive(fd int, b *Buffers, userData uint64) {
	e := r.put(opRecv, fd, userData)
	e.flags, e.bufGroup = sqeBufferSelect, b.group
	if r.multishot {
		e.ioprio = recvMultishot
	}
}

// Send sends p, as much of it as the socket takes without waiting. It completes only if
// that is not all of it. The kernel reads p when the entry is submitted, and not
// afterwards: with MSG_DONTWAIT an entry is done or has failed then. Until then p must be
// kept, reachable and unchanged.
func (r *Ring) Send(fd int, p []byte, userData uint64) { r.send(fd, p, userData) }

func (r *Ring) send(fd int, p []byte, userData uint64) *entry {
	e := r.put(opSend, fd, userData)
	e.flags = sqeSkipSuccess
	e.addr, e.len = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), uint32(len(p))
	// Less than all of p counts as a failure if all of it is waited for.
	e.opFlags = unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT | unix.MSG_WAITALL
	return e
}

// Poll completes once when one of events (unix.POLLIN and so on) is there. A hang-up and
// an error always count.
func (r *Ring) Poll(fd int, events uint32, userData uint64) {
	e := r.put(opPollAdd, fd, userData)
	e.opFlags = events
}

// PollAll completes each time one of events comes; it goes on while completions say More.
func (r *Ring) PollAll(fd int, events uint32, userData uint64) {
	e := r.put(opPollAdd, fd, userData)
	e.opFlags, e.len = events, pollMultishot
}

// CancelOne cancels the operation that target was given for; it completes.
func (r *Ring) CancelOne(target, userData uint64) {
	e := r.put(opAsyncCancel, -1, userData)
	e.flags, e.addr = sqeSkipSuccess, target
}

// Cancel cancels all that is under way on a descriptor; what it cancels completes.
func (r *Ring) Cancel(fd int, userData uint64) {
	e := r.put(opAsyncCancel, fd, userData)
	e.flags, e.opFlags = sqeSkipSuccess, cancelAll|cancelFd
}

// CloseFd closes a descriptor, after all that was put before. It completes only if it
// fails.
func (r *Ring) CloseFd(fd int, userData uint64) {
	e := r.put(opClose, fd, userData)
	e.flags = sqeSkipSuccess
}
