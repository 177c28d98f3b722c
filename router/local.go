package router

import "cacherouter/reactor"

// Loops returns the number of event loops.
func (r *Router) Loops() int { return len(r.loops) }

// Connect makes a client of this process a client of a loop, 0 to Loops()-1, by the router's own
// routes: it speaks what any client would, but no socket is between, and neither MaxClients nor
// IdleTimeout are for it. See [reactor.Loop.Connect].
func (r *Router) Connect(loop int, took func(p []byte), gone func()) *reactor.Pipe {
	return r.loops[loop].Connect(func(c *reactor.Conn) reactor.Handler { return r.frontOf(c).newSession(c, r.local) }, took, gone)
}
