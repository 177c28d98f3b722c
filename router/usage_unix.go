//go:build unix

package router

import (
	"syscall"
	"time"
)

// usage returns the processor time that the process has used.
func usage() (user, system time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, false
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), true
}
