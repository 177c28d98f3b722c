//go:build linux

package uring

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Buffers is memory that the kernel fills with what sockets receive, taking a buffer only
// when there are bytes to put in. It lies outside the Go heap. Where the kernel can do so
// it fills a buffer with what comes for many sockets, one after the other.
type Buffers struct {
	group  uint16
	size   int
	memory []byte // the buffers, one after the other
	shared []byte // the ring of those that the kernel may take
	ring   []bufEntry
	tail   *uint16
	next   uint16
	pieces bool
	filled []int // how much of each buffer the kernel has filled
	users  []int // parts of each buffer that were not released, and the kernel as one
}

// Part is a part of a buffer that was filled with bytes for one socket.
type Part struct {
	Bytes []byte
	ID    int
}

// NewBuffers registers n buffers, a power of two, of size bytes each. A ring has one.
func (r *Ring) NewBuffers(n, size int) (*Buffers, error) {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANONYMOUS | unix.MAP_PRIVATE
	b := &Buffers{size: size, filled: make([]int, n), users: make([]int, n)}
	var err1, err2 error
	b.shared, err1 = unix.Mmap(-1, 0, n*int(unsafe.Sizeof(bufEntry{})), prot, flags)
	b.memory, err2 = unix.Mmap(-1, 0, n*size, prot, flags)
	if err := errors.Join(err1, err2); err != nil {
		b.Close()
		return nil, os.NewSyscallError("mmap", err)
	}
	b.ring = unsafe.Slice((*bufEntry)(unsafe.Pointer(&b.shared[0])), n)
	b.tail = &b.ring[0].tail
	reg := bufRingReg{addr: uint64(uintptr(unsafe.Pointer(&b.shared[0]))), entries: uint32(n), group: b.group}
	var err error
	if r.refills {
		reg.flags = bufRingIncrements
		err = r.register(registerBufRing, unsafe.Pointer(&reg), 1)
	}
	if !r.refills || errors.Is(err, unix.EINVAL) {
		reg.flags = 0
		err = r.register(registerBufRing, unsafe.Pointer(&reg), 1)
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("cannot register buffers: %w", err)
	}
	b.pieces = reg.flags&bufRingIncrements != 0
	for id := range n {
		b.offer(id)
	}
	return b, nil
}

// Piecemeal reports whether the kernel fills a buffer by several receives, until it is full.
func (b *Buffers) Piecemeal() bool { return b.pieces }

// offer lets the kernel take a buffer.
func (b *Buffers) offer(id int) {
	b.filled[id], b.users[id] = 0, 1
	e := &b.ring[int(b.next)&(len(b.ring)-1)]
	e.addr = uint64(uintptr(unsafe.Pointer(&b.memory[id*b.size])))
	e.len, e.id = uint32(b.size), uint16(id)
	b.next++
	*b.tail = b.next // the kernel looks at it on this thread only, in a call
}

// Received returns what a completion of Receive brought; Bytes is empty if that is nothing.
// If it is not, the part must be released.
func (b *Buffers) Received(c Completion) (p Part) {
	if c.flags&cqeBuffer == 0 {
		return Part{}
	}
	id, n := int(c.flags>>cqeBufferShift), int(max(c.Res, 0))
	from := id*b.size + b.filled[id]
	b.filled[id] += n
	b.users[id]++
	if c.flags&cqeBufferMore == 0 {
		b.Release(id) // the kernel is done with it
	}
	if n == 0 {
		b.Release(id)
		return Part{}
	}
	return Part{b.memory[from : from+n : from+n], id}
}

// Release gives a part back, by its ID. Its Bytes must not be used any more.
func (b *Buffers) Release(id int) {
	if b.users[id]--; b.users[id] == 0 {
		b.offer(id)
	}
}

// Close gives the memory back, after the ring was closed.
func (b *Buffers) Close() error {
	var errs []error
	for _, m := range [][]byte{b.memory, b.shared} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	b.memory, b.shared = nil, nil
	return errors.Join(errs...)
}
