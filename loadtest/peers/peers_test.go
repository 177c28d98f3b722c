//go:build linux

package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/process"
)

func sampleOf(cpu, p50 float64) Sample { return Sample{CPU: cpu, P50: p50} }

func TestRatioIsTheMedianOfThePairs(t *testing.T) {
	f := func(m Measure, ours, against []Sample, want, low, high float64) {
		t.Helper()
		o := Outcome{Shape: Shape{Measure: m, Target: 0.8}, Samples: [3][]Sample{ours, against, nil}}
		o.conclude()
		if o.Ratio != want || o.Low != low || o.High != high || o.Met() != (want > 0 && want <= 0.8) {
			t.Errorf("ratio %v (%v-%v), met %v; want %v (%v-%v)", o.Ratio, o.Low, o.High, o.Met(), want, low, high)
		}
	}
	a, b, c := sampleOf(10, 1), sampleOf(30, 2), sampleOf(20, 5)
	d := sampleOf(40, 8)
	f(CPU, []Sample{a, a, a}, []Sample{d, a, c}, 0.5, 0.375, 0.75)
	f(P50, []Sample{a, a, a, a, a}, []Sample{b, a, d, b, c}, 0.5, 0.2, 0.5)
	f(CPU, []Sample{a, c}, []Sample{a, a}, 1.5, 1.25, 1.75)
	f(CPU, []Sample{a, c}, []Sample{c}, 0.5, 0.5, 0.5)
	f(CPU, []Sample{a}, nil, 0, 0, 0)
	f(CPU, []Sample{{CPU: 8}}, []Sample{{CPU: 10}}, 0.8, 0.8, 0.8)
}

func TestContendersTakeTurnsInGoingFirst(t *testing.T) {
	for round, want := range [][]int{{0, 1, 2}, {1, 0, 2}, {0, 1, 2}} {
		if got := turns(round); !slices.Equal(got, want) {
			t.Errorf("round %d has the order %v, want %v", round, got, want)
		}
	}
}

// brief is a comparison of nutcracker with itself: the real one, but short.
func brief(t *testing.T) Config {
	t.Helper()
	memcachedtest.Need(t, "memcached")
	memcachedtest.Need(t, "nutcracker")
	return Config{
		Ours: Nutcracker, Against: Nutcracker, Pairs: 2, Duration: 50 * time.Millisecond,
		Shapes: []Shape{{"brief", 4, 2, 100, CPU, 1000}}, Layout: process.Shared,
	}
}

func TestCompareMeasuresAllContenders(t *testing.T) {
	before, err := process.Allowed(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compare(t.Context(), brief(t))
	if err != nil {
		t.Fatal(err)
	}
	if after, err := process.Allowed(os.Getpid()); err != nil || after != before {
		t.Errorf("this process may run on %v afterwards, on %v before; %v", after, before, err)
	}
	o := r.Outcomes[0]
	for i, samples := range o.Samples {
		if len(samples) != 2 {
			t.Errorf("%s has %d samples, want 2", r.Contenders[i], len(samples))
		}
		for _, s := range samples {
			if s.CPU <= 0 || s.CPU > 1e5 || s.Load <= 0 || s.Rate <= 0 || s.P50 <= 0 || s.P99 < s.P50 || s.Generator <= 0 {
				t.Errorf("%s has a sample %+v", r.Contenders[i], s)
			}
		}
	}
	if !o.Met() {
		t.Errorf("ratio is %v", o.Ratio)
	}
	checkForms(t, r)
}

// checkForms makes sure that both forms of a report say the same.
func checkForms(t *testing.T, r *Report) {
	t.Helper()
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 conns, pipeline 2", "nutcracker (as ours)", "memcached", "2 pairs", "target <= 1000.00", "met"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("table does not say %q:\n%s", want, &text)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*r, back); diff != "" {
		t.Error(diff)
	}
}

func TestIdleClientsAreHeldAndMeasured(t *testing.T) {
	c := brief(t)
	all, err := MeasureIdle(t.Context(), c, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Fatalf("%d contenders, want 2", len(all))
	}
	for _, i := range all {
		if i.Clients != 100 || i.Before == 0 || i.Served < i.Before || i.Burst < i.Before || i.Failed != 0 || !i.Met() {
			t.Errorf("%+v", i)
		}
	}
}

func TestEndOfContextKeepsTheReport(t *testing.T) {
	c := brief(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Pairs, c.Duration = 1000, 20*time.Millisecond
	said := 0
	c.Progress = func(string) {
		if said++; said == 5 {
			cancel()
		}
	}
	r, err := Compare(ctx, c)
	if err == nil || r == nil {
		t.Fatalf("report %v, error %v; want both", r, err)
	}
	if o := r.Outcomes[0]; len(o.Samples[0]) == 0 || len(o.Samples[0]) > 2 || o.Ratio <= 0 {
		t.Errorf("outcome is %+v", o)
	}
}

func TestContendersThatCannotBeStarted(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		c := brief(t)
		change(&c)
		r, err := Compare(t.Context(), c)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("report %v, error %v; want one about %q", r, err, want)
		}
	}
	f(func(c *Config) { c.Ours = "" }, "missing")
	f(func(c *Config) { c.Pairs = 0 }, "0 pairs")
	f(func(c *Config) { c.Ours = "/nonexistent/router" }, "cannot start cacherouter")
	f(func(c *Config) { c.Ours = "/bin/false" }, "cannot start cacherouter: it ended")
}

// poser writes a program that says it is a router listening at addr, and only sleeps.
func poser(t *testing.T, addr string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "poser")
	script := "#!/bin/sh\necho level=INFO msg=listening network=tcp addr=" + addr + "\nexec sleep 60\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContenderIsLoadedWhereItSaysItListens(t *testing.T) {
	c := brief(t)
	server := memcachedtest.Start(t)
	c.Ours, c.Pairs = poser(t, server.Addr()), 1
	r, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if server.Stat("cmd_get") == 0 || r.Contenders[0] != "cacherouter" || r.Outcomes[0].Samples[0][0].Rate <= 0 {
		t.Errorf("%d gets reached the contender; report is %+v", server.Stat("cmd_get"), r)
	}
}

func TestFailedRoundsAreToldAndTooManyEndTheComparison(t *testing.T) {
	c := brief(t)
	c.Ours, c.Pairs = poser(t, memcachedtest.Reserve(t)), 8
	r, err := Compare(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "3 rounds of 3 failed") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error is %v", err)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if o := r.Outcomes[0]; len(o.Samples[0]) != 0 || !strings.Contains(text.String(), "3 rounds failed, the first: cannot use") {
		t.Errorf("%d samples; report is\n%s", len(o.Samples[0]), &text)
	}
}
