//go:build !unix

package router

import "time"

// usage cannot tell the processor time of the process here.
func usage() (user, system time.Duration, ok bool) { return 0, 0, false }
