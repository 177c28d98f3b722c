//go:build linux

package router_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/reactor"
)

var (
	costOut    = flag.String("cost.out", "", "only measure costs, and write them to this file")
	costEngine = flag.String("cost.engine", string(reactor.Epoll), "of the router whose costs are measured")
	costUpdate = flag.Bool("update", false, "record costs anew")
)

const (
	costFile   = "testdata/cost.txt"
	costRounds = 3 * costKeys
	costWithin = 0.03 // of what is recorded
	costTries  = 3
)

// cost is what one form of request costs the loop, per request.
type cost struct {
	Name         string
	Calls        float64 // of the system
	Copied       float64 // bytes, from buffer to buffer
	Allocations  float64
	Instructions float64 // of the loop's turns
}

// figures are those of a cost, with the difference that means nothing.
func (c *cost) figures() []costFigure {
	return []costFigure{
		{"system calls", &c.Calls, 0}, {"bytes copied", &c.Copied, 0},
		{"allocations", &c.Allocations, 0.1}, // of the runtime's own, and of what grows
		{"instructions", &c.Instructions, 0},
	}
}

type costFigure struct {
	name  string
	value *float64
	slack float64
}

// A request costs what it did when testdata/cost.txt was written. Nothing here looks at a clock: the binary of this package
// turns a router by hand, once alone, once under callgrind, which knows the code that runs in the loop's turns.
func TestCost(t *testing.T) {
	if *costOut != "" {
		writeCosts(t, *costOut)
		return
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("costs were recorded on amd64")
	}
	valgrind := memcachedtest.Need(t, "valgrind")
	binary := filepath.Join(t.TempDir(), "router.test")
	runCommand(t, "go", "test", "-c", "-o", binary, "cacherouter/router")
	var costs []cost
	version, recorded := readCosts(t)
	var wrong []string
	for try := 0; try < costTries && (try == 0 || len(wrong) > 0 || *costUpdate); try++ {
		costs = least(costs, runCosts(t, valgrind, binary))
		wrong = differences(costs, recorded)
	}
	if *costUpdate {
		if err := os.WriteFile(costFile, []byte(costText(costs)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if t.Failed() {
		t.Logf("recorded with %s, this is %s. If what changed is meant, go test ./router -run '^TestCost$' -update writes %s", version, runtime.Version(), costFile)
	}
}

// least returns the smaller figures of two runs. Timers that are due on a slow machine add to a run, and
// nothing takes away.
func least(a, b []cost) []cost {
	for i := range a {
		others := b[i].figures()
		for j, f := range a[i].figures() {
			*f.value = min(*f.value, *others[j].value)
		}
	}
	if a == nil {
		return b
	}
	return a
}

// differences tells figures that are not near those recorded. A cost that fell is told too, as the
// next one to rise by as much would not be seen.
func differences(costs []cost, recorded map[string]cost) (all []string) {
	if len(recorded) != len(costs) {
		all = append(all, fmt.Sprintf("%d costs are recorded, not %d", len(recorded), len(costs)))
	}
	for i := range costs {
		was := recorded[costs[i].Name]
		want := was.figures()
		for j, f := range costs[i].figures() {
			is, was := *f.value, *want[j].value
			if math.Abs(is-was) > max(costWithin*was, f.slack) {
				all = append(all, fmt.Sprintf("%s: %.2f %s, recorded are %.2f", costs[i].Name, is, f.name, was))
			}
		}
	}
	return all
}

// runCosts has this package's tests, built without the race detector, measure.
func runCosts(t *testing.T, valgrind, binary string) []cost {
	dir := t.TempDir()
	out, dump := filepath.Join(dir, "costs.json"), filepath.Join(dir, "callgrind")
	child := []string{binary, "-test.run=^TestCost$", "-cost.out=" + out}
	runCommand(t, valgrind, append([]string{
		"--tool=callgrind", "--callgrind-out-file=" + dump, "--toggle-collect=cacherouter/reactor.(*Loop).turn",
		"--dump-after=cacherouter/router_test.(*costStage).repeat",
	}, child...)...)
	runCommand(t, child[0], child[1:]...)
	costs := costsIn(t, out)
	for i := range costs {
		costs[i].Instructions = instructions(t, fmt.Sprint(dump, ".", 2*i+2)) / costRounds
	}
	return append(costs, runCostsOnUring(t, binary)...)
}

// runCostsOnUring has all but the instructions measured, as callgrind does not know io_uring: none where that is
// not to be had as it was when costs were recorded.
func runCostsOnUring(t *testing.T, binary string) []cost {
	if !costsUring() {
		return nil
	}
	out := filepath.Join(t.TempDir(), "costs.json")
	runCommand(t, binary, "-test.run=^TestCost$", "-cost.engine=uring", "-cost.out="+out)
	return costsIn(t, out)
}

// costsUring reports whether costs are measured on io_uring, too.
func costsUring() bool {
	e, _, err := reactor.Choice(reactor.Auto)
	return err == nil && e == reactor.Uring
}

func costsIn(t *testing.T, file string) (costs []cost) {
	b, err := os.ReadFile(file)
	if err = errors.Join(err, json.Unmarshal(b, &costs)); err != nil {
		t.Fatal(err)
	}
	return costs
}

// runCommand runs a program without what disturbs counting: garbage collection, and signals to threads
// that callgrind cannot follow.
func runCommand(t *testing.T, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
}

// instructions reads the total of a dump of callgrind.
func instructions(t *testing.T, dump string) (n float64) {
	b, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "totals: %f", &n); err == nil {
			return n
		}
	}
	t.Fatalf("%s has no total", dump)
	return 0
}

// writeCosts measures all but the instructions, which are for who watches this process.
func writeCosts(t *testing.T, path string) {
	runtime.LockOSThread() // callgrind counts by thread
	defer runtime.UnlockOSThread()
	var costs []cost
	stages := []bool{false, true}
	if reactor.Engine(*costEngine) == reactor.Uring {
		stages = stages[1:] // what differs is below what features cost
	}
	for _, features := range stages {
		s := newCostStage(t, reactor.Engine(*costEngine), features)
		for _, p := range costPaths() {
			s.repeat(p, 3*costKeys) // fills what is used again, and opens lanes
			costs = append(costs, s.cost(p))
		}
		s.close()
	}
	b, err := json.Marshal(costs)
	if err = errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

const costHeader = "# What a request costs a loop, by TestCost: system calls, bytes copied, allocations, instructions. Written with %s\n"

func costText(costs []cost) string {
	var b strings.Builder
	fmt.Fprintf(&b, costHeader, runtime.Version())
	for _, c := range costs {
		fmt.Fprintf(&b, "%-28s\t%.2f\t%.0f\t%.0f\t%.0f\n", c.Name, c.Calls, c.Copied, c.Allocations, c.Instructions)
	}
	return b.String()
}

// readCosts returns what is recorded, and with which Go.
func readCosts(t *testing.T) (version string, costs map[string]cost) {
	b, err := os.ReadFile(costFile)
	if err != nil && !*costUpdate {
		t.Fatal(err)
	}
	costs = make(map[string]cost)
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, costHeader, &version); err == nil {
			continue
		}
		var c cost
		name, rest, _ := strings.Cut(line, "\t")
		if _, err := fmt.Sscan(rest, &c.Calls, &c.Copied, &c.Allocations, &c.Instructions); err != nil {
			t.Fatalf("%s: cannot read %q: %v", costFile, line, err)
		}
		c.Name = strings.TrimSpace(name)
		if costsUring() || !strings.HasPrefix(c.Name, "io_uring") {
			costs[c.Name] = c
		}
	}
	return version, costs
}
