// Package handoff passes what one process has open to the one that replaces it: listening
// sockets, and connections of clients.
//
// The old process starts the new one and stays connected to it by a [Link]. What they say
// to each other over it is theirs; each message may carry a descriptor. A listening socket
// that was handed over is the same socket in both processes, with one queue of clients that
// wait to be accepted: none of them is lost when the old process closes its own.
//
// Systemd passes listening sockets in another way, which [Sockets] knows too.
package handoff
