//go:build linux

package uring

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ring is one io_uring. All methods but New's are for the one thread that has called
// Enable; until then it may be any, one at a time.
type Ring struct {
	fd    int
	rings []byte // what is shared with the kernel
	slots []byte // the same, for entries

	entries  []entry
	sqTail   uint32 // of what is put; the kernel is shown it by enter
	sqShown  uint32 // what the kernel has taken
	sqRing   *uint32
	cqHead   uint32
	cqRing   *uint32 // the head as the kernel sees it
	cqTail   *uint32
	cqMask   uint32
	complete []Completion

	multishot bool // operations can go on
	refills   bool // a buffer may be filled by several receives
	registers bool // a file can be registered and be let go of at once

	files []int32 // by entry: what SetFile registers, for the kernel to read

	// ts and arg are read by the kernel during a call. The ring does not move, as nothing
	// on the heap does.
	ts    timespec
	arg   waitArgument
	calls uint64
}

// Config says how large a ring is.
type Config struct {
	// Entries is how many entries can be put before they must be submitted, a power of
	// two.
	Entries int
	// Completions is how many completions can wait to be fetched before the kernel keeps
	// them elsewhere, at a cost; a power of two.
	Completions int
	// Kernel has the ring do without what later kernels than this one have, for tests.
	Kernel Kernel
}

// Kernel is a version of Linux from which a ring can do more. The zero value is any.
type Kernel uint8

// The kernels, oldest first.
const (
	AnyLinux Kernel = iota
	Linux519        // what is under way completes at any time, and each operation once
	Linux61         // operations go on, but a buffer is filled once
)

// Ways to set up a ring: the one of Linux 6.1, with which completions come only when the
// thread asks for them, and the one before it.
const (
	always   = setupCQSize | setupRDisabled | setupSubmitAll
	deferred = always | setupSingleIssuer | setupDeferTaskrun
	plain    = always | setupCoopTaskrun
)

// New sets up a ring that [Ring.Enable] makes usable. An error says what the system
// lacks or forbids.
func New(c Config) (*Ring, error) {
	p := params{cqEntries: uint32(c.Completions), flags: deferred}
	fd, errno := 0, unix.EINVAL
	if c.Kernel != Linux519 {
		fd, errno = setup(c.Entries, &p)
	}
	if errno == unix.EINVAL {
		p = params{cqEntries: uint32(c.Completions), flags: plain}
		fd, errno = setup(c.Entries, &p)
	}
	if errno != 0 {
		return nil, whyNot(errno)
	}
	r := &Ring{fd: fd, multishot: p.flags == deferred}
	r.refills = r.multishot && c.Kernel == AnyLinux
	r.registers = r.refills && p.features&featRWAttr != 0
	err := r.check(&p)
	if err == nil {
		err = r.mmap(&p)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	r.arg.ts = uint64(uintptr(unsafe.Pointer(&r.ts)))
	return r, nil
}

func setup(entries int, p *params) (fd int, errno syscall.Errno) {
	r, _, errno := syscall.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	return int(r), errno
}

// whyNot explains why there is no ring.
func whyNot(errno syscall.Errno) error {
	why := map[syscall.Errno]string{
		unix.ENOSYS: "the kernel has no io_uring",
		unix.EPERM:  "io_uring is forbidden, by the sysctl kernel.io_uring_disabled or a filter of system calls",
		unix.EACCES: "io_uring is forbidden by a security policy",
		unix.EINVAL: "the kernel is older than 5.19",
		unix.ENOMEM: "memory is short, or RLIMIT_MEMLOCK too low",
	}[errno]
	if why == "" {
		return os.NewSyscallError("io_uring_setup", errno)
	}
	return fmt.Errorf("%s: %w", why, os.NewSyscallError("io_uring_setup", errno))
}

// check looks for what there must be.
func (r *Ring) check(p *params) error {
	const must = featSingleMmap | featNoDrop | featExtArg | featCQESkip
	if p.features&must != must {
		return fmt.Errorf("io_uring lacks features: has %#x, needs %#x", p.features, must)
	}
	var ops probe
	if err := r.register(registerProbe, unsafe.Pointer(&ops), len(ops.ops)); err != nil {
		return err
	}
	for _, op := range []int{opPollAdd, opAccept, opAsyncCancel, opClose, opSend, opRecv} {
		if ops.ops[op].flags&probeSupported == 0 {
			return fmt.Errorf("io_uring lacks operation %d", op)
		}
	}
	return nil
}

func (r *Ring) mmap(p *params) (err error) {
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(Completion{})))
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.fd, offRings, int(size), prot, flags); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if r.slots, err = unix.Mmap(r.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(entry{})), prot, flags); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.entries = unsafe.Slice((*entry)(unsafe.Pointer(&r.slots[0])), p.sqEntries)
	r.files = make([]int32, p.sqEntries)
	r.sqRing = word(p.sq.tail)
	r.cqRing, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.ringMask)
	r.complete = unsafe.Slice((*Completion)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	for i, order := 0, unsafe.Slice(word(p.sq.array), p.sqEntries); i < len(order); i++ {
		order[i] = uint32(i) // entries are submitted in the order of their places
	}
	return nil
}

