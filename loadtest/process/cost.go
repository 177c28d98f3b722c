//go:build linux

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

// Cost is what a process used in some time.
type Cost struct {
	CPU      time.Duration // processor time of all threads
	Switches uint64        // context switches of threads that lived on: they waited, or had to yield
}

// Meter measures what a process uses from a moment on.
type Meter struct {
	pid   int
	began Cost
}

// StartMeter begins to measure the process.
func StartMeter(pid int) (*Meter, error) {
	began, err := total(pid)
	return &Meter{pid, began}, err
}

// Spent is the cost since the start of m.
func (m *Meter) Spent() (Cost, error) {
	now, err := total(m.pid)
	// The switches of a thread that ended are gone with it; they must not make the difference wrap.
	return Cost{now.CPU - m.began.CPU, now.Switches - min(m.began.Switches, now.Switches)}, err
}

// total is the cost of the process since it started.
func total(pid int) (Cost, error) {
	used, err := CPU(pid)
	if err != nil {
		return Cost{}, err
	}
	threads, err := tasks(pid)
	c := Cost{CPU: used}
	for _, thread := range threads {
		c.Switches += statusOrZero(thread, "voluntary_ctxt_switches") + statusOrZero(thread, "nonvoluntary_ctxt_switches")
	}
	return c, err
}

// statusOrZero is for a thread that may have ended since it was listed.
func statusOrZero(dir, name string) uint64 {
	n, _ := statusField(dir, name)
	return n
}

// Resident is the physical memory of the process in bytes.
func Resident(pid int) (uint64, error) {
	kib, err := statusField(fmt.Sprintf("/proc/%d", pid), "VmRSS")
	return kib << 10, err
}

// Usage is what a process has.
type Usage struct {
	Resident    uint64 // bytes of physical memory
	Descriptors int    // open files and sockets
	Threads     int
}

// Used is what the process has now.
func Used(pid int) (u Usage, err error) {
	if u.Resident, err = Resident(pid); err != nil {
		return u, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return u, fmt.Errorf("cannot count descriptors: %w", err)
	}
	threads, err := tasks(pid)
	u.Descriptors, u.Threads = len(open), len(threads)
	return u, err
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
