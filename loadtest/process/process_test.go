//go:build linux

package process

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cacherouter/internal/memcachedtest"
)

// shell is a child that runs a script.
func shell(script string) Command {
	return Command{Name: "script", Path: "sh", Args: []string{"-c", script}}
}

func start(t *testing.T, c Command) *Process {
	t.Helper()
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStopEndsTheChildAndReturnsWhenItIsGone(t *testing.T) {
	f := func(name, script string) {
		t.Helper()
		c := shell(script)
		c.Ready = func(line string) bool { return line == "ready" }
		p := start(t, c)
		if gone(p.ID()) {
			t.Errorf("%s: child is gone before it was stopped", name)
		}
		p.Stop()
		if !gone(p.ID()) {
			t.Errorf("%s: child %d lives on", name, p.ID())
		}
		p.Stop()
	}
	f("obedient", "echo starting; echo ready; exec sleep 60")
	f("stubborn", "trap '' TERM; echo ready; while :; do sleep 1 & wait; done")
}

func TestStartSaysWhyItFailed(t *testing.T) {
	f := func(c Command, want ...string) {
		t.Helper()
		_, err := Start(t.Context(), c)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error is %v, want one with %q", err, w)
			}
		}
	}
	ended := shell("echo bad flag >&2; exit 1")
	ended.Ready = func(string) bool { return false }
	f(ended, "cannot start script", "it ended", "bad flag")
	f(Command{Name: "ghost", Path: "/nonexistent/ghost"}, "cannot start ghost", "no such file")
}

func TestDualIsReadyWhenBothAddressesAreTold(t *testing.T) {
	const script = "echo msg=starting; echo 'level=INFO msg=listening network=tcp addr=127.0.0.1:2 tls=true';" +
		"echo 'msg=\"admin listening\" addr=127.0.0.1:3'; echo 'msg=listening network=tcp addr=127.0.0.1:1 tls=false'; exec sleep 60"
	d, err := StartDual(t.Context(), shell(script))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	if d.Plain != "127.0.0.1:1" || d.Secure != "127.0.0.1:2" {
		t.Errorf("it listens at %q and %q", d.Plain, d.Secure)
	}
	if _, err := StartDual(t.Context(), shell("echo msg=listening network=tcp addr=127.0.0.1:1 tls=false")); err == nil {
		t.Error("one address is enough")
	}
}

func TestLayoutPutsProcessesOnTheirProcessors(t *testing.T) {
	before, err := Allowed(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if before == Only(0) || runtime.NumCPU() < 2 {
		t.Skip("the split layout needs two processors")
	}
	f := func(l Layout, measured, others Processors) {
		t.Helper()
		a, b := start(t, shell("exec sleep 60")), start(t, shell("exec sleep 60"))
		undo, err := l.Apply([]int{a.ID()}, []int{b.ID()})
		if err != nil {
			t.Error(err)
		}
		for pid, want := range map[int]Processors{a.ID(): measured, b.ID(): others, os.Getpid(): others} {
			if got, err := Allowed(pid); err != nil || got != want {
				t.Errorf("%s: process %d may run on %v, %v; want %v", l, pid, got, err, want)
			}
		}
		undo()
		if got, err := Allowed(os.Getpid()); err != nil || got != before {
			t.Errorf("%s: this process is left on %v, %v", l, got, err)
		}
	}
	f(Split, Only(0), Only(1))
	f(Shared, Only(0), Only(0))
	f(Free, before, before)
	gone := start(t, shell(":"))
	gone.Stop()
	undo, err := Shared.Apply([]int{gone.ID()}, nil)
	if undo(); err == nil {
		t.Error("a process that is gone was laid out")
	}
}

func TestPausedChildGoesOnAndCanBeStopped(t *testing.T) {
	lines := make(chan string, 100)
	c := shell("while :; do echo beat; sleep 0.01; done")
	c.Line = func(line string) {
		select {
		case lines <- line:
		default:
		}
	}
	p := start(t, c)
	<-lines
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	for len(lines) > 0 {
		<-lines
	}
	<-lines // it beats again
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	if !gone(p.ID()) {
		t.Error("a paused child outlives Stop")
	}
	if err := p.Pause(); err == nil {
		t.Error("a child that is gone was paused")
	}
}

func TestKillReturnsWhenTheChildIsGone(t *testing.T) {
	p := start(t, shell("trap '' TERM; exec sleep 60"))
	p.Kill()
	select {
	case <-p.Ended():
	default:
		t.Error("it is not known to have ended")
	}
	if !gone(p.ID()) {
		t.Error("child lives on")
	}
}

func TestChildRunsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		memcachedtest.Missing(t, "only root starts processes of other users")
	}
	seen := make(chan string, 1)
	c := shell("id -u")
	c.User, c.Line = 61234, func(line string) { seen <- line }
	start(t, c)
	if got := <-seen; got != "61234" {
		t.Errorf("it runs as %s", got)
	}
}

func TestEndOfContextEndsTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := shell("echo one; exec sleep 60")
	c.Ready = func(string) bool { cancel(); return false }
	if _, err := Start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestMeterSeesTheProcessorTimeThatAChildUses(t *testing.T) {
	busy := shell("echo ready; while :; do :; done")
	busy.Ready = func(line string) bool { return line == "ready" }
	p := start(t, busy)
	m, err := StartMeter(p.ID())
	if err != nil {
		t.Fatal(err)
	}
	var c Cost
	for begin := time.Now(); c.CPU < 20*time.Millisecond; {
		if c, err = m.Spent(); err != nil {
			t.Fatal(err)
		}
		if wall := time.Since(begin); c.CPU > wall+time.Second || wall > 30*time.Second {
			t.Fatalf("one thread used %v in %v", c.CPU, wall)
		}
	}
}

func TestMeterAgreesWithTheKernelsAccountOfThisProcess(t *testing.T) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	used, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	account := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if diff := used - account; diff < -time.Second || diff > time.Second {
		t.Errorf("clock says %v, getrusage %v", used, account)
	}
}

func TestResidentGrowsWithTheMemoryInUse(t *testing.T) {
	before, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	used, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(used)
	after, err := Resident(os.Getpid())
	if err != nil || after < before+size/2 {
		t.Errorf("%d bytes before, %d after using %d more, %v", before, after, size, err)
	}
}

func TestPinBindsAllThreads(t *testing.T) {
	server, err := StartMemcached(t.Context(), t.TempDir(), 4)
	if err != nil {
		notInstalled(t, err)
	}
	defer server.Stop()
	if err := Pin(server.ID(), Only(0)); err != nil {
		t.Fatal(err)
	}
	threads, err := tasks(server.ID())
	if err != nil || len(threads) < 4 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread + "/status")
		if err != nil || !strings.Contains(string(text), "Cpus_allowed_list:\t0\n") {
			t.Errorf("%s is not bound to processor 0: %v", thread, err)
		}
	}
}

func TestAllowedGivesBackWhatPinSet(t *testing.T) {
	p := start(t, shell("exec sleep 60"))
	before, err := Allowed(p.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Processors{Only(0), before} {
		if err := Pin(p.ID(), want); err != nil {
			t.Fatal(err)
		}
		if got, err := Allowed(p.ID()); err != nil || got != want {
			t.Errorf("allowed are %v, %v; want %v", got, err, want)
		}
	}
}

func TestMeasuringAProcessThatIsGoneIsAnError(t *testing.T) {
	p := start(t, shell(":"))
	p.Stop()
	if _, err := StartMeter(p.ID()); err == nil {
		t.Error("a meter was started on a process that is gone")
	}
	if _, err := Resident(p.ID()); err == nil {
		t.Error("a process that is gone has memory")
	}
	if err := Pin(p.ID(), Only(0)); err == nil {
		t.Error("a process that is gone was pinned")
	}
}

func TestNutcrackerServes(t *testing.T) {
	server, err := StartMemcached(t.Context(), t.TempDir(), 1)
	if err != nil {
		notInstalled(t, err)
	}
	defer server.Stop()
	proxy, err := StartNutcracker(t.Context(), t.TempDir(), []string{server.Addr})
	if err != nil {
		notInstalled(t, err)
	}
	defer proxy.Stop()
	if !Answers(server.Addr) || !Answers(proxy.Addr) {
		t.Errorf("nobody serves at %s or %s", server.Addr, proxy.Addr)
	}
}

// notInstalled skips a test for want of a program; any other error fails it.
func notInstalled(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrNotInstalled) {
		t.Fatal(err)
	}
	memcachedtest.Missing(t, err.Error())
}
