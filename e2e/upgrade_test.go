//go:build linux

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cacherouter/internal/memcachedtest"
)

var upgrades = flag.Int("upgrades", 4, "how often a router is replaced under load")

// lineage is a router process and those that have taken its place.
type lineage struct {
	*router
	pid, generations int
}

// startLineage starts a router by a program of its own, which a test may replace.
func startLineage(t *testing.T, args ...string) *lineage {
	t.Helper()
	binary, err := raceBinary()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "cacherouter")
	if err := os.Link(binary, program); err != nil {
		t.Fatal(err)
	}
	r := serve(t, exec.Command(program, slices.Concat(serveArgs, []string{"--listen", "127.0.0.1:0"}, args)...))
	l := &lineage{r, r.cmd.Process.Pid, 0}
	t.Cleanup(func() { l.signalLast(syscall.SIGTERM) })
	return l
}

// signalLast sends a signal to the process that serves now.
func (l *lineage) signalLast(sig syscall.Signal) {
	if err := syscall.Kill(l.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		l.tb.Errorf("cannot send %v to process %d: %v", sig, l.pid, err)
	}
}

// upgrade has the process replaced, and returns when the old one is gone.
func (l *lineage) upgrade() {
	l.tb.Helper()
	l.signalLast(syscall.SIGUSR2)
	l.generations++
	old := l.pid
	started := regexp.MustCompile(`msg="a new process is to take over" pid=(\d+)`)
	waitFor(l.tb, fmt.Sprintf("upgrade %d", l.generations), func() error {
		log := l.log.String()
		if n := strings.Count(log, "msg=replaced"); n < l.generations {
			return fmt.Errorf("%d so far: %s", n, log[max(0, len(log)-2000):])
		}
		if n := strings.Count(log, `msg="clients taken over from the old process"`); n < l.generations {
			return fmt.Errorf("clients were taken over %d times so far", n)
		}
		all := started.FindAllStringSubmatch(log, -1)
		l.pid, _ = strconv.Atoi(all[len(all)-1][1])
		return nil
	})
	waitFor(l.tb, "the old process to end", func() error { return ended(old) })
}

// ended reports whether a process is gone, or waits only for its parent to hear of that.
func ended(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		return fmt.Errorf("process %d: %s", pid, stat)
	}
	return nil
}

