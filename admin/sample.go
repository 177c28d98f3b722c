package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/router"
)

// sample is the router's state at one time.
type sample struct {
	at    time.Time
	total router.Snapshot
	up    int // servers that can be reached, of the loop that reaches the fewest
	table *router.Table
}

// window is two samples: rates are what is between them.
type window struct{ from, to *sample }

// sampler keeps the sample that rates are counted from. Any goroutine may use it.
type sampler struct {
	router Router

	mu   sync.Mutex
	base *sample // guarded by mu
}

const (
	// minWindow is the least time that rates are taken over, maxWindow the age from which a
	// sample says nothing of now, and slide the one from which it is replaced.
	minWindow, slide, maxWindow = 100 * time.Millisecond, time.Second, 5 * time.Second
)

// window takes a sample. It waits if the one before was taken just now.
func (s *sampler) window(ctx context.Context) (window, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil || time.Since(s.base.at) > maxWindow {
		base, err := take(ctx, s.router)
		if err != nil {
			return window{}, err
		}
		s.base = base
	}
	select {
	case <-ctx.Done():
		return window{}, fmt.Errorf("cannot sample: %w", ctx.Err())
	case <-time.After(minWindow - time.Since(s.base.at)):
	}
	now, err := take(ctx, s.router)
	if err != nil {
		return window{}, err
	}
	w := window{s.base, now}
	if now.at.Sub(s.base.at) >= slide-minWindow {
		s.base = now
	}
	return w, nil
}

// prime takes the first sample for somebody who will soon ask.
func (s *sampler) prime(ctx context.Context) {
	if !s.mu.TryLock() {
		return // somebody does
	}
	defer s.mu.Unlock()
	if s.base == nil || time.Since(s.base.at) > maxWindow {
		if base, err := take(ctx, s.router); err == nil {
			s.base = base
		}
	}
}

func take(ctx context.Context, r Router) (*sample, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	table := r.Table()
	loops, err := r.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	s := &sample{at: time.Now(), total: router.Total(loops), table: table}
	for i := range loops {
		if i == 0 || loops[i].ServersUp < s.up {
			s.up = loops[i].ServersUp
		}
	}
	return s, nil
}

func (w window) seconds() float64 { return w.to.at.Sub(w.from.at).Seconds() }

// rate is how much a counter has grown a second; one that was begun anew has not.
func (w window) rate(count func(*router.Snapshot) uint64) float64 {
	return w.perSecond(count(&w.from.total), count(&w.to.total))
}

func (w window) perSecond(from, to uint64) float64 {
	if to < from {
		return 0
	}
	return float64(to-from) / w.seconds()
}

// server returns what a server had to do at both ends.
func (w window) server(addr string) (from, to backend.Stats) {
	return w.from.total.Servers[addr], w.to.total.Servers[addr]
}

func writesOf(s *router.Snapshot) (n uint64) {
	for v, of := range s.Requests {
		if memproto.Verb(v).Writes() {
			n += of
		}
	}
	return n
}
