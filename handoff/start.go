//go:build unix

package handoff

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// variable tells a process by which descriptor it is linked to the one it replaces.
const variable = "CACHEROUTER_HANDOFF"

// Start runs a program that is to replace this process, with its own standard streams. Who
// starts it waits for it, or lets it live on.
func Start(program string, args []string) (*exec.Cmd, *Link, error) {
	ours, theirs, err := newPair()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot start a new process: %w", err)
	}
	defer theirs.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs} // becomes descriptor 3
	cmd.Env = append(without(os.Environ(), variable, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"), variable+"=3")
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("cannot start a new process: %w", err)
	}
	return cmd, ours, nil
}

// without leaves variables out of an environment.
func without(env []string, names ...string) (rest []string) {
next:
	for _, e := range env {
		for _, n := range names {
			if strings.HasPrefix(e, n+"=") {
				continue next
			}
		}
		rest = append(rest, e)
	}
	return rest
}

// Predecessor returns the link to the process that this one is to replace, nil if it
// was started otherwise. It is asked once, before anything else is started.
func Predecessor() (*Link, error) {
	v := os.Getenv(variable)
	if v == "" {
		return nil, nil
	}
	os.Unsetenv(variable)
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%s is no descriptor", variable, v)
	}
	l, err := linkOf(os.NewFile(uintptr(fd), "handoff"))
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", variable, v, err)
	}
	return l, nil
}
