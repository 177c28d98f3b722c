package admin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cacherouter/reload"
)

// answer asks from this host.
func answer(s *Server, method, path string) (status int, body string) {
	w := asked(s, method, path)
	return w.Code, w.Body.String()
}

// What is asked for arrives, what came of it is answered, and what it left behind is shown.
func TestReloadPages(t *testing.T) {
	journal := reload.NewJournal(time.Unix(1000, 0))
	var options reload.Options
	s := New(Config{
		Router: newIdle(1), Local: true, Reloads: journal.State,
		Reload: func(o reload.Options) *reload.Report {
			options = o
			r := &reload.Report{DryRun: o.DryRun, Outcome: reload.Applied, Changes: []reload.Change{{Subject: "pool a", Change: "added"}}, Upgrade: []string{"loops"}}
			if !o.Force {
				r.Fails(reload.Refused, errors.New("too much moves"))
			}
			if !o.DryRun {
				journal.Note(r, time.Unix(2000, 0))
			}
			return r
		},
	})
	f := func(method, query string, status int, wanted reload.Options, want ...string) {
		t.Helper()
		options = reload.Options{}
		code, body := answer(s, method, "/api/v1/reload"+query)
		if code != status || options != wanted {
			t.Errorf("%s %s: status %d, asked for %+v; want %d, %+v: %s", method, query, code, options, status, wanted, body)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s %s: %q is not in %s", method, query, w, body)
			}
		}
	}
	f("GET", "", 200, reload.Options{}, `"counts"`, `"loaded":"1970-01-01T00:16:40Z"`)
	f("POST", "?dry_run=maybe", 400, reload.Options{}, "dry_run")
	f("POST", "?dry_run=true", 200, reload.Options{DryRun: true}, `"outcome":"refused"`, `"error":"too much moves"`, "pool a")
	f("GET", "", 200, reload.Options{}, `"refused":0`)
	f("POST", "", 422, reload.Options{}, "too much moves")
	f("GET", "", 200, reload.Options{}, `"refused":1`, `"error":"too much moves"`, "1970-01-01T00:16:40Z")
	_, overview := answer(s, "GET", "/api/v1/overview")
	_, metrics := answer(s, "GET", "/metrics")
	if !strings.Contains(overview, "The last reload changed nothing: too much moves.") || !strings.Contains(metrics, "\ncacherouter_config_last_reload_successful 0\n") {
		t.Errorf("a reload that was refused is not shown: %s", overview)
	}
	f("POST", "?force=true", 200, reload.Options{Force: true}, `"outcome":"applied"`, `"loops"`)
	_, metrics = answer(s, "GET", "/metrics")
	for _, want := range []string{"config_last_reload_successful 1", "config_last_reload_success_timestamp_seconds 2000", "config_settings_pending 1", `config_reloads_total{outcome="applied"} 1`} {
		if !strings.Contains(metrics, "\ncacherouter_"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// Pools that come and go are shown, and are not any more.
func TestShowOtherPools(t *testing.T) {
	s := New(Config{Router: newIdle(1), Local: true})
	s.SetReady(true)
	f := func(path string, status int, want string) {
		t.Helper()
		if code, body := answer(s, "GET", path); code != status || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, %s; want %d, %q", path, code, body, status, want)
		}
	}
	f("/api/v1/overview?pool=a", 404, "no pool")
	stream, err := s.broadcast.listen()
	if err != nil {
		t.Fatal(err)
	}
	a, b := Pool{Name: "a", Router: newIdle(2)}, Pool{Name: "b", Router: newIdle(3)}
	s.Show(a, []Pool{a, b})
	for range stream { // which ends
	}
	f("/api/v1/overview?pool=a", 200, `"pool":"a"`)
	f("/api/v1/pools", 200, `"name":"b"`)
	s.SetReady(false)
	f("/readyz", 503, "not ready")
	s.Show(Pool{Router: newIdle(1)}, nil)
	f("/api/v1/overview?pool=a", 404, "no pool")
	if err := s.Close(); err != nil {
		t.Error(fmt.Errorf("after two changes: %w", err))
	}
}
