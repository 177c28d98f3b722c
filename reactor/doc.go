// Package reactor runs event loops over sockets. It knows bytes, not memcached.
//
// Each [Loop] is one goroutine that owns its connections, timers and whatever its
// handlers keep: nothing on it is shared, so nothing is locked. A turn of the loop reads
// each ready socket once, lets the handlers work, and at its end writes each touched
// socket once, so that one system call carries the work of many requests.
//
// On Linux a loop uses io_uring: the kernel receives without being asked, into buffers that it and
// the loop share, and one call submits what was written in a turn and waits for the next. Where that
// is not to be had, or not worth it, the loop waits in epoll, edge-triggered, and reads and writes its
// sockets. All its system calls but long waits are raw: they never sleep, so the Go scheduler need not
// be told of them, nor of short waits. A loop of which much is expected but that finds little to do
// lets events gather for a moment. A client's TLS is read and written by the loop too,
// once its handshake is over. Elsewhere, for TLS that we begin and on request, a
// connection is a net.Conn with one goroutine reading and one writing, which feed the
// same loop through its queue of posted work. The handlers cannot tell them apart.
package reactor
