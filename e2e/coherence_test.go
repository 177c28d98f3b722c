package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/history"
)

var (
	coherenceOps  = flag.Int64("coherence.ops", 0, "operations of each recorded history; 0 is a short form")
	coherenceSeed = flag.Uint64("coherence.seed", uint64(time.Now().UnixNano()), "seed of clients and faults")
	coherenceDir  = flag.String("coherence.dir", "", "folder for violations; empty is a new one under the system's for temporary files")
)

// impatient is a pool that gives servers up soon, as faults are short.
var impatient = []string{"timeout: 300ms", "connect_timeout: 300ms"}

// shortCoherence is how many operations a history has unless the flag says otherwise.
const shortCoherence = 6000

// plans are the worlds in which histories are recorded. What several routers may do to each other is nothing, as long
// as no copies are made.
var plans = []plan{
	{name: "one router", routers: 1},
	{name: "one router, faults", routers: 1, pool: impatient, faults: true},
	{name: "three routers, faults", routers: 3, pool: impatient, faults: true},
}

// TestCoherence records what concurrent clients see, through routers of two loops each, and checks that one register
// for each key could have answered like that.
func TestCoherence(t *testing.T) {
	for _, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			ops := *coherenceOps
			if ops == 0 {
				ops = shortCoherence
			}
			w := newWorld(t, p, *coherenceSeed)
			began := time.Now()
			all := w.run(ops, p.faults)
			t.Logf("seed %d: recorded in %v\n%s%s", *coherenceSeed, time.Since(began), history.Counts(all), w.mishaps())
			if p.faults == (len(w.faults) == 0) {
				t.Errorf("there were %d kinds of faults", len(w.faults))
			}
			judge(t, history.Check(all, p.contract))
		})
	}
}

// judge reports a check, and leaves its violations in files.
func judge(t *testing.T, report *history.Report) {
	t.Helper()
	t.Log(report)
	if len(report.Violations) == 0 {
		return
	}
	dir := *coherenceDir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "coherence-"); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(dir, strings.ReplaceAll(filepath.Base(t.Name()), " ", "-"))
	for n, v := range report.Violations {
		if err := v.Save(dir, n); err != nil {
			t.Error(err)
		}
	}
	t.Errorf("%d violations, see %s", len(report.Violations), dir)
}
