//go:build linux

package matrix

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/load"
	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
	"cacherouter/loadtest/workload"
)

func TestContendersAreMeasuredAndDrawn(t *testing.T) {
	for _, program := range []string{"memcached", "nutcracker", "haproxy", "strace"} {
		memcachedtest.Need(t, program)
	}
	r, err := Measure(t.Context(), Config{
		Only: []string{"alone", "multiget-10", Memcached, Nutcracker, HAProxy}, Rounds: 2, Duration: 20 * time.Millisecond, Layout: process.Free,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != 2 || !slices.Equal(r.Contenders, []string{Memcached, Nutcracker, HAProxy}) {
		t.Fatalf("%d loads of %v", len(r.Outcomes), r.Contenders)
	}
	for _, o := range r.Outcomes {
		for i, m := range o.Medians {
			if len(o.Samples[i]) != 2 || m.CPU <= 0 || m.Rate <= 0 || m.P99 < m.P50 || o.Resident[i] == 0 || o.Calls[i] <= 0 {
				t.Errorf("%s, %s: %+v, %d bytes, %.2f calls", o.Load.Name, r.Contenders[i], m, o.Resident[i], o.Calls[i])
			}
		}
	}
	dir := t.TempDir()
	if err := r.Draw(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		if b, err := os.ReadFile(filepath.Join(dir, c.file)); err != nil || !strings.Contains(string(b), Nutcracker) || !strings.Contains(string(b), "multiget-10") {
			t.Errorf("%s: %v\n%.300s", c.file, err, b)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "peers.txt"))
	if err != nil || !strings.Contains(string(b), "CPU/nutcracker") {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestGoals(t *testing.T) {
	sample := func(cpu float64) []paired.Sample { return []paired.Sample{{CPU: cpu, P50: 1}, {CPU: cpu, P50: 1}} }
	r := Report{Contenders: []string{Nutcracker, Epoll, Uring}, Outcomes: []Outcome{{
		Load: Load{Name: "single"}, Samples: [][]paired.Sample{sample(10), sample(7), sample(7)},
	}}}
	var text bytes.Buffer
	if err := r.writeGoals(&text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "0.72  met") || !strings.HasSuffix(lines[1], "0.62  MISSED") {
		t.Errorf("goals are\n%s", &text)
	}
	for _, g := range goals {
		if names := Names(); !slices.Contains(names, g.load) || !slices.Contains(names, g.ours) || !slices.Contains(names, g.against) {
			t.Errorf("no such load or contender: %+v", g)
		}
	}
}

func TestLoadsCanBeOffered(t *testing.T) {
	for _, l := range Loads() {
		if err := l.plan("host:1", 1000).Validate(); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
	p := Load{Connections: 3, Pipeline: 2, Keys: 5, ValueSize: 7, Multiget: 4, Share: 0.5}.plan("t", 1000)
	want := load.DefaultPlan("t")
	want.Connections, want.Pipeline, want.Keys, want.ValueSize, want.Rate = 3, 2, 5, workload.Fixed(7), 500
	want.Ratio, want.MultigetKeys = workload.Ratio{Multigets: 1}, 4
	if p.Rate != want.Rate || p.Ratio != want.Ratio || p.MultigetKeys != 4 || p.ValueSize != want.ValueSize || p.Connections != 3 {
		t.Errorf("%+v, want %+v", p, want)
	}
}

func TestTotalOfCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	f := func(text string, want float64, fails bool) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := totalCalls(path); got != want || (err != nil) != fails {
			t.Errorf("%v, %v", got, err)
		}
	}
	f("    calls syscall\n--------- -----\n       12 read\n        3 write\n--------- -----\n       15 total\n", 15, false)
	f("", 0, true)
}
