package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// healthcheck runs the binary's own check of a router.
func healthcheck(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	cmd := prepare(t, raceBinary, append([]string{"healthcheck"}, args...)...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// A router is healthy until its only server is killed, and nobody is when it has ended.
func TestHealthcheck(t *testing.T) {
	server := memcachedtest.Start(t)
	r := startRouter(t, []string{server.Addr()})
	becomes := func(wantStatus int, wantIn string) {
		t.Helper()
		waitFor(t, wantIn, func() error {
			if status, out := healthcheck(t, "--admin", r.admin); status != wantStatus || !strings.Contains(out, wantIn) {
				return fmt.Errorf("status %d, %q", status, out)
			}
			return nil
		})
	}
	becomes(0, "ready\n")
	server.Stop()
	becomes(1, "says: not ready: no server")
	r.stop()
	becomes(1, "connection refused")
}

// What listens and says nothing is not waited for.
func TestHealthcheckOfSomethingSilent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if status, out := healthcheck(t, "--admin", ln.Addr().String(), "--timeout", "50ms"); status != 1 || !strings.Contains(out, "deadline") {
		t.Errorf("status %d, %q", status, out)
	}
}
