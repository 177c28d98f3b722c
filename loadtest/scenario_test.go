//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/scenario"
)

func TestScenariosAreListed(t *testing.T) {
	text, err := command(t, "scenario").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if n := strings.Count(string(text), "\n"); n != len(scenario.All()) || !strings.Contains(string(text), "\nscale-out ") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if text, err := command(t, "scenario", "nothing").CombinedOutput(); err == nil || !strings.Contains(string(text), `no scenario "nothing"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestInterruptedScenarioSaysSoAndLeavesNoProcess(t *testing.T) {
	memcachedtest.Need(t, "memcached")
	c := command(t, "scenario", "checks", "--ours", "/nonexistent/router") // the first part needs none
	out, says := &bytes.Buffer{}, &lines{wrote: make(chan struct{}, 1)}
	c.Stdout, c.Stderr = out, says
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	says.await(t, "3 servers and 0 routers run")
	children := childrenOf(t, c.Process.Pid)
	if len(children) != 3 {
		t.Errorf("%d children, want three servers", len(children))
	}
	c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err == nil || !strings.Contains(says.String(), errInterrupted.Error()) {
		t.Errorf("%v\n%s", err, says)
	}
	if !strings.Contains(out.String(), "FAIL  checks") {
		t.Errorf("what was not finished passes:\n%s", out)
	}
	for _, pid := range children {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("process %d is left", pid)
		}
	}
}
