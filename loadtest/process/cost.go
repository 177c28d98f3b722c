package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that all threads of the process have used since it started, user and
// system, to the nanosecond (its POSIX CPU-time clock; /proc/PID/stat has only hundredths).
func CPU(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED of linux/posix-timers_types.h; the id of the clock is (~pid << 3) | 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		return 0, fmt.Errorf("cannot read processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Switches is how often threads of the process gave the processor up: of their own accord because
// they waited, and because the scheduler took it. Threads that ended are not counted.
func Switches(pid int) (voluntary, forced uint64, err error) {
	tasks, err := tasks(pid)
	if err != nil {
		return 0, 0, err
	}
	for _, task := range tasks {
		v, errV := statusField(task, "voluntary_ctxt_switches")
		f, errF := statusField(task, "nonvoluntary_ctxt_switches")
		if errV == nil && errF == nil {
			voluntary, forced = voluntary+v, forced+f
		}
	}
	return voluntary, forced, nil
}

// Resident is the physical memory of the process in bytes.
func Resident(pid int) (uint64, error) {
	kib, err := statusField(fmt.Sprintf("/proc/%d", pid), "VmRSS")
	return kib << 10, err
}

// Pin lets all threads of the process run on the given processor only. Threads that start later
// inherit it. The process keeps what it has decided from the number of processors at its start.
func Pin(pid, processor int) error {
	var set unix.CPUSet
	set.Set(processor)
	// A thread may start another between the listing and its own turn, so look twice.
	for range 2 {
		tasks, err := tasks(pid)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			id, _ := strconv.Atoi(filepath.Base(task))
			if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("cannot pin process %d to processor %d: %w", pid, processor, err)
			}
		}
	}
	return nil
}

func tasks(pid int) ([]string, error) {
	dirs, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("cannot list threads of process %d: it is gone", pid)
	}
	return dirs, nil
}

// statusField reads one number of a status file under /proc.
func statusField(dir, name string) (uint64, error) {
	text, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0, fmt.Errorf("cannot read process status: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		}
	}
	return 0, fmt.Errorf("cannot find %s in %s/status", name, dir)
}
