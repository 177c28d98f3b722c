//go:build linux

package uring

import (
	"errors"
	"unsafe"
)

// NewFiles makes a table of n places for files, all empty. A file that is registered in one
// stays open until it is taken out. A ring has one table, and none after an error: the kernel
// has none, or lets go of a file only when all operations are over that were begun with any
// file of the table (before 6.13; a feature of 6.14 is what tells), or n is more than the
// limit of descriptors.
func (r *Ring) NewFiles(n int) error {
	if !r.registers {
		return errors.ErrUnsupported
	}
	reg := filesReg{n: uint32(n), flags: filesSparse}
	return r.register(registerFiles2, unsafe.Pointer(&reg), int(unsafe.Sizeof(reg)))
}

// SetFile registers the file of a descriptor in a place, for what is put after it, or empties
// the place if fd is -1. The one that was there is let go of. It completes only if it fails;
// the place is empty then.
func (r *Ring) SetFile(place, fd int, userData uint64) {
	e := r.put(opFilesUpdate, -1, userData)
	value := &r.files[(r.sqTail-1)&uint32(len(r.entries)-1)]
	*value = int32(fd)
	e.flags, e.off = sqeSkipSuccess, uint64(place)
	e.addr, e.len = uint64(uintptr(unsafe.Pointer(value))), 1
}

// SendFile is [Ring.Send] to the file in a place. To an empty one it fails with EBADF.
func (r *Ring) SendFile(place int, p []byte, userData uint64) {
	r.send(place, p, userData).flags |= sqeFixedFile
}
