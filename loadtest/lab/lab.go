// Package lab reproduces in virtual time what is said of load balancing, with the product's own code: its
// balancers, bound, placements and hot keys, before modelled servers.
//
// Each experiment prints our figures beside those of a source, and says whether they agree: to
// the last digit where the source computed them, within a tolerance where it simulated, and in shape where
// it measured on some machine. The same source code gives the same bytes in every run.
package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"cacherouter/loadtest/lab/plot"
)

// Experiment is one of the lab's.
type Experiment struct {
	Name  string
	Facts string // which of the source's it is about, as "A1 A3"; docs/lab.md says what the letters mean
	About string // one line
	run   func(r *report) error
}

// Experiments returns all, in the order in which they are run.
func Experiments() []Experiment {
	return []Experiment{
		{"weighted-turns", "A1 A3", "Smooth weighted round robin and deadlines interleave by weight", weightedTurns},
		{"round-robin", "A2", "Turns hit each server once, and routers begin anywhere", roundRobin},
		{"weighted-least", "A8", "Weights that fall as requests are in flight", weightedLeast},
		{"slow-start", "A4", "The weight of a server that has come back", slowStart},
		{"reported-weight", "A5", "Weights from what servers report of their load", reportedWeight},
		{"reported-load", "A5", "Servers of two speeds that report their load, and one that fails at once", reportedLoad},
		{"queue-length", "A6", "How many requests a server at 83 % has", queueLength},
		{"fullest-server", "A7", "The fullest of n servers after n requests", fullestServer},
		{"unequal-servers", "A10", "Nine servers of 1,000 requests a second and three of 600", unequalServers},
		{"slow-for-a-while", "A9", "One of eleven servers is slow for half a minute", slowForAWhile},
		{"fast-failures", "A16", "One of ten servers fails at once", fastFailures},
		{"newcomer", "A17", "A server comes to nine busy ones", newcomer},
		{"slow-server", "E", "One of three servers slows down from 20 ms to 300 ms", slowServer},
		{"dead-server", "E", "One of three servers dies and nobody checks", deadServer},
		{"checks", "E", "One of three servers dies: without checks, with active ones, with ours", checks},
		{"queue-model", "B", "Three queues, two rules, equal costs", queueModel},
		{"hash-model", "B", "Modulo and rings when three servers become four", hashModel},
		{"cost-of-change", "B", "What the store sees when three servers become four", costOfChange},
		{"modulo", "A11", "Modulo from 10 servers to 11", modulo},
		{"moves", "A12 A14", "How many keys move when a server leaves", moves},
		{"maglev-example", "A13", "The worked example of Maglev's table", maglevExample},
		{"maglev-shares", "A12 A14", "How even Maglev's table is, and what does not fit", maglevShares},
		{"remap-storm", "A18", "The origin's load when an eleventh server comes", remapStorm},
		{"flapping", "A18", "A server that comes and goes, damped and not", flapping},
		{"hot-key", "A19", "One key with much of the traffic", hotKey},
		{"views", "A20", "Routers with different lists of servers", views},
		{"propagation", "A20", "From a server's end to one view at all routers, up to 1,000 servers and 100 routers", propagation},
		{"bound-factor", "A15", "The factor c against imbalance and requests that leave home", boundFactor},
		{"bound-floor", "A15", "The floor, and how many leave home when few are in flight", boundFloor},
		{"bound-depth", "A15", "How many candidates may help, and imbalance", boundDepth},
		{"bound-skew", "A15", "Skewed keys within the bound", boundSkew},
		{"bound-routers", "A21", "Routers that each bound what they see", boundRouters},
		{"spill", "A15 A19", "Which keys leave home first: hot ones, any, or along a ring", spill},
		{"spill-floor", "A21", "The floor of each of twenty routers", spillFloor},
		{"connections", "C1 C3", "Connections and probes, with subsets and without", connections},
		{"ejection", "C2", "How long until a dead server is out, by who sees how much of it", ejection},
		{"even-subsets", "C4 C5", "Deterministic subsets, and random ones", evenSubsets},
		{"aperture", "C6", "Subsets that overlap in part", aperture},
		{"lame-duck", "C7", "A server that leaves, and how long it must serve on", lameDuck},
		{"fail-static", "C8", "Answers of discovery that are not to be believed", failStatic},
		{"reconnect", "C9", "A thousand connections to a server that comes back", reconnect},
		{"subset-order", "C10", "What subsets rest on", subsetsNeedOrder},
		{"edge", "D", "Probation, warm-up, and errors that are forgotten", edge},
		{"slow-half", "D", "200 balancers, 20 servers and 20 slow ones", slowHalf},
	}
}

// Run runs an experiment, writes what it found to out, and, unless dir is "", draws it into
// dir/NAME.svg. It returns what was compared with the source, and how many figures and claims differ.
func (e *Experiment) Run(out io.Writer, dir string) (compared []Comparison, differ int, err error) {
	r := &report{}
	if err := e.run(r); err != nil {
		return nil, 0, fmt.Errorf("cannot run %s: %w", e.Name, err)
	}
	fmt.Fprintf(out, "%s: %s\n\n", e.Name, e.About)
	if err := r.write(out); err != nil {
		return nil, 0, err
	}
	if dir == "" {
		return r.compared, r.differ, nil
	}
	return r.compared, r.differ, draw(filepath.Join(dir, e.Name+".svg"), r.charts)
}

func draw(path string, charts []plot.Chart) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return plot.Write(f, charts)
}

// each calls f for 0 to n-1, as many at once as there are processors, and returns when all have
// ended.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
