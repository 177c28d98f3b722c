package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"cacherouter/reactor"
)

func TestEngineFallsBack(t *testing.T) {
	f := func(asked, want reactor.Engine, said string) {
		t.Helper()
		var log bytes.Buffer
		s := &server{cfg: config{Engine: asked}, log: slog.New(slog.NewTextHandler(&log, nil))}
		if got := s.engine(); got != want || !strings.Contains(log.String(), said) || said == "" && log.Len() > 0 {
			t.Errorf("engine %q: took %q, and said %q", asked, got, log.String())
		}
	}
	f("steam", reactor.Auto, `msg="engine cannot be used, taking auto" engine=steam err=`)
	f(reactor.Auto, reactor.Auto, "")
	f(reactor.Portable, reactor.Portable, "")
}
