package usage

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cacherouter/balance"
)

// Reading is what a server did between two snapshots.
type Reading struct {
	balance.Report
	// Degraded says why Utilization knows less than it should, as when the server does not tell its
	// processor time; it is "" when nothing lacks. A degraded report is usable.
	Degraded string
}

// Reasons for which two snapshots give no reading.
var (
	// ErrRestarted means that the server is not the process it was. What was reported of it before
	// has to be forgotten; see balance.Balancer.Forget.
	ErrRestarted = errors.New("the server was restarted")
	// ErrTooClose means that the snapshots are less than MinInterval apart, or in the wrong order.
	ErrTooClose = errors.New("the snapshots are too close")
	// ErrSilent means that the server tells nothing from which a load could be known.
	ErrSilent = errors.New("the server tells too little")
	// ErrIdle means that it answered no request, so that nothing is known of what it can do.
	ErrIdle = errors.New("the server had no requests")
)

// MinInterval is how far apart two snapshots have to be: a server counts its processor time from
// tick to tick, 4 ms in the usual kernel.
const MinInterval = 100 * time.Millisecond

// Between returns what a server did from one snapshot to a later one. Utilization is the larger of the
// processor time used, of what cpus processors have, and the share of connections taken. With
// cpus 0 the server is taken to have as many as it has threads; then one with more threads than
// processors seems less busy than it is. Without a reading the error says why, and is one of those
// above.
func Between(before, after Snapshot, cpus int) (Reading, error) {
	dt := after.At - before.At
	switch {
	case dt < MinInterval:
		return Reading{}, fmt.Errorf("cannot measure load over %v: %w", dt, ErrTooClose)
	case restarted(&before, &after):
		return Reading{}, fmt.Errorf("cannot measure load: %w", ErrRestarted)
	}
	requests, ok := grown(before.Requests, after.Requests)
	if !ok {
		return Reading{}, fmt.Errorf("cannot measure load without counts of commands: %w", ErrSilent)
	}
	if requests == 0 {
		return Reading{}, fmt.Errorf("cannot measure load: %w", ErrIdle)
	}
	failed, _ := grown(before.Errors, after.Errors)
	used, lacking := utilization(&before, &after, cpus)
	if used == 0 {
		return Reading{}, fmt.Errorf("cannot measure load: %s: %w", lacking, ErrSilent)
	}
	r := balance.Report{QPS: requests / dt.Seconds(), EPS: failed / dt.Seconds(), Utilization: used}
	return Reading{r, lacking}, nil
}

// restarted tells a process from the one before it. Without pid and uptime, counts that went back
// do.
func restarted(before, after *Snapshot) bool {
	back := func(b, a Count) bool { return b.Known && a.Known && a.N < b.N }
	return before.PID.Known && after.PID.Known && before.PID != after.PID ||
		back(before.Uptime, after.Uptime) || back(before.Requests, after.Requests) || back(before.CPU, after.CPU)
}

// grown returns how far a count went, if both snapshots have it.
func grown(before, after Count) (float64, bool) {
	if !before.Known || !after.Known || after.N < before.N {
		return 0, false
	}
	return float64(after.N - before.N), true
}

// utilization returns the share of the capacity that is in use, 0 if that cannot be told, and
// what it lacks.
func utilization(before, after *Snapshot, cpus int) (used float64, lacking string) {
	var lacks []string
	if cpus == 0 && after.Threads.Known {
		cpus = int(min(after.Threads.N, 1<<16))
	}
	switch busy, ok := grown(before.CPU, after.CPU); {
	case !ok:
		lacks = append(lacks, "no rusage_user and rusage_system")
	case cpus <= 0:
		lacks = append(lacks, "no threads")
	default:
		used = busy / 1e6 / (after.At - before.At).Seconds() / float64(cpus)
	}
	if c, limit := after.Connections, after.MaxConnections; c.Known && limit.Known && limit.N > after.Reserved.N {
		used = max(used, float64(c.N)/float64(limit.N-after.Reserved.N))
	} else {
		lacks = append(lacks, "no curr_connections and max_connections")
	}
	return used, strings.Join(lacks, ", ")
}
