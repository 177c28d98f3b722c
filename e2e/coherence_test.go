package e2e

import (
	"flag"
	"fmt"
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

// shortCoherence is how many operations a history has unless the flag says otherwise.
const shortCoherence = 6000

// impatient are lines of a pool that gives servers up soon, as faults are short.
const impatient = "  timeout: 300ms\n  connect_timeout: 300ms\n"

// unwatched are lines for routers that leave keys where they are, whatever happens to servers.
const unwatched = "membership:\n  enabled: false\n"

// everything that can happen to servers and the network, and with routers. A router that is alone forgets what it knew
// of the servers when it is killed, so those that fail over are spared that.
var (
	allFaults    = append([]string{routerKilled}, serverFaults...)
	serverFaults = []string{serverKilled, serverPaused, serverStopped, serverReset, linkReset, linkPaused, linkCut}
)

// plans are the worlds in which histories are recorded.
var plans = []plan{
	{name: "one router", routers: 1},
	{name: "one router, faults", routers: 1, config: impatient + unwatched, faults: allFaults, onlyLong: true},
	{name: "three routers, faults", routers: 3, config: impatient + unwatched, faults: allFaults, onlyLong: true},
	{name: "one router that fails over, faults", routers: 1, config: impatient, faults: serverFaults, long: []string{serverGone}},
	{name: "three routers that agree, faults", routers: 3, config: impatient, gossip: true, faults: allFaults, long: []string{serverGone},
		contract: history.Contract{Lag: time.Minute, Loose: true}},
}

// TestCoherence records what concurrent clients see, through routers of two loops each, and checks it.
func TestCoherence(t *testing.T) {
	ops, long := *coherenceOps, true
	if ops == 0 {
		ops, long = shortCoherence, false
	}
	for _, p := range plans {
		if p.onlyLong && !long {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			if long {
				p.faults = append(p.faults, p.long...)
			}
			w := newWorld(t, p, *coherenceSeed)
			began := time.Now()
			all := w.run(ops, p.faults)
			t.Logf("seed %d: recorded in %v\n%s%s", *coherenceSeed, time.Since(began), history.Counts(all), w.mishaps())
			if len(p.faults) > 0 && len(w.events) == 0 {
				t.Errorf("there were no faults")
			}
			w.judge(t, history.Check(all, p.contract))
		})
	}
}

// judge reports a check, and leaves its violations and what happened meanwhile in files.
func (w *world) judge(t *testing.T, report *history.Report) {
	t.Helper()
	t.Log(report)
	if report.Broken == 0 {
		return
	}
	dir := *coherenceDir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "coherence-"); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(dir, filepath.Base(t.Name()))
	for n, v := range report.Violations {
		if err := v.Save(dir, n); err != nil {
			t.Error(err)
		}
	}
	events := strings.Join(w.events, "\n") + "\n" + w.homes()
	for n, r := range w.routers {
		events += fmt.Sprintf("\nrouter %d, while the history began at %v:\n%s", n, w.cohort.rec.Start().Format(time.RFC3339Nano), r.log.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "events.txt"), []byte(events), 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("%d violations, see %s", report.Broken, dir)
}
