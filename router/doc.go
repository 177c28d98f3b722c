// Package router is the memcached router: it takes the requests of clients, places each
// by its key, sends it to a server, and gives the replies back in order.
//
// A [Router] runs a few event loops. Each has a worker with its own clients and its own
// connections to every server, so a request never leaves the loop it came in on and
// nothing on its way is locked. What the workers share is the [Table], an immutable
// value that says which servers there are and which of them a key goes to; it is
// replaced whole, between two turns of a loop.
//
// The way of a get: session.Received -> memproto.Parse -> worker.home -> backend.Send,
// and back: request.Replied -> session.settle -> reactor.Conn.Write.
package router
