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
)

func config(targets ...string) Config {
	return Config{Targets: targets, Rate: 1000, For: time.Second, Keys: 100, Writes: 100, Timeout: 10 * time.Second,
		Wait: 10 * time.Second, Outage: 10 * time.Second, Failed: 5}
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
	c.For = 3 * time.Second
	r, text := during(t, c, func(context.Context) {
		for server.Stat("cmd_get") < 200 {
			time.Sleep(time.Millisecond) // between two looks
		}
		server.Stop()
	})
	if r.Pass() || !strings.Contains(text, "FAIL  requests that failed, of 1,000") || !strings.Contains(text, "failed at") {
		t.Errorf("passed:\n%s", text)
	}
}

func TestFailuresMakeOutages(t *testing.T) {
	r := &Report{Config: Config{Outage: 900 * time.Millisecond, Failed: 1000}, Answered: 1, Late: 100 * time.Millisecond}
	f := func(at time.Duration, write bool, err error) {
		r.Failed++
		r.add(traffic.Failure{Write: write, Err: err}, at)
	}
	f(time.Second, false, caller.Refusal("SERVER_ERROR backend gone"))
	f(2*time.Second, true, errors.New("later"))
	if !r.Pass() {
		t.Error("an outage of 1 s does not pass with 0.9 s allowed and 0.1 s of lateness")
	}
	f(4*time.Second, true, fmt.Errorf("cannot ask x: %w", errors.New("broken")))
	want := []Outage{{time.Second, time.Second, 1, 1, "SERVER_ERROR backend gone"}, {4 * time.Second, 0, 0, 1, "broken"}}
	if fmt.Sprint(r.Outages) != fmt.Sprint(want) || r.Longest() != want[0] {
		t.Errorf("outages %v, want %v", r.Outages, want)
	}
	f(4500*time.Millisecond, false, errors.New("x"))
	f(5400*time.Millisecond, false, errors.New("x"))
	if r.Pass() {
		t.Error("an outage of 1.4 s passes")
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
