// Package uring is Linux's io_uring as one event loop needs it: a ring on which one
// thread puts entries, submits them and waits for completions, and memory that the kernel
// fills with what sockets receive.
//
// It speaks to the kernel by its documented interface, io_uring_setup(2),
// io_uring_enter(2) and io_uring_register(2). It wants Linux 5.19, and uses what is newer
// where it is there: completions that come only when the thread asks for them and
// operations that go on (6.1), buffers that are filled piece by piece (6.12), and files that
// are registered for sending (6.14).
package uring
