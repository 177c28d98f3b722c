// Package origin is what a cache protects, and an application that uses both.
//
// The application is a look-aside client: it asks the cache, on a miss or a failure the origin, and
// stores what the origin said. How often the origin is asked is what a cache is judged by.
package origin

import (
	"sync/atomic"
	"time"
)

// Origin stands for a database. It may be used concurrently. Do not copy it after its first use.
type Origin struct {
	latency time.Duration
	free    chan struct{} // nil means that there is no bound
	asked   atomic.Uint64
}

// New returns an origin that takes the latency for each answer and gives at most capacity answers at
// a time, so that it answers capacity/latency a second; others wait. Capacity 0 is no bound.
func New(latency time.Duration, capacity int) *Origin {
	o := &Origin{latency: latency}
	if capacity > 0 {
		o.free = make(chan struct{}, capacity)
	}
	return o
}

// Fetch takes as long as an answer does, and counts it.
func (o *Origin) Fetch() {
	o.asked.Add(1)
	if o.free != nil {
		o.free <- struct{}{}
		defer func() { <-o.free }()
	}
	if o.latency > 0 {
		time.Sleep(o.latency)
	}
}

// Asked is how many answers were asked for.
func (o *Origin) Asked() uint64 { return o.asked.Load() }
