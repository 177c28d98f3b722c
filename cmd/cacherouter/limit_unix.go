//go:build unix

package main

import (
	"log/slog"
	"syscall"
)

// wantedDescriptors is how many open connections a router should be able to hold.
const wantedDescriptors = 65536

// raiseDescriptorLimit raises the limit of open descriptors as far as it may, and
// complains if that is little.
func raiseDescriptorLimit(log *slog.Logger) {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		log.Warn("cannot read descriptor limit", "err", err)
		return
	}
	if lim.Cur < lim.Max {
		lim.Cur = lim.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
			log.Warn("cannot raise descriptor limit", "err", err)
		}
	}
	if lim.Cur < wantedDescriptors {
		log.Warn("few descriptors: clients beyond them cannot connect", "limit", lim.Cur, "wanted", wantedDescriptors)
	}
}
