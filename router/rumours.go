package router

import (
	"context"
	"sync"
	"time"
)

// rumours are the hashes of hot keys that were written here, for other routers to forget
// what they keep of them. They are best effort: what other routers keep lives shortly.
type rumours struct {
	mu     sync.Mutex
	hashes []uint64      // guarded by mu
	some   chan struct{} // has a token when there are any
}

// Rumours are gathered for a moment, so that a key that is written all the time does not
// fill the network, and there are never more than maxRumours.
const (
	rumourEvery = 5 * time.Millisecond
	maxRumours  = 128
)

// rumour notes that a key was written, if it is hot.
func (w *worker) rumour(hash uint64) {
	r := &w.p.rumours
	if w.p.cfg.OnWritten == nil || !w.hot(hash) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hashes {
		if h == hash {
			return
		}
	}
	if len(r.hashes) < maxRumours {
		r.hashes = append(r.hashes, hash)
	}
	select {
	case r.some <- struct{}{}:
	default:
	}
}

// spreadRumours tells others of hot keys that were written, until the context ends.
func (p *Pool) spreadRumours(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	<-wait.C
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.rumours.some:
		}
		wait.Reset(rumourEvery)
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		p.rumours.mu.Lock()
		hashes := p.rumours.hashes
		p.rumours.hashes = nil
		p.rumours.mu.Unlock()
		if len(hashes) > 0 {
			p.cfg.OnWritten(hashes)
		}
	}
}

// Forget drops what is kept of keys that were written by somebody else, by their hashes.
// Any goroutine may call it.
func (p *Pool) Forget(hashes []uint64) {
	for _, h := range hashes {
		p.epochs.Passed(h)
	}
}
