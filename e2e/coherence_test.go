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

// unwatched are lines for routers that leave keys where they are, whatever happens to servers, and ask a server for each
// get, so that even reads of one packet keep their order.
const unwatched = "  coalesce: off\n  bound: {spill: none}\nmembership:\n  enabled: false\n"

// spilling are lines of a pool whose servers are always at their bounds, so that any read may be of a copy.
const spilling = "  bound: {spill: any, factor: 1, floor: 1}\n"

// The faults of a world. A router that is alone forgets what it knew of the servers when it is killed, so those that
// watch them are spared that. It takes long to start a router that looks for others.
var (
	serverFaults = []string{serverKilled, serverPaused, serverStopped, serverReset, linkReset, linkPaused, linkCut}
	allFaults    = append([]string{routerKilled}, serverFaults...)
	onlyGone     = []string{serverGone}
)

// exact is the contract of one router: one order for all, but of reads that were sent together. Those may share the
// answers to others, or be of copies.
var exact = history.Contract{Overtake: true}

// plans are the worlds in which histories are recorded.
var plans = []plan{
	{name: "one router", routers: 1, contract: exact},
	{name: "one router that spills, faults", routers: 1, config: impatient + spilling, faults: serverFaults, long: onlyGone, contract: exact},
	{name: "one router with copies, faults", routers: 1, config: impatient + "  copies: {number: 2}\n",
		faults: serverFaults, long: onlyGone, contract: exact},
	{name: "three routers that agree, faults", routers: 3, config: impatient, gossip: true, faults: serverFaults,
		long: []string{serverGone, routerKilled}, contract: history.Contract{Lag: time.Minute, Loose: true}},
	{name: "one router with copies that come later, faults", routers: 1, onlyLong: true,
		config: impatient + "  copies: {number: 2, answer: home}\n", faults: serverFaults, long: onlyGone, contract: exact},
	{name: "one router that watches nothing, faults", routers: 1, onlyLong: true,
		config: impatient + unwatched, faults: allFaults},
	{name: "three routers that watch nothing, faults", routers: 3, onlyLong: true,
		config: impatient + unwatched, faults: allFaults},
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
