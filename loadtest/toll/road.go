// Package toll makes a fast server one of known capacity, and sees how much it has to do.
//
// A gate stands before each server. Requests and replies pass it as they are, but a reply is held
// back until a server with so many places, each of which takes so long for a request, would have given
// it; requests that find no place wait in the order they came. What a request does is done when it
// comes, so that those of one connection take effect in their order whatever places they get. A gate
// knows what is in flight at its server, those who wait included, and all gates of a road together
// what is in flight at all servers at that moment.
package toll

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Config describes servers. Places and Service must be set.
type Config struct {
	Places  int           // requests that a server works on at a time
	Service time.Duration // that it takes for each at first
	// Kind says of which kind a request is, 0 to NumKinds-1, by its line and that of the one before it on
	// the same connection, empty for the first. It is called concurrently. Nil means that all are
	// of kind 0.
	Kind func(before, line []byte) int
}

// Road is the gates of a fleet, which count together. It may be used concurrently, but not after
// Close.
type Road struct {
	config  Config
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // guards all below, and what gates count
	gates []*Gate
	all   Counts    // in flight
	since time.Time // when that last changed, or was asked for
}

// NewRoad returns a road without gates.
func NewRoad(c Config) *Road {
	ctx, stop := context.WithCancel(context.Background())
	return &Road{config: c, ctx: ctx, stop: stop, since: time.Now()}
}

// Open makes a gate before a server, at a loopback address of its own.
func (r *Road) Open(server string) (*Gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot open a gate before %s: %w", server, err)
	}
	g := r.newGate(server)
	context.AfterFunc(r.ctx, func() { l.Close() })
	g.Addr = l.Addr().String()
	r.running.Go(func() { g.accept(l) })
	return g, nil
}

// Close closes all gates and what passes them, and returns when that is done. It may be called again.
func (r *Road) Close() {
	r.stop()
	r.running.Wait()
}

// Clear begins to count anew: what was seen before is forgotten, what is in flight is not.
func (r *Road) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passLocked()
	for _, g := range r.gates {
		g.seen = newSeen()
	}
}

// Seen is what each gate has seen since the last Clear, in the order in which they were opened.
func (r *Road) Seen() (all []Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passLocked()
	for _, g := range r.gates {
		all = append(all, g.seen.clone())
	}
	return all
}

// passLocked gives the time since the last call to the states that there were.
func (r *Road) passLocked() {
	now := time.Now()
	for _, g := range r.gates {
		g.seen.Spells[State{g.here, r.all}] += now.Sub(r.since)
	}
	r.since = now
}

// count adds to what is in flight at a gate.
func (r *Road) count(g *Gate, kind, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passLocked()
	g.seen.Came[kind] += max(0, n)
	g.here[kind] += n
	r.all[kind] += n
}

func (r *Road) kind(before, line []byte) int {
	if r.config.Kind == nil {
		return 0
	}
	return r.config.Kind(before, line)
}
