package pace

import (
	"sync/atomic"
	"time"
)

// Schedule says when each request of a load is due: request n at n/rate. It may be used concurrently.
type Schedule struct {
	rate  float64
	taken atomic.Int64
}

// NewSchedule is for a rate in requests per second, which must be over 0.
func NewSchedule(rate float64) *Schedule { return &Schedule{rate: rate} }

// Take returns the number of the next request, from 0, and how long after the beginning it is due. Each is
// given out once; whoever takes it should send it then.
func (s *Schedule) Take() (n int, after time.Duration) {
	n = int(s.taken.Add(1)) - 1
	return n, time.Duration(float64(n) / s.rate * float64(time.Second))
}
