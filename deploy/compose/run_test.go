package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/admin"
	"cacherouter/internal/memcachedtest"
)

// longestFault bounds how long a fault of 3 s takes, with an engine that has much to do.
const longestFault = 20 * time.Second

// patience bounds each thing that is waited for; it is long because machines may be slow and busy.
const patience = 4 * time.Minute

// project is docker-compose.yml as it runs: with names, networks and ports of its own.
type project struct {
	t    *testing.T
	tool []string // docker-compose, or docker compose
	env  []string
}

// start builds the images and starts what is started by default.
func start(t *testing.T, variables ...string) *project {
	t.Helper()
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		t.Skipf("NOT RUN, only read: no Docker engine answers: %v, %s", err, out)
	}
	p := &project{t: t, tool: []string{"docker", "compose"}}
	if exec.Command("docker", "compose", "version").Run() != nil {
		p.tool = []string{memcachedtest.Need(t, "docker-compose")}
	}
	name := fmt.Sprintf("cacherouter-test-%d", os.Getpid())
	images := []string{name + "-router", name + "-loadtest"}
	p.env = append(os.Environ(), "COMPOSE_PROJECT_NAME="+name, "ROUTER_IMAGE="+images[0], "LOADTEST_IMAGE="+images[1],
		fmt.Sprintf("GOSSIP_NET=10.%d.%d", 224+rand.IntN(24), rand.IntN(250)),
		"ROUTER_PORT=", "ADMIN_PORT=", "PROMETHEUS_PORT=") // whichever are free
	p.env = append(p.env, variables...)
	p.must("scripts/stand-in-images.sh")
	t.Cleanup(func() { p.stop(images) })
	p.must(p.with("--profile", "loadtest", "build", "-q")...)
	p.must(p.with("up", "-d")...)
	return p
}

// stop ends and removes everything, and shows what the routers said if the test has failed.
func (p *project) stop(images []string) {
	if p.t.Failed() {
		p.t.Logf("%s", p.must(p.with("logs", "--no-color", "router-1", "router-2")...))
	}
	p.must(p.with("--profile", "loadtest", "--profile", "chaos", "down", "-v", "-t", "5")...)
	p.must(append([]string{"docker", "rmi"}, images...)...)
}

func (p *project) with(args ...string) []string {
	return append(p.tool[:len(p.tool):len(p.tool)], args...)
}

// run runs a command in the root of the repository.
func (p *project) run(command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = root, p.env
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	p.t.Logf("%.1f s: %s", time.Since(begin).Seconds(), strings.Join(command, " "))
	return string(out), err
}

// must runs a command that has to do.
func (p *project) must(command ...string) string {
	p.t.Helper()
	out, err := p.run(command...)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

// eventually waits until something is as it has to be.
func (p *project) eventually(what string, check func() error) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) { // between two looks
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("waited %v in vain until %s: %v", patience, what, err)
		}
	}
}

// query asks Prometheus for the figures of an expression, by router.
func (p *project) query(expr string) (map[string]string, error) {
	at := strings.TrimSpace(p.must(p.with("port", "prometheus", "9090")...))
	resp, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric struct{ Instance string }
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, fmt.Errorf("%w: %.200s", err, b)
	}
	figures := map[string]string{}
	for _, r := range answer.Data.Result {
		figures[r.Metric.Instance] = fmt.Sprint(r.Value[1])
	}
	return figures, nil
}

