//go:build linux

package process

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Processors is a set of processors of this machine.
type Processors struct{ set unix.CPUSet }

// Only is the set of one processor, counted from 0.
func Only(processor int) Processors {
	var p Processors
	p.set.Set(processor)
	return p
}

// Allowed is where the main thread of the process may run.
func Allowed(pid int) (p Processors, err error) {
	if err = unix.SchedGetaffinity(pid, &p.set); err != nil {
		err = fmt.Errorf("cannot read the processors of process %d: %w", pid, err)
	}
	return p, err
}

// Pin lets all threads of the process run on the given processors only. Threads and children that
// start later inherit it. The process keeps what it has decided from the number of processors at
// its start, so that pinning a Go program after it started leaves its GOMAXPROCS alone if it sets it.
func Pin(pid int, to Processors) error {
	// A thread may start another between the listing and its own turn, so look twice.
	for range 2 {
		threads, err := tasks(pid)
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(filepath.Base(thread))
			if err := unix.SchedSetaffinity(id, &to.set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("cannot pin process %d: %w", pid, err)
			}
		}
	}
	return nil
}
