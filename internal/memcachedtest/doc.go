// Package memcachedtest starts real memcached processes for tests, and a TCP proxy that misbehaves on demand.
//
// Tests talk to the real program because its exact bytes are the contract; a fake is used only to force a fault the
// real program cannot be made to show. Each server has a port reserved for the whole test, so it can be killed and
// come back at the same address, and nothing else on the machine can take the address meanwhile.
package memcachedtest

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// startTimeout bounds how long a process may take to answer; it is generous because test machines are slow under -race.
const startTimeout = 20 * time.Second

// Need returns the path of a program that the test cannot do without. Where the program is not installed the test is
// skipped and says why, but with CI set in the environment it fails: there, everything has to be installed.
func Need(tb testing.TB, program string) string {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Missing(tb, program+" is not installed")
	}
	return path
}

// Missing ends a test whose surroundings lack something: a skip naming what, or a failure when CI is set.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}
