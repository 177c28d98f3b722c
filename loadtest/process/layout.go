//go:build linux

package process

import "os"

// Layout says which processors the processes of a measurement may use. What a write costs depends
// on whether it wakes a process on another processor, so figures of different layouts must not be
// compared with each other.
type Layout string

// The layouts. The empty one is Free.
const (
	Free   Layout = "none"  // all processes anywhere
	Split  Layout = "split" // what is measured on processor 0, everything else on processor 1
	Shared Layout = "one"   // everything on processor 0
)

// Apply lays out the processes that are measured, the others, and this one, which is among the
// others. It comes after they started, so that each finds the processors of the machine and not
// those of the layout. Undo lets this process run where it ran before; it is never nil.
func (l Layout) Apply(measured, others []int) (undo func(), err error) {
	undo, rest := func() {}, Only(0)
	switch l {
	case Split:
		rest = Only(1)
	case Shared:
	default:
		return undo, nil
	}
	own, err := Allowed(os.Getpid())
	if err != nil {
		return undo, err
	}
	undo = func() { _ = Pin(os.Getpid(), own) } // it could be pinned, so it can be unpinned
	if err := pinAll(measured, Only(0)); err != nil {
		return undo, err
	}
	return undo, pinAll(append([]int{os.Getpid()}, others...), rest)
}

func pinAll(pids []int, to Processors) error {
	for _, pid := range pids {
		if err := Pin(pid, to); err != nil {
			return err
		}
	}
	return nil
}
