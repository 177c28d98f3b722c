package toll

import (
	"slices"
	"sync"
)

// places are what a server has for requests, and the queue of those that wait for one: in the order
// in which they asked, which those that wait in goroutines of their own would not keep.
type places struct {
	mu      sync.Mutex // guards all below
	free    int
	waiting []*ticket
}

// ask gives a ticket its turn as soon as there is a place.
func (p *places) ask(t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		p.waiting = append(p.waiting, t)
		return
	}
	p.free--
	close(t.turn)
}

// leave takes back a ticket, be it from its place or out of the queue.
func (p *places) leave(t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, t); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	close(p.waiting[0].turn)
	p.waiting = slices.Delete(p.waiting, 0, 1)
}
