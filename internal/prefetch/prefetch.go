// Package prefetch asks the processor for memory that is soon needed, so that it comes
// while something else is done. Go has no way to say that, hence a few lines of assembly
// for the architecture on which their gain was measured; on others nothing happens.
//
// Nobody waits for what is asked for, and any pointer will do, also nil.
package prefetch

import "unsafe"

// Line asks for the cache line of 64 bytes that p points into.
func Line[T any](p *T) { line(unsafe.Pointer(p)) }

// Lines asks for six cache lines, from the one that p points into.
func Lines[T any](p *T) { lines(unsafe.Pointer(p)) }
