//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/load"
)

// asCommand in the environment makes the test binary be the command.
const asCommand = "LOADTEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command prepares to run the program as a user does.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	return c
}

func TestRunPrintsATable(t *testing.T) {
	server := memcachedtest.Start(t)
	text, err := command(t, "run", "--target", server.Addr(), "-n", "1100", "-c", "4", "-p", "3", "--protocol", "meta",
		"--pid", fmt.Sprint(server.PID())).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		server.Addr() + ", meta protocol, 4 connections, pipeline 3", "1100 requests", "0 errors, 0 wrong, 0 unanswered",
		"requests/s", "p50", "us of CPU",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("output does not say %q:\n%s", want, text)
		}
	}
}

func TestRunPrintsJSON(t *testing.T) {
	server := memcachedtest.Start(t)
	text, err := command(t, "run", "--target", server.Addr(), "-n", "1000", "--ratio", "1:1", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Plan load.Plan
		load.Result
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got.Plan.Target != server.Addr() || got.Requests() != 1000 || got.Hits != got.Gets || got.Sets < 400 {
		t.Errorf("%+v", got)
	}
}

func TestFailuresEndWithAMessageAndStatusOne(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		text, err := command(t, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() == 0 || !strings.Contains(string(text), want) {
			t.Errorf("%v: %v, output does not say %q:\n%s", args, err, want, text)
		}
	}
	down := memcachedtest.Reserve(t)
	f("cannot use "+down+" as target", "run", "--target", down)
	f(`"-1" is no length`, "run", "--target", down, "--size=-1")
	f(`"1to10"`, "run", "--ratio", "1to10")
	f("a load needs a duration or a number of requests", "run", "--target", memcachedtest.Start(t).Addr(), "-d", "0s")
	f("nosuchload", "peers", "--only", "nosuchload")
	f("cannot start cacherouter", "peers", "--ours", "/nonexistent/router")
	f("there is no load and no contender", "matrix", "--only", "nosuchload")
	f("there is no dimension", "scale", "--only", "nosuchdimension")
	f("cannot start cacherouter", "protocols", "--router", "/nonexistent/router")
	f("cannot use certificate", "echo", "--cert", "/nonexistent", "--key", "/nonexistent")
	f("udp", "run", "--protocol", "udp")
	f("there is no mix", "run", "--mix", "nosuch")
	f(`"5"`, "run", "--origin", "5")
	f(`"zipf:x"`, "run", "--target", down, "--choose", "zipf:x")
	f("gomemcache speaks text", "run", "--target", down, "--client", "gomemcache", "--protocol", "meta")
	f("cannot ask "+down, "run", "--target", memcachedtest.Start(t).Addr(), "--servers", down)
	f("cannot write the page", "run", "--target", memcachedtest.Start(t).Addr(), "-n", "1", "--html", "/nonexistent/page")
}

func TestInterruptPrintsWhatWasMeasured(t *testing.T) {
	server := memcachedtest.Start(t)
	c := command(t, "run", "--target", server.Addr(), "-d", "1h", "--keys", "100")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); server.Stat("cmd_get") < 100; {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the load does not reach the server")
		}
	}
	c.Process.Signal(os.Interrupt)
	err := c.Wait()
	if err == nil || !strings.Contains(out.String(), "interrupted; this is what was measured") {
		t.Errorf("%v\n%s", err, &out)
	}
	gets := fmt.Sprintf(" %d gets,", server.Stat("cmd_get"))
	if !strings.Contains(out.String(), gets) || !strings.Contains(out.String(), "0 unanswered") {
		t.Errorf("output does not say%s as the server does:\n%s", gets, &out)
	}
}

// lines collects output and tells of each write.
type lines struct {
	mu    sync.Mutex // guards all
	all   bytes.Buffer
	wrote chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// await waits until the output has text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(60 * time.Second)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.wrote:
		case <-late:
			t.Fatalf("output does not say %q in time:\n%s", text, l)
		}
	}
}

func TestInterruptedComparisonPrintsAndLeavesNoProcess(t *testing.T) {
	memcachedtest.Need(t, "memcached")
	memcachedtest.Need(t, "nutcracker")
	c := command(t, "peers", "--ours", "nutcracker", "--pairs", "1000", "-d", "20ms", "--warmup", "0s", "--pin", "none")
	out, says := &bytes.Buffer{}, &lines{wrote: make(chan struct{}, 1)}
	c.Stdout, c.Stderr = out, says
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	says.await(t, "single: pair 3 of 1000")
	children := childrenOf(t, c.Process.Pid)
	if len(children) != 6 {
		t.Errorf("%d children, want four servers and two proxies", len(children))
	}
	c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err == nil || !strings.Contains(says.String(), "interrupted") {
		t.Errorf("%v\n%s", err, says)
	}
	if !strings.Contains(out.String(), "cpu, 50 conns, pipeline 1") {
		t.Errorf("nothing was printed:\n%s", out)
	}
	for _, pid := range children {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("process %d is left", pid)
		}
	}
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for in := bytes.NewReader(text); ; {
			var child int
			if _, err := fmt.Fscan(in, &child); err == io.EOF {
				break
			}
			all = append(all, child)
		}
	}
	return all
}
