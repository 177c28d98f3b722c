package router

import (
	"context"
	"time"
	"unsafe"

	"cacherouter/reactor"
)

// Age makes a router that does not run yet believe that it has run for some time, so that
// it does not wait for copies of a former life to expire.
func Age(r *Router, by time.Duration) {
	r.started = r.started.Add(-by)
	for _, f := range r.fronts {
		f.ahead += by
	}
}

// RequestSize is the size of a request in bytes.
const RequestSize = unsafe.Sizeof(request{})

// Turn turns the first loop of a router that is not run.
func Turn(r *Router) error { return r.loops[0].Turn() }

// TurnAtOnce turns it without waiting for anything. What the turn before has left to be sent by the wait is
// sent.
func TurnAtOnce(r *Router) error {
	r.loops[0].Post(func() {})
	return r.loops[0].Turn()
}

// Counted returns the counters of the first loop of a router that is not run.
func Counted(r *Router) reactor.Stats { return r.loops[0].Stats() }

// Close closes what is open in the first loop of a router that is not run; ctx has ended.
func Close(ctx context.Context, r *Router) error { return r.loops[0].Run(ctx) }

// Guests returns how many addresses have quotas of their own.
func Guests(r *Router) (n int) {
	for _, of := range r.networks {
		of.mu.Lock()
		n += len(of.guests)
		of.mu.Unlock()
	}
	return n
}

// JoinAtMost bounds the bytes that each loop of a running router puts together at a time.
func JoinAtMost(r *Router, bytes int) {
	for _, f := range r.fronts {
		f.loop.Post(func() { f.joins.most = bytes })
	}
}
