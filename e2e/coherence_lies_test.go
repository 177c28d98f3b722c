package e2e

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cacherouter/internal/history"
)

// forger changes every nth request of some verbs on its way to the servers, once it is at work.
type forger struct {
	nth    int64
	verbs  []string
	change func(words []string)

	atWork atomic.Bool
	seen   atomic.Int64
}

// line returns what becomes of a request's line.
func (f *forger) line(line string) string {
	words := strings.Split(strings.TrimSuffix(line, "\r\n"), " ")
	if !f.atWork.Load() || !slices.Contains(f.verbs, words[0]) || f.seen.Add(1)%f.nth != 0 {
		return line
	}
	f.change(words)
	return strings.Join(words, " ") + "\r\n"
}

// misdirect sends a request to a key that nobody uses, so that it is answered and nothing has happened.
func misdirect(words []string) { words[1] = "nobody" }

// miscount moves a counter ten times as far as it should.
func miscount(words []string) { words[2] += "0" }

// lies are what a server could do wrong that a check of coherence has to find.
var lies = []struct {
	name string
	lie  forger
}{
	{"a delete in ten is lost", forger{nth: 10, change: misdirect, verbs: []string{"delete", "md"}}},
	{"a set in ten is lost", forger{nth: 10, change: misdirect, verbs: []string{"set", "ms"}}},
	{"a count in twenty is wrong", forger{nth: 20, change: miscount, verbs: []string{"incr", "decr"}}},
}

// TestCoherenceFindsLies has servers lose writes that they acknowledge, which the check has to notice.
func TestCoherenceFindsLies(t *testing.T) {
	for i := range lies {
		t.Run(lies[i].name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plan{routers: 1, lie: &lies[i].lie}, 1)
			report := history.Check(w.run(4000, nil, false), history.Contract{})
			if len(report.Violations) == 0 {
				t.Fatal("the check found nothing")
			}
			t.Logf("%d violations, the first: %v", len(report.Violations), &report.Violations[0])
		})
	}
}

// TestCoherenceFindsOneLie has a single delete lost between two other requests.
func TestCoherenceFindsOneLie(t *testing.T) {
	w := newWorld(t, plan{routers: 1, lie: &forger{nth: 10, change: misdirect, verbs: []string{"md"}}}, 1)
	c := w.cohort.callers[0]
	defer w.cohort.close()
	cell := c.cells[0]
	for range 10 {
		for _, send := range []func(){
			func() { c.write(history.Set, cell) },
			func() { c.change(history.Delete, true, cell, 0) },
			func() { c.read(history.Get, false, 0, cell) },
		} {
			w.cohort.connect(c)
			send()
			if err := c.batch(); err != nil {
				t.Fatal(err)
			}
		}
	}
	report := history.Check(w.cohort.rec.Ops(), history.Contract{})
	if len(report.Violations) != 1 || len(report.Violations[0].Ops) != 3 {
		t.Fatalf("want one violation of three operations: %v", report)
	}
}
