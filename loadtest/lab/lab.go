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
	About string // one line
	run   func(r *report) error
}

// Experiments returns all, in the order in which they are run.
func Experiments() []Experiment {
	return []Experiment{
		{"weighted-turns", "Smooth weighted round robin and deadlines interleave by weight", weightedTurns},
		{"round-robin", "Turns hit each server once, and routers begin anywhere", roundRobin},
		{"weighted-least", "Weights that fall as requests are in flight", weightedLeast},
		{"reported-weight", "Weights from what servers report of their load", reportedWeight},
		{"queue-length", "How many requests a server at 83 % has", queueLength},
		{"fullest-server", "The fullest of n servers after n requests", fullestServer},
		{"unequal-servers", "Nine servers of 1,000 requests a second and three of 600", unequalServers},
		{"slow-for-a-while", "One of eleven servers is slow for half a minute", slowForAWhile},
		{"fast-failures", "One of ten servers fails at once", fastFailures},
		{"newcomer", "A server comes to nine busy ones", newcomer},
		{"slow-server", "One of three servers slows down from 20 ms to 300 ms", slowServer},
		{"dead-server", "One of three servers dies and nobody checks", deadServer},
		{"queue-model", "Three queues, two rules, equal costs", queueModel},
		{"hash-model", "Modulo and rings when three servers become four", hashModel},
		{"cost-of-change", "What the store sees when three servers become four", costOfChange},
		{"modulo", "Modulo from 10 servers to 11", modulo},
		{"moves", "How many keys move when a server leaves", moves},
		{"remap-storm", "The origin's load when an eleventh server comes", remapStorm},
		{"views", "Routers with different lists of servers", views},
		{"bound-factor", "The factor c against imbalance and requests that leave home", boundFactor},
		{"bound-floor", "The floor, and how many leave home when few are in flight", boundFloor},
		{"bound-depth", "How many candidates may help, and imbalance", boundDepth},
		{"bound-skew", "Skewed keys within the bound", boundSkew},
		{"bound-routers", "Routers that each bound what they see", boundRouters},
		{"spill", "Which keys leave home first: hot ones, any, or along a ring", spill},
		{"spill-floor", "The floor of each of twenty routers", spillFloor},
	}
}

// Run runs an experiment, writes what it found to out, and, unless dir is "", draws it into
// dir/NAME.svg. It returns how many figures differ from the source's.
func (e *Experiment) Run(out io.Writer, dir string) (differ int, err error) {
	r := &report{}
	if err := e.run(r); err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", e.Name, err)
	}
	fmt.Fprintf(out, "%s: %s\n\n", e.Name, e.About)
	if err := r.write(out); err != nil {
		return 0, err
	}
	if dir == "" {
		return r.differ, nil
	}
	return r.differ, draw(filepath.Join(dir, e.Name+".svg"), r.charts)
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
