package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"

	"github.com/google/go-cmp/cmp"
)

func config(targets ...string) Config {
	return Config{Targets: targets, Rate: 1000, For: time.Second, Keys: 100, Writes: 100, Timeout: 10 * time.Second,
		Wait: 10 * time.Second, Outage: 10 * time.Second}
}

// during judges while something is done.
func during(t *testing.T, c Config, do func(ctx context.Context)) (*Report, string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); do(ctx) }()
	r, err := Run(t.Context(), c)
	stop()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

func TestMemcachedPasses(t *testing.T) {
	r, text := during(t, config(memcachedtest.Start(t).Addr()), func(context.Context) {})
	if !r.Pass() || strings.Contains(text, "FAIL") || r.Answered < 300 || r.Hits < 0.99 || r.Verdicts[ledger.Fresh] == 0 {
		t.Errorf("did not pass:\n%s", text)
	}
}

func TestWrongValuesFail(t *testing.T) {
	server := memcachedtest.Start(t)
	r, text := during(t, config(server.Addr()), func(ctx context.Context) {
		c := caller.Conn{Target: server.Addr(), Timeout: 10 * time.Second}
		defer c.Close()
		for i := 0; ctx.Err() == nil; i = (i + 1) % 100 {
			if err := c.Set(ledger.Key(i), []byte("another's"), 0); err != nil {
				t.Error(err)
			}
		}
	})
	if r.Pass() || !strings.Contains(text, "FAIL  values that are stale or wrong") || !strings.Contains(text, "no value of it") {
		t.Errorf("passed:\n%s", text)
	}
}

// Two servers that know nothing of each other are no cache.
func TestStaleValuesFail(t *testing.T) {
	r, text := during(t, config(memcachedtest.Start(t).Addr(), memcachedtest.Start(t).Addr()), func(context.Context) {})
	if r.Pass() || r.Verdicts[ledger.Stale] == 0 || !strings.Contains(text, "was acknowledged before") {
		t.Errorf("passed:\n%s", text)
	}
}

func TestAnEndFails(t *testing.T) {
	server := memcachedtest.Start(t)
	c := config(server.Addr())
	c.For, c.Outage = 5*time.Second, 500*time.Millisecond
	r, text := during(t, c, func(context.Context) {
		for server.Stat("cmd_get") < 200 {
			time.Sleep(time.Millisecond) // between two looks
		}
		server.Stop()
	})
	if r.Pass() || !strings.Contains(text, "FAIL  reads failed") || !strings.Contains(text, "failed at") {
		t.Errorf("passed:\n%s", text)
	}
}

func TestFailuresMakeOutages(t *testing.T) {
	begin := time.Now()
	f := func(at float64, err error) traffic.Failure {
		return traffic.Failure{At: begin.Add(time.Duration(at * float64(time.Second))), Write: true, Err: err}
	}
	got := outages([]traffic.Failure{
		f(1, caller.Refusal("SERVER_ERROR backend gone")), f(2, errors.New("later")),
		f(4, fmt.Errorf("cannot ask x: %w", errors.New("broken"))),
	}, begin)
	want := []Outage{{true, time.Second, time.Second, 2, "SERVER_ERROR backend gone"}, {true, 4 * time.Second, 0, 1, "broken"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r := &Report{Config: Config{Outage: 900 * time.Millisecond}, Answered: 1, Late: 100 * time.Millisecond, Outages: got}
	if !r.Pass() || r.Longest(true) != time.Second || r.Longest(false) != 0 {
		t.Error("an outage of 1 s does not pass with 0.9 s allowed and 0.1 s of lateness")
	}
	r.Late--
	if r.Pass() {
		t.Error("it passes with less")
	}
}

func TestWhatCannotBeJudged(t *testing.T) {
	c := config(memcachedtest.Reserve(t))
	c.Wait = 0
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), c.Targets[0]) {
		t.Errorf("nobody was judged: %v", err)
	}
	if _, err := Run(t.Context(), Config{Targets: []string{"x"}}); err == nil {
		t.Error("judged without keys")
	}
}