// TestUpgradeUnderLoad replaces a router over and over while clients work, which keep their connections: no request
// may fail. Another router sees that it goes and comes.
func TestUpgradeUnderLoad(t *testing.T) {
	backends := memcachedtest.Addrs(memcachedtest.StartN(t, 3))
	gossip, other := memcachedtest.Reserve(t), memcachedtest.Reserve(t)
	config := func(name, bind, join string) string {
		path := filepath.Join(t.TempDir(), name+".yaml")
		text := fmt.Sprintf("name: %s\ngossip: {bind: %q, join: [%q]}\npool:\n  timeout: 15s\n  connect_timeout: 15s\n  servers: [%s]\n",
			name, bind, join, strings.Join(backends, ", "))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := startLineage(t, "--config", config("first", gossip, other), "--engine", *engine)
	second := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", config("second", other, gossip))
	second.waitLog(`msg="router joined" router=first`)
	l := startLoad(t, r.addr, 6)
	for range *upgrades {
		l.progress(300)
		r.upgrade()
	}
	l.progress(300)
	if done, failed := l.finish(); failed != 0 {
		t.Errorf("%d requests failed in %d upgrades, %d went well", failed, *upgrades, done)
	}
	log := r.log.String()
	if strings.Contains(log, "lost") {
		t.Errorf("clients were lost:\n%s", log)
	}
	if n := strings.Count(log, "clients=6"); n != 2**upgrades { // each process says so of those it gives, or takes
		t.Errorf("%d times all 6 clients moved, want %d:\n%s", n, 2**upgrades, log)
	}
	waitFor(t, "the other router to see the last one", func() error {
		if joined := strings.Count(second.log.String(), `msg="router joined" router=first`); joined < 2 {
			return fmt.Errorf("it has joined %d times", joined)
		}
		return nil
	})
}

// TestUpgradeToAnotherEngine replaces a router by one that serves sockets in another way, there and back, while clients
// work, and one takes all that time for a request.
func TestUpgradeToAnotherEngine(t *testing.T) {
	backends := memcachedtest.Addrs(memcachedtest.StartN(t, 3))
	path := filepath.Join(t.TempDir(), "cacherouter.yaml")
	become := func(engine string) {
		t.Helper()
		text := fmt.Sprintf("engine: %s\npool:\n  timeout: 15s\n  connect_timeout: 15s\n  servers: [%s]\n", engine, strings.Join(backends, ", "))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	engines := []string{"epoll", "uring", "epoll", "uring", "uring"}
	become(engines[0])
	r := startLineage(t, "--config", path)
	l := startLoad(t, r.addr, 6)
	const value = "of which every process gets a piece"
	slow := connect(t, r.addr)
	say := func(text string) {
		t.Helper()
		if err := slow.send(text); err != nil {
			t.Fatal(err)
		}
	}
	say(fmt.Sprintf("set slow 0 0 %d\r\n", len(value)))
	piece := len(value) / len(engines)
	for i, engine := range engines[1:] {
		l.progress(100)
		say(value[i*piece : (i+1)*piece])
		become(engine)
		r.upgrade()
	}
	l.progress(100)
	say(value[(len(engines)-1)*piece:] + "\r\n")
	if line, err := slow.line(); line != "STORED" {
		t.Errorf("the slow client was answered %q, %v", line, err)
	}
	slow.mustGet(t, "slow", value)
	if done, failed := l.finish(); failed != 0 {
		t.Errorf("%d requests failed, %d went well", failed, done)
	}
	log := r.log.String()
	if n := strings.Count(log, "clients=7"); n != 2*r.generations {
		t.Errorf("%d times all 7 clients moved, want %d:\n%s", n, 2*r.generations, log)
	}
	made := regexp.MustCompile(`msg="event loops made" loops=\d+ engine=(\w+)`).FindAllStringSubmatch(log, -1)
	if len(made) != len(engines) {
		t.Fatalf("%d processes said which engine they have:\n%s", len(made), log)
	}
	for i, m := range made {
		if m[1] != engines[i] {
			t.Logf("process %d is on %s, as %s is not to be had here", i, m[1], engines[i])
		}
	}
}

// TestFailedUpgradeChangesNothing: a new process that cannot start, or whose configuration is bad, leaves the old one
// as it was.
func TestFailedUpgradeChangesNothing(t *testing.T) {
	server := memcachedtest.Start(t)
	path := configFile(t, []string{server.Addr()}, "timeout: 15s", "connect_timeout: 15s")
	r := startLineage(t, "--config", path, "--engine", *engine)
	c := connect(t, r.addr)
	c.mustSet(t, "k", "v")
	failed := func(n int) {
		t.Helper()
		r.signalLast(syscall.SIGUSR2)
		waitFor(t, "the failure", func() error {
			if got := strings.Count(r.log.String(), `msg="upgrade failed, this process goes on"`); got < n {
				return fmt.Errorf("%d failures so far", got)
			}
			return nil
		})
		c.mustGet(t, "k", "v")
		connect(t, r.addr).mustGet(t, "k", "v")
	}
	if err := os.WriteFile(path, []byte("nosuchfield: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	failed(1)
	program := r.cmd.Path
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	failed(2)
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	failed(3)
	if log := r.log.String(); !strings.Contains(log, "exit status 3") || !strings.Contains(log, "nosuchfield") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// TestSocketActivation: what systemd listens on is served, also by who connected before there was a router, and after
// an upgrade.
func TestSocketActivation(t *testing.T) {
	server := memcachedtest.Start(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	defer f.Close()
	early := connect(t, addr)
	program, err := raceBinary()
	if err != nil {
		t.Fatal(err)
	}
	// Systemd says for which process the sockets are; so does a shell that becomes it.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh", program, "serve", "--admin", "127.0.0.1:0",
		"--listen", addr, "--config", configFile(t, []string{server.Addr()}))
	cmd.ExtraFiles = []*os.File{f}
	r := serve(t, cmd)
	l := &lineage{r, r.cmd.Process.Pid, 0}
	t.Cleanup(func() { l.signalLast(syscall.SIGTERM) })
	early.mustSet(t, "k", "v")
	l.upgrade()
	early.mustGet(t, "k", "v")
	connect(t, addr).mustGet(t, "k", "v")
}
