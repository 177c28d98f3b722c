// Package built builds the router for tests that run it as a process.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// dir holds the binaries of this run.
var dir string

// Main runs a package's tests and removes what they have built. It returns the exit status.
func Main(m *testing.M) int {
	var err error
	if dir, err = os.MkdirTemp("", "cacherouter-built-"); err != nil {
		fmt.Fprintln(os.Stderr, "cannot make a folder for binaries:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755) // some tests run routers as users of their own
	return m.Run()
}

// Router returns what builds the router with flags of go build, on its first call, and returns the
// path of the binary. It works under Main. The recorded profile is not used, as all packages would be
// compiled anew.
func Router(name string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, name)
		args := append([]string{"build", "-buildvcs=false", "-pgo=off", "-o", path}, flags...)
		out, err := exec.Command("go", append(args, "cacherouter/cmd/cacherouter")...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("cannot build the router: %w\n%s", err, out)
		}
		return path, nil
	})
}
