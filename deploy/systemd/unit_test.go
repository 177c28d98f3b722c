package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/built"
	"cacherouter/internal/memcachedtest"

	"go.yaml.in/yaml/v3"
)

const installed = "/usr/local/bin/cacherouter"

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

var build = built.Router("cacherouter")

func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// systemd knows every setting, and finds what the unit runs. It rates the hardening from 0, which is best, to 10.
func TestUnitIsSound(t *testing.T) {
	analyze := memcachedtest.Need(t, "systemd-analyze")
	text := strings.ReplaceAll(read(t, "cacherouter.service"), installed, binary(t))
	for name, dropIn := range map[string]string{"as it is": "", "with a unix socket": read(t, "unix-socket.conf")} {
		t.Run(name, func(t *testing.T) {
			unit := filepath.Join(t.TempDir(), "cacherouter.service")
			// A later section of the same name adds to the first, as a drop-in does.
			if err := os.WriteFile(unit, []byte(text+"\n"+dropIn), 0o644); err != nil {
				t.Fatal(err)
			}
			// A manual that is not installed here would be a fault.
			if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("verify: %v\n%s", err, out)
			}
			const most = "15" // tenths
			if out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold="+most, unit).CombinedOutput(); err != nil {
				t.Errorf("security: %v\n%s", err, out)
			}
		})
	}
}

// callsIn adds the calls of a group of systemd's, which may name others, to those that are allowed, or takes
// them away.
func callsIn(t *testing.T, analyze, group string, allowed map[string]bool, allow bool) {
	t.Helper()
	out, err := exec.Command(analyze, "syscall-filter", "--no-pager", group).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(string(out), "")) {
		switch {
		case name == group:
		case strings.HasPrefix(name, "@"):
			callsIn(t, analyze, name, allowed, allow)
		default:
			allowed[name] = allow
		}
	}
}

// The filter lets the router use io_uring, epoll, and raise its limits.
func TestFilterLetsEnginesThrough(t *testing.T) {
	analyze := memcachedtest.Need(t, "systemd-analyze")
	allowed := make(map[string]bool)
	for _, filter := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(@\S+)$`).FindAllStringSubmatch(read(t, "cacherouter.service"), -1) {
		callsIn(t, analyze, filter[2], allowed, filter[1] == "")
	}
	for _, call := range []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "epoll_pwait", "prlimit64"} {
		if !allowed[call] {
			t.Errorf("%s is not allowed", call)
		}
	}
	if len(allowed) < 100 || allowed["reboot"] || allowed["chroot"] {
		t.Errorf("%d calls are known, reboot %v, chroot %v", len(allowed), allowed["reboot"], allowed["chroot"])
	}
}

// Both configurations of the listeners are taken, and the unit gives a router the time that it needs to drain.
func TestConfiguration(t *testing.T) {
	router, text := binary(t), read(t, "cacherouter.yml")
	both := strings.Replace(text, "# - unix:", "- unix:", 1)
	if both == text {
		t.Fatal("the unix socket is not there to be turned on")
	}
	for _, text := range []string{text, both, read(t, "../debian/cacherouter.yml")} {
		file := filepath.Join(t.TempDir(), "cacherouter.yml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(router, "check", "--config", file).CombinedOutput(); err != nil {
			t.Errorf("check: %v, %s", err, out)
		}
	}
	var c struct {
		Delay   time.Duration `yaml:"drain_delay"`
		Timeout time.Duration `yaml:"drain_timeout"`
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(read(t, "cacherouter.service"))
	if found == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	const goodbye = 3 * time.Second
	if stop, err := time.ParseDuration(found[1]); err != nil || c.Delay == 0 || stop < c.Delay+c.Timeout+goodbye {
		t.Errorf("killed after %v (%v), drains for %v and %v", stop, err, c.Delay, c.Timeout)
	}
}
