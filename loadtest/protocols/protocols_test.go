//go:build linux

package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/built"
	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/echo"
	"cacherouter/loadtest/load"
	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
)

// asEcho as the first argument makes the test binary an echo server.
const asEcho = "echo-server"

// router builds the binary under test once.
var router = built.Router("cacherouter")

func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == asEcho { // echo-server --cert FILE --key FILE
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		c := echo.Config{Plan: EchoPlan(), CertFile: os.Args[3], KeyFile: os.Args[5], Out: os.Stdout}
		if err := echo.Serve(ctx, c); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(built.Main(m))
}

// brief is the real comparison, but short.
func brief(t *testing.T) Config {
	t.Helper()
	memcachedtest.Need(t, "memcached")
	path, err := router()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Router: path, Echo: []string{os.Args[0], asEcho}, Rounds: 1, Duration: 30 * time.Millisecond,
		Layout: process.Shared,
	}
}

func TestCompareMeasuresAllContenders(t *testing.T) {
	r, err := Compare(t.Context(), brief(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"protocols 1", "protocols 16", "tls 1", "tls 16"}
	var got []string
	for _, table := range r.Tables {
		got = append(got, fmt.Sprintf("%s %d", table.Name, table.Pipeline))
		for _, row := range table.Rows {
			m := row.Median
			if len(row.Samples) != 1 || m.CPU <= 0 || m.CPU > 1e5 || m.Rate <= 0 || m.P99 < m.P50 || m.Generator <= 0 {
				t.Errorf("%s, %s: %+v", got[len(got)-1], row.Contender, row)
			}
		}
		for _, v := range table.Verdicts {
			if v.Low > v.Median || v.High < v.Median || v.Unit == "" && v.Median <= 0 {
				t.Errorf("%s: %+v", got[len(got)-1], v)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
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
	for _, want := range []string{
		"protocols, 50 connections, pipeline 16: medians of 1 rounds", "binary / text", "target <= 1.15",
		"router, plain", "router, TLS / echo, TLS", "target <= 1.30", "TLS adds to the echo",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("tables do not say %q:\n%s", want, &text)
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

func TestVerdictsAreOfTheRightContenders(t *testing.T) {
	s := &stage{router: &process.Dual{Process: self(t)}, echo: &process.Dual{Process: self(t)}}
	f := func(x comparison, cpu []float64, want map[string]float64, missed ...string) {
		t.Helper()
		samples := paired.Samples{}
		for _, c := range cpu {
			samples.Of = append(samples.Of, []paired.Sample{{CPU: c}})
		}
		table := conclude(x, samples)
		got := map[string]float64{}
		for _, v := range table.Verdicts {
			got[v.Name] = v.Median
			if strings.Contains(v.verdict(), "MISSED") != strings.Contains(strings.Join(missed, "|"), v.Name) {
				t.Errorf("%s: %s", v.Name, v.verdict())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	f(s.spelling(1), []float64{10, 11.5, 12.5}, map[string]float64{"meta / text": 1.15, "binary / text": 1.25}, "binary / text")
	f(s.security(1), []float64{28, 20, 15, 12}, map[string]float64{
		"router, TLS / echo, TLS": 1.4, "router, TLS / (echo, TLS + router, plain)": 0.8,
		"TLS adds to the router": 13, "TLS adds to the echo": 8,
	}, "router, TLS / echo, TLS")
	if v := (Verdict{Target: 1}); v.Met() {
		t.Error("nothing measured meets a target")
	}
}

// self is any process.
func self(t *testing.T) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), process.Command{Name: "sleep", Path: "sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestEndOfContextKeepsTheReport(t *testing.T) {
	c := brief(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Rounds, c.Duration, c.Only = 1000, 10*time.Millisecond, []string{Security}
	said := 0
	c.Progress = func(text string) {
		if !strings.HasPrefix(text, "tls, pipeline 1: ") {
			t.Errorf("unexpected %q", text)
		}
		if said++; said == 10 { // four in a round
			cancel()
		}
	}
	r, err := Compare(ctx, c)
	if err == nil || r == nil || len(r.Tables) != 1 {
		t.Fatalf("report %v, error %v; want both", r, err)
	}
	if n := len(r.Tables[0].Rows[0].Samples); n != 2 {
		t.Errorf("%d rounds are reported, want 2", n)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		c := brief(t)
		change(&c)
		r, err := Compare(t.Context(), c)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("report %v, error %v; want one about %q", r, err, want)
		}
	}
	f(func(c *Config) { c.Router = "" }, "missing")
	f(func(c *Config) { c.Echo = nil }, "missing")
	f(func(c *Config) { c.Rounds = 0 }, "0 rounds")
	f(func(c *Config) { c.Router = "/bin/false" }, "cannot start cacherouter: it ended")
	f(func(c *Config) { c.Echo = []string{"/bin/false"} }, "cannot start echo server: it ended")
}

func TestFailedRoundsAreTold(t *testing.T) {
	p := load.DefaultPlan(memcachedtest.Reserve(t))
	s := &stage{config: Config{Rounds: 4, Duration: time.Millisecond}}
	x := comparison{name: "dead", pipeline: 1, contenders: []paired.Contender{{Name: "dead", Plan: p, PID: os.Getpid()}}}
	samples, err := s.run(t.Context(), x)
	if err == nil || !strings.Contains(err.Error(), "2 rounds of 2 failed") {
		t.Errorf("error is %v", err)
	}
	var text bytes.Buffer
	r := &Report{Tables: []Table{conclude(x, samples)}}
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "2 rounds failed, the first: cannot use") {
		t.Errorf("report is %q, %v", &text, err)
	}
}