// becomes waits until an expression has the same figure at both routers.
func (p *project) becomes(expr, want string) {
	p.t.Helper()
	p.eventually(expr+" is "+want, func() error {
		got, err := p.query(expr)
		if err == nil && (len(got) != 2 || got["router-1:11312"] != want || got["router-2:11312"] != want) {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
}

// Everything comes up, and while containers are killed, paused and cut off, clients see no wrong and no stale
// value, and errors only for as long as the routers need; afterwards all is as before.
func TestRun(t *testing.T) {
	p := start(t, "LOADTEST_FOR=1h")
	p.becomes(`up{job="cacherouter"}`, "1")
	p.becomes(`sum by (instance) (cacherouter_server_status{status="in"})`, "3")
	p.lockedUp("router-1")
	report := p.loadDuring(p.faults)
	t.Logf("%s", report)
	for _, goal := range []string{"requests were answered", "values that are stale or wrong", "reads failed", "writes failed"} {
		if !strings.Contains(report, "PASS  "+goal) && !(goal == "writes failed" && p.excused(report)) {
			t.Errorf("no PASS of: %s", goal)
		}
	}
	if !strings.Contains(report, "failed at ") {
		t.Error("nothing failed: were there any faults?")
	}
	p.becomes(`up{job="cacherouter"}`, "1")
	p.becomes(`sum by (instance) (cacherouter_server_status{status="in"})`, "3")
}

// lockedUp wants a container to be healthy by its own check, not root, with nothing to write to and no shell.
func (p *project) lockedUp(service string) {
	p.t.Helper()
	id := strings.TrimSpace(p.must(p.with("ps", "-q", service)...))
	const format = "{{.State.Health.Status}}, user {{.Config.User}}, read-only {{.HostConfig.ReadonlyRootfs}}"
	p.eventually(service+" is healthy", func() error {
		if got := strings.TrimSpace(p.must("docker", "inspect", "-f", format, id)); got != "healthy, user 65532:65532, read-only true" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	if out, err := p.run("docker", "exec", id, "sh", "-c", "true"); err == nil || !strings.Contains(out, "executable file not found") {
		p.t.Errorf("there is a shell: %v, %s", err, out)
	}
}

// loadDuring runs the load test while something is done, and returns all that it says. It is stopped as with
// Ctrl-C: how long things take depends on the machine.
func (p *project) loadDuring(do func()) string {
	p.t.Helper()
	p.must(p.with("--profile", "loadtest", "up", "-d", "loadtest")...)
	said := func() string { return p.must(p.with("logs", "--no-color", "loadtest")...) }
	p.eventually("the load test is under way", func() error {
		if text := said(); !strings.Contains(text, "requests answered") {
			return errors.New(text)
		}
		return nil
	})
	do()
	p.must(p.with("stop", "-t", "60", "loadtest")...)
	return said()
}

// faults makes those of the compose file, each when the routers have got over the one before: how long a fault
// lasts depends on the machine, and routers do not fail two of three servers over at a time.
func (p *project) faults() {
	p.t.Helper()
	list := slices.DeleteFunc(compose(p.t).Services["chaos"].Command, func(arg string) bool { return !strings.Contains(arg, "=") || strings.HasPrefix(arg, "--") })
	if len(list) != 5 {
		p.t.Fatalf("the compose file has the faults %q", list)
	}
	for _, fault := range list {
		said := p.must(p.with("--profile", "chaos", "run", "--rm", "--no-deps", "chaos", "chaos", "--first=1s", "--hold=3s", "--rest=0s", fault)...)
		p.t.Logf("%s", said)
		if strings.Count(said, "is over") != 1 {
			p.t.Errorf("%s was not made and taken back", fault)
		}
		p.eventually("the routers have got over "+fault, p.recovered)
	}
}

// recovered says what keeps the routers from being as they were: that they agree, and every server is in.
func (p *project) recovered() error {
	m, err := admin.Client{Address: strings.TrimSpace(p.must(p.with("port", "router-1", "11312")...))}.Members(p.t.Context())
	if err != nil {
		return err
	}
	if !m.Agreed || slices.ContainsFunc(m.Servers, func(s admin.Member) bool { return s.Status != "in" }) {
		return fmt.Errorf("%+v", m)
	}
	return nil
}

// excused reports whether writes failed as they may where the machine is too busy: a router whose loop has
// stood still does not trust what it sees, so it does not agree that a server is gone, and writes to that are
// refused for as long as it is.
func (p *project) excused(report string) bool {
	p.t.Helper()
	logs := p.must(p.with("logs", "--no-color", "router-1", "router-2")...)
	const starts = 3 // router-1, and router-2 twice
	if strings.Count(logs, "WARN msg=\"this router does not trust its own observations\"") <= starts {
		return false
	}
	found := regexp.MustCompile(`FAIL  writes failed at most for +(\S+)`).FindStringSubmatch(report)
	if found == nil {
		return false
	}
	took, err := time.ParseDuration(found[1])
	p.t.Logf("the machine is too busy for routers to trust themselves; writes failed for %v", took)
	return err == nil && took < longestFault
}
