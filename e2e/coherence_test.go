package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
			w := newWorld(t, p, *coherenceSeed)
			if long {
				p.faults = possible(t, slices.Concat(p.faults, p.long))
			} else {
				t.Parallel()
			}
			if slices.Contains(p.uses, copied) || slices.Contains(p.uses, spilled) {
				w.ripen()
			}
			began := time.Now()
			all := w.run(ops, p.faults, long)
			t.Logf("seed %d: recorded in %v\n%s%s%s", *coherenceSeed, time.Since(began), history.Counts(all), w.mishaps(), w.uses())
			if len(p.faults) > 0 && len(w.events) == 0 {
				t.Errorf("there were no faults")
			}
			for _, name := range p.makes {
				if long && w.counted()[name] == 0 {
					t.Errorf("%s is 0", name)
				}
			}
			w.judge(t, history.Check(all, p.contract))
		})
	}
}

// possible leaves out what this machine does not let happen.
func possible(t *testing.T, faults []string) []string {
	return slices.DeleteFunc(faults, func(fault string) bool {
		if fault != routerCut || canCut() {
			return false
		}
		t.Logf("skipped: %q, which takes root and iptables", fault)
		return true
	})
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
