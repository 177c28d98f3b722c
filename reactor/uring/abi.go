//go:build linux

package uring

// What follows is the kernel's interface, by the names of linux/io_uring.h.

// Operations.
const (
	opPollAdd     = 6
	opAccept      = 13
	opAsyncCancel = 14
	opClose       = 19
	opFilesUpdate = 20
	opSend        = 26
	opRecv        = 27
)

// Flags of entries and operations.
const (
	sqeFixedFile      = 1 << 0
	sqeBufferSelect   = 1 << 5
	sqeSkipSuccess    = 1 << 6
	recvMultishot     = 1 << 1 // ioprio
	acceptMultishot   = 1 << 0 // ioprio
	pollMultishot     = 1 << 0 // len
	cancelAll         = 1 << 0
	cancelFd          = 1 << 1
	cqeBuffer         = 1 << 0
	cqeMore           = 1 << 1
	cqeBufferMore     = 1 << 4
	cqeBufferShift    = 16
	enterGetEvents    = 1 << 0
	enterExtArg       = 1 << 3
	bufRingIncrements = 2
)

// Flags of setup.
const (
	setupCQSize       = 1 << 3
	setupRDisabled    = 1 << 6
	setupSubmitAll    = 1 << 7
	setupCoopTaskrun  = 1 << 8
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13
)

// Features of a kernel.
const (
	featSingleMmap = 1 << 0
	featNoDrop     = 1 << 1
	featExtArg     = 1 << 8
	featCQESkip    = 1 << 11
	featRWAttr     = 1 << 16
)

// Operations of io_uring_register.
const (
	registerProbe       = 8
	registerEnableRings = 12
	registerFiles2      = 13
	registerBufRing     = 22
	probeSupported      = 1 << 0
	filesSparse         = 1 << 0
)

// Places to map.
const (
	offRings = 0
	offSQEs  = 0x10000000
)

// entry is struct io_uring_sqe.
type entry struct {
	opcode   uint8
	flags    uint8
	ioprio   uint16
	fd       int32
	off      uint64
	addr     uint64
	len      uint32
	opFlags  uint32
	userData uint64
	bufGroup uint16
	_        uint16
	_        uint32
	_        [2]uint64
}

// Completion is struct io_uring_cqe.
type Completion struct {
	UserData uint64
	Res      int32 // as the system call would return: negative is an errno
	flags    uint32
}

// More reports whether the operation goes on and will have further completions.
func (c Completion) More() bool { return c.flags&cqeMore != 0 }

type sqOffsets struct {
	head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
	_                                                           uint64
}

type cqOffsets struct {
	head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
	_                                                           uint64
}

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFd uint32
	_                                                                      [3]uint32
	sq                                                                     sqOffsets
	cq                                                                     cqOffsets
}

// timespec is struct __kernel_timespec.
type timespec struct{ sec, nsec int64 }

// waitArgument is struct io_uring_getevents_arg.
type waitArgument struct {
	sigmask   uint64
	sigmaskSz uint32
	_         uint32
	ts        uint64
}

// bufRingReg is struct io_uring_buf_reg.
type bufRingReg struct {
	addr    uint64
	entries uint32
	group   uint16
	flags   uint16
	_       [3]uint64
}

// filesReg is struct io_uring_rsrc_register.
type filesReg struct {
	n, flags uint32
	_        [3]uint64
}

// bufEntry is struct io_uring_buf. The ring's tail lies in the last field of the first.
type bufEntry struct {
	addr uint64
	len  uint32
	id   uint16
	tail uint16
}

// probe is struct io_uring_probe with room for the operations of today.
type probe struct {
	lastOp, opsLen uint8
	_              uint16
	_              [3]uint32
	ops            [64]struct {
		op, _ uint8
		flags uint16
		_     uint32
	}
}
