package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/built"
	"cacherouter/internal/memcachedtest"
)

// patience bounds waits for what must happen; it is long because machines may be slow and busy.
const patience = 30 * time.Second

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// raceBinary and plainBinary build the router on first use, with and without the race detector.
var (
	raceBinary  = built.Router("cacherouter-race", "-race")
	plainBinary = built.Router("cacherouter")
)

// router is one running router process.
type router struct {
	tb    testing.TB
	cmd   *exec.Cmd
	addr  string // of its first TCP listener
	admin string
	log   memcachedtest.Output
	done  chan struct{} // closed when the process has been waited for; cmd.ProcessState is set then
	once  sync.Once     // guards SIGTERM: a second one would cut the drain short

	killed bool // by the test, after which nothing more is expected of it
}

// startRouter runs `cacherouter serve` in front of the backends, with more arguments if need be, and returns when it
// listens. At the end of the test the router must drain and exit with status 0. Its timeouts are far longer than any
// stall of a busy machine, so that a test of answers cannot fail for want of a processor.
func startRouter(tb testing.TB, backends []string, args ...string) *router {
	tb.Helper()
	file := configFile(tb, backends, "timeout: 15s", "connect_timeout: 15s")
	return startServe(tb, raceBinary, append([]string{"--listen", "127.0.0.1:0", "--config", file}, args...)...)
}

// startServe runs `cacherouter serve` with exactly the arguments given besides --admin.
func startServe(tb testing.TB, binary func() (string, error), args ...string) *router {
	tb.Helper()
	return serve(tb, prepare(tb, binary, slices.Concat(serveArgs, []string{"--engine", *engine}, args)...))
}

// engine lets every test of what a router does run on another engine.
var engine = flag.String("engine", "auto", "how routers serve sockets, unless a test says so itself: auto, uring, epoll or portable")

// serveArgs are those that every router has.
var serveArgs = []string{"serve", "--admin", "127.0.0.1:0"}

// serve starts a router and waits until it serves.
func serve(tb testing.TB, cmd *exec.Cmd) *router {
	tb.Helper()
	r := start(tb, cmd)
	r.admin = r.waitLog(`msg="admin listening".* addr=(\S+)`)
	if strings.Contains(strings.Join(cmd.Args, " "), "--listen 127.0.0.1:") {
		r.addr = r.waitLog(listeningTCP)
	}
	return r
}

// listeningTCP matches the log line of a listener for clients and finds its address.
const listeningTCP = `msg=listening .*network=tcp addr=(\S+)`

// startCommand runs the binary with the arguments and does not wait for anything.
func startCommand(tb testing.TB, binary func() (string, error), args ...string) *router {
	tb.Helper()
	return start(tb, prepare(tb, binary, args...))
}

// prepare returns the command that runs the binary with the arguments.
func prepare(tb testing.TB, binary func() (string, error), args ...string) *exec.Cmd {
	tb.Helper()
	path, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	return exec.Command(path, args...)
}

// start starts a command that is a router.
func start(tb testing.TB, cmd *exec.Cmd) *router {
	tb.Helper()
	r := &router{tb: tb, cmd: cmd, done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	r.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=20") // a second by default, at the end of every router
	if err := r.cmd.Start(); err != nil {
		tb.Fatalf("cannot start the router: %v", err)
	}
	go func() {
		defer close(r.done)
		r.cmd.Wait() // the status is judged in stop
	}()
	tb.Cleanup(r.cleanup)
	return r
}

// configFile writes a configuration with the backends and lines more for the pool, and returns its path.
func configFile(tb testing.TB, backends []string, poolLines ...string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "cacherouter.yaml")
	writeConfig(tb, path, backends, poolLines...)
	return path
}

func writeConfig(tb testing.TB, path string, backends []string, poolLines ...string) {
	tb.Helper()
	text := "pool:\n  servers: [" + strings.Join(backends, ", ") + "]\n"
	for _, line := range poolLines {
		text += "  " + line + "\n"
	}
	text += "reload: {max_moved: 1}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// startConfigured starts a router with a configuration file for these backends.
func startConfigured(tb testing.TB, backends []string, poolLines ...string) *router {
	tb.Helper()
	return startServe(tb, raceBinary, "--listen", "127.0.0.1:0", "--config", configFile(tb, backends, poolLines...))
}

// startUnwatched starts a router that leaves keys where they are placed, whatever happens to their servers: for tests
// of what one failure does.
func startUnwatched(tb testing.TB, backends []string, poolLines ...string) *router {
	tb.Helper()
	return startServe(tb, raceBinary, "--no-membership", "--listen", "127.0.0.1:0", "--config", configFile(tb, backends, poolLines...))
}

// waitLog waits for a line of the router's log and returns the pattern's first group.
func (r *router) waitLog(pattern string) string {
	r.tb.Helper()
	re := regexp.MustCompile(pattern)
	var found string
	waitFor(r.tb, "log line "+pattern, func() error {
		if m := re.FindStringSubmatch(r.log.String()); m != nil {
			found = m[len(m)-1]
			return nil
		}
		select {
		case <-r.done:
			r.tb.Fatalf("the router ended early, %v:\n%s", r.cmd.ProcessState, r.log.String())
		default:
		}
		return errors.New(r.log.String())
	})
	return found
}

func (r *router) signal(sig syscall.Signal) {
	r.tb.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.tb.Fatalf("cannot send %v to the router: %v", sig, err)
	}
}

// term asks the router to drain, once.
func (r *router) term() {
	r.once.Do(func() { r.cmd.Process.Signal(syscall.SIGTERM) }) // an error means that it has ended, which stop judges
}

// kill ends the router without warning, as a crash would, and returns when it is gone.
func (r *router) kill() {
	r.cmd.Process.Kill() // an error means that it has ended
	<-r.done
	r.killed = true
}

// stop asks the router to drain, and reports everything that a clean run does not show.
func (r *router) stop() {
	r.tb.Helper()
	if r.killed {
		return
	}
	r.term()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.cmd.Process.Signal(syscall.SIGQUIT) // a goroutine dump for the log
		<-r.done
		r.tb.Errorf("the router did not end within %v of SIGTERM", patience)
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		r.tb.Errorf("the router ended with %v", r.cmd.ProcessState)
	}
	for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
		if strings.Contains(r.log.String(), bad) {
			r.tb.Errorf("the router's log has %q", bad)
		}
	}
}

func (r *router) cleanup() {
	r.stop()
	if !r.tb.Failed() {
		return
	}
	log := r.log.String()
	if len(log) > 20000 {
		log = log[:10000] + "\n…\n" + log[len(log)-10000:]
	}
	r.tb.Logf("the router wrote:\n%s", log)
}

// rss returns the router's resident memory in bytes.
func (r *router) rss() int {
	r.tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		r.tb.Fatalf("cannot read the router's memory: %v", err)
	}
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	fields := strings.Fields(string(rest))
	if len(fields) == 0 {
		r.tb.Fatalf("cannot find VmRSS in %s", text)
	}
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		r.tb.Fatalf("cannot read VmRSS: %v", err)
	}
	return kib << 10
}

// waitFor tries until ready returns nil, and fails the test with its last error when that takes too long.
func waitFor(tb testing.TB, what string, ready func() error) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := ready()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("waited %v in vain for %s: %v", patience, what, err)
		}
		time.Sleep(3 * time.Millisecond) // between two looks, not in place of one
	}
}
