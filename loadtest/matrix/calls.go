//go:build linux

package matrix

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cacherouter/loadtest/load"
)

// callRequests is how many requests are sent while system calls are counted.
const callRequests = 3000

// countCalls counts the contenders' system calls with strace, per request, in runs of their own: strace makes each call
// take many times as long, so these runs measure nothing else. Where it fails, or is not installed, nothing is known.
func (s *stage) countCalls(ctx context.Context, l Load, o *Outcome) []float64 {
	calls := make([]float64, len(s.contenders))
	strace, err := exec.LookPath("strace")
	if err != nil {
		return calls
	}
	for i, x := range s.contenders {
		s.config.say("%s: system calls, %s", l.Name, x.name)
		if calls[i], err = s.callsOf(ctx, strace, x, l); err != nil {
			o.Failed = append(o.Failed, fmt.Sprintf("cannot count the system calls of %s: %v", x.name, err))
		}
	}
	return calls
}

func (s *stage) callsOf(ctx context.Context, strace string, x contender, l Load) (float64, error) {
	session, err := load.Dial(ctx, l.plan(x.server.Addr, 0))
	if err != nil {
		return 0, err
	}
	defer session.Close()
	if _, err := session.Run(ctx, load.Extent{Requests: 2 * l.Connections * l.Pipeline}); err != nil {
		return 0, err
	}
	table := filepath.Join(s.dir, "calls")
	c := exec.CommandContext(ctx, strace, "-f", "-c", "-U", "calls,name", "-o", table, "-p", strconv.Itoa(x.server.ID()))
	told, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return 0, err
	}
	told.Read(make([]byte, 1)) // it says when it is attached
	r, err := session.Run(ctx, load.Extent{Requests: max(callRequests, 4*l.Connections*l.Pipeline)})
	c.Process.Signal(syscall.SIGINT)
	c.Wait() // with the signal's status
	if err != nil {
		return 0, err
	}
	n, err := totalCalls(table)
	return n / float64(max(r.Answered(), 1)), err
}

// totalCalls reads strace's table.
func totalCalls(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == "total" {
			return strconv.ParseFloat(f[0], 64)
		}
	}
	return 0, fmt.Errorf("strace tells no total:\n%s", text)
}
