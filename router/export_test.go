package router

import (
	"time"
	"unsafe"
)

// Age makes a router that does not run yet believe that it has run for some time, so that
// it does not wait for copies of a former life to expire.
func Age(r *Router, by time.Duration) { r.started = r.started.Add(-by) }

// RequestSize is the size of a request in bytes.
const RequestSize = unsafe.Sizeof(request{})
