package kubernetes

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// binary builds the router.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cacherouter")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-pgo=off", "-o", path, "./cmd/cacherouter")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The router takes each configuration, and each command line with it: it finds the three servers that the
// cluster's DNS tells of, by the names of their pods, and ends in order when its own pod does.
func TestRouterFindsTheServers(t *testing.T) {
	router := binary(t)
	dns := clusterDNS(t, "_memcache._tcp", "memcached.default.svc.cluster.local")
	for _, file := range files[1:] {
		m := read(t, file)
		config := filepath.Join(t.TempDir(), "cacherouter.yml")
		text := m.configs[0].Data["cacherouter.yml"]
		write(t, config, text)
		if out, err := exec.Command(router, "check", "--config", config).CombinedOutput(); err != nil || !strings.Contains(string(out), "ok, servers are found by pool.srv") {
			t.Errorf("%s: %v, %s", file, err, out)
		}
		// Here it shares a host with others. The section of the pool is the last one.
		text = regexp.MustCompile(`(listen: \["|admin: )[0-9.]+:\d+`).ReplaceAllString(text, "${1}127.0.0.1:0")
		text = strings.Replace(text, "drain_delay: 10s", "drain_delay: 0s", 1)
		write(t, config, text+"  resolver: "+dns+"\n")
		c := m.pods[0].containers()[0]
		replace := strings.NewReplacer("$(POD_NAME)", "r0", "$(POD_IP):11313", "127.0.0.1:0", "/etc/cacherouter/cacherouter.yml", config)
		var args []string
		for _, arg := range c.Args {
			args = append(args, replace.Replace(arg))
		}
		if c.Name != "cacherouter" || strings.Contains(strings.Join(args, " "), "$") {
			t.Errorf("%s: container %s gets %q", file, c.Name, args)
		}
		serve(t, exec.Command(router, args...))
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// serve runs a router until it serves.
func serve(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer overdue.Stop()
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "msg=listening") {
			cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	err = cmd.Wait()
	if text := said.String(); err != nil || !strings.Contains(text, "msg=routing servers=3") || !strings.Contains(text, "msg=drained") {
		t.Errorf("%q: %v, it said\n%s", cmd.Args, err, text)
	}
}

// A pod has time to drain before it is killed.
func TestPodsMayDrain(t *testing.T) {
	m := read(t, "tier.yml")
	var c struct {
		Delay   time.Duration `yaml:"drain_delay"`
		Timeout time.Duration `yaml:"drain_timeout"`
	}
	if err := yaml.Unmarshal([]byte(m.configs[0].Data["cacherouter.yml"]), &c); err != nil {
		t.Fatal(err)
	}
	const goodbye = 3 * time.Second
	grace := time.Duration(*m.pods[0].template.Spec.TerminationGracePeriodSeconds) * time.Second
	if c.Delay == 0 || c.Timeout == 0 || grace < c.Delay+c.Timeout+goodbye {
		t.Errorf("pods are killed after %v, and drain for %v and %v", grace, c.Delay, c.Timeout)
	}
}
