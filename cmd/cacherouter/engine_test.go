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

// Check says what auto would choose, and why.
func TestEngineHere(t *testing.T) {
	chosen, refused, err := reactor.Choice(reactor.Auto)
	if err != nil {
		t.Fatal(err)
	}
	f := func(c config, want string) {
		t.Helper()
		if got := c.engineHere(); !strings.HasPrefix(got, want) {
			t.Errorf("engine %q: said %q, want %q", c.Engine, got, want)
		}
	}
	auto := "engine auto, which is " + string(chosen) + " on this host"
	if refused != nil {
		auto += ": " + refused.Error()
	}
	f(config{Engine: reactor.Auto}, auto)
	f(config{Engine: reactor.Portable}, "engine portable")
	f(config{Engine: "steam"}, "engine steam, which is "+string(chosen)+" on this host: ")
}
