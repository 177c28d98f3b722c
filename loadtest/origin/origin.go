// Package origin is what a cache protects, and an application that uses both.
//
// The application is a look-aside client: it asks the cache, on a miss or a failure the origin, and
// stores what the origin said. How often the origin is asked is what a cache is judged by.
package origin

import (
	"sync"
	"sync/atomic"
	"time"
)

// Origin stands for a database. It may be used concurrently. Do not copy it after its first use.
type Origin struct {
	latency time.Duration
	asked   atomic.Uint64

	mu     sync.Mutex  // guards all below
	places []time.Time // when each of the places is free again; none means that there is no bound
	next   int         // the place that is free first: all answers take as long, so they end in order
}

// New returns an origin that takes the latency for each answer and gives at most capacity answers at
// a time, so that it answers capacity/latency a second; others wait. Capacity 0 is no bound.
func New(latency time.Duration, capacity int) *Origin {
	return &Origin{latency: latency, places: make([]time.Time, capacity)}
}

// Ask asks for an answer, counts it, and says when it comes, for those who do not want to sleep until then.
func (o *Origin) Ask(now time.Time) (answered time.Time) {
	o.asked.Add(1)
	if len(o.places) == 0 {
		return now.Add(o.latency)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	free := &o.places[o.next]
	o.next = (o.next + 1) % len(o.places)
	if free.Before(now) {
		*free = now
	}
	*free = free.Add(o.latency)
	return *free
}

// Fetch takes as long as an answer does, and counts it.
func (o *Origin) Fetch() { time.Sleep(time.Until(o.Ask(time.Now()))) }

// Asked is how many answers were asked for.
func (o *Origin) Asked() uint64 { return o.asked.Load() }
