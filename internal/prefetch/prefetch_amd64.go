package prefetch

import "unsafe"

//go:noescape
func line(p unsafe.Pointer)

//go:noescape
func lines(p unsafe.Pointer)
