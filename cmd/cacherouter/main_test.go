package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// command runs the command and returns its exit status and output.
func command(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(args, &o, &e)
	return status, o.String(), e.String()
}

func TestWhere(t *testing.T) {
	const servers = "--backends=a=h:1,h:2,c=h:3@4"
	status, out, _ := command("where", servers, "user:1", "user:2")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 2 {
		t.Fatalf("status %d, %q", status, out)
	}
	for i, line := range lines {
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[0] != []string{"user:1", "user:2"}[i] {
			t.Errorf("got %q", line)
		}
		for _, server := range f[1:] {
			if !strings.Contains("a=h:1 h:2 c=h:3", server) {
				t.Errorf("%q is no server", server)
			}
		}
	}
	_, again, _ := command("where", "--backends=c=h:3@4,h:2,a=h:1", "user:1", "user:2")
	if diff := cmp.Diff(out, again); diff != "" {
		t.Errorf("another order of servers places keys elsewhere:\n%s", diff)
	}
	status, out, _ = command("where", servers, "--json", "user:1")
	if status != 0 || !strings.Contains(out, `"key": "user:1"`) {
		t.Errorf("status %d, %q", status, out)
	}
}

func TestCheck(t *testing.T) {
	good := writeConfig(t, "pool:\n  servers: [h:1, h:2]\n")
	if status, out, _ := command("check", "--config", good); status != 0 || !strings.Contains(out, "ok") {
		t.Errorf("status %d, %q", status, out)
	}
	bad := writeConfig(t, "pool:\n  servers: [h:1, h:1]\n")
	if status, _, errs := command("check", "--config", bad); status != 1 || !strings.Contains(errs, "twice") {
		t.Errorf("status %d, %q", status, errs)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"fly"}, {"where", "--nonsense", "k"}, {"where", "--backends=h:1@x", "k"}} {
		if status, _, errs := command(args...); status != 2 || errs == "" {
			t.Errorf("%q: status %d, %q", args, status, errs)
		}
	}
	if status, out, _ := command("--help"); status != 0 || !strings.Contains(out, "serve") {
		t.Errorf("help: status %d, %q", status, out)
	}
	if status, _, errs := command("serve", "--listen=127.0.0.1:0"); status != 1 || !strings.Contains(errs, "server") {
		t.Errorf("serve without servers: status %d, %q", status, errs)
	}
}