// Enable makes the calling thread the one that uses the ring.
func (r *Ring) Enable() error { return r.register(registerEnableRings, nil, 0) }

func (r *Ring) register(op int, arg unsafe.Pointer, n int) error {
	_, _, errno := syscall.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), uintptr(op), uintptr(arg), uintptr(n), 0, 0)
	if errno != 0 {
		return fmt.Errorf("io_uring_register %d: %w", op, errno)
	}
	return nil
}

// Calls returns how often the kernel was entered.
func (r *Ring) Calls() uint64 { return r.calls }

// put returns the next entry to be filled in, submitting what there is if none is free.
func (r *Ring) put(op uint8, fd int, userData uint64) *entry {
	if r.Queued() == len(r.entries) {
		r.Submit()
	}
	e := &r.entries[r.sqTail&uint32(len(r.entries)-1)]
	r.sqTail++
	*e = entry{opcode: op, fd: int32(fd), userData: userData}
	return e
}

// Queued returns how many entries wait to be submitted.
func (r *Ring) Queued() int { return int(r.sqTail - r.sqShown) }

// Ready returns how many completions there are to fetch.
func (r *Ring) Ready() int { return int(atomic.LoadUint32(r.cqTail) - r.cqHead) }

// Submit gives the kernel all entries. When it returns, what could be done at once is
// done.
func (r *Ring) Submit() {
	for r.Queued() > 0 {
		r.enter(0, 0, 0, false) // it may be short of memory for a moment
	}
}

// Batch is how many completions the kernel makes in a call that has not slept, if there
// are so many.
const Batch = 20

// Collect gives the kernel all entries and makes it complete what it can, a Batch beside
// what the entries come to, without waiting.
func (r *Ring) Collect() error { return r.enter(0, enterGetEvents, 0, false) }

// Wait gives the kernel all entries and waits until there are n completions or d has
// passed. Having slept, the kernel makes no more than those n. If announce is set the Go scheduler is told, which a wait of more than a few
// milliseconds needs.
func (r *Ring) Wait(n int, d time.Duration, announce bool) error {
	return r.enter(n, enterGetEvents|enterExtArg, d, announce)
}

func (r *Ring) enter(n int, flags uintptr, d time.Duration, announce bool) error {
	atomic.StoreUint32(r.sqRing, r.sqTail)
	var arg unsafe.Pointer
	var size uintptr
	if flags&enterExtArg != 0 {
		r.ts = timespec{int64(d / time.Second), int64(d % time.Second)}
		arg, size = unsafe.Pointer(&r.arg), unsafe.Sizeof(r.arg)
	}
	call := syscall.RawSyscall6
	if announce {
		call = syscall.Syscall6
	}
	r.calls++
	done, _, errno := call(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.Queued()), uintptr(n), flags, uintptr(arg), size)
	switch errno {
	case 0:
		r.sqShown += uint32(done)
		return nil
	case unix.EINTR, unix.ETIME, unix.EAGAIN, unix.EBUSY:
		return nil // nothing was submitted
	}
	return os.NewSyscallError("io_uring_enter", errno)
}

// Next returns a completion, if there is one.
func (r *Ring) Next() (c Completion, ok bool) {
	if r.cqHead == atomic.LoadUint32(r.cqTail) {
		return c, false
	}
	c = r.complete[r.cqHead&r.cqMask]
	r.cqHead++
	atomic.StoreUint32(r.cqRing, r.cqHead)
	return c, true
}

// Close gives up the ring. What is still under way is cancelled, but maybe not at once.
func (r *Ring) Close() error {
	var errs []error
	for _, m := range [][]byte{r.slots, r.rings} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	r.slots, r.rings = nil, nil
	return errors.Join(append(errs, os.NewSyscallError("close", unix.Close(r.fd)))...)
}
