package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// reloaded asks a router to reload, and returns the status and what it says.
func (r *router) reloaded(tb testing.TB, query string) (status int, body string) {
	tb.Helper()
	resp, err := http.Post("http://"+r.admin+"/api/v1/reload?"+query, "", nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// rewrite replaces a file as careful programs do: by another one that is moved over it.
func rewrite(tb testing.TB, file, text string) {
	tb.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		tb.Fatal(err)
	}
}

// reloadTimes is how often TestReloadOfPoolsUnderLoad reloads.
var reloadTimes = flag.Int("reload.times", 24, "reloads under load")

// TestReloadOfPoolsUnderLoad: pools and routes come and go, and pools get other policies, over and
// over, while clients work with the pools that stay. No request fails, and no client
// reads anything but what it has written.
func TestReloadOfPoolsUnderLoad(t *testing.T) {
	servers := memcachedtest.StartN(t, 4, memcachedtest.Steady...)
	list := func(s ...*memcachedtest.Server) string { return strings.Join(memcachedtest.Addrs(s), ", ") }
	config := func(i int) string {
		text := fmt.Sprintf("pools:\n  a:\n    servers: [%s]\n", list(servers[0], servers[1]))
		switch i % 4 { // read when the pool begins
		case 1:
			text += "    timeout: 5s\n"
		case 2:
			text += "    near: {bytes: 1048576, ttl: 1s}\n    coalesce: inflight\n"
		}
		text += fmt.Sprintf("  b: {servers: [%s]}\n", list(servers[2]))
		if i%3 > 0 {
			text += fmt.Sprintf("  c: {servers: [%s]}\n", list(servers[3]))
		}
		text += "routes:\n  - {prefix: \"load:1\", pool: b}\n  - {pool: a}\n"
		if i%3 > 0 {
			text += fmt.Sprintf("  - {prefix: \"c%d:\", pool: c}\n", i)
		}
		return text + "reload: {max_moved: 1}\n"
	}
	file := filepath.Join(t.TempDir(), "router.yml")
	rewrite(t, file, config(0))
	r := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--loops", "2", "--config", file)
	l := startLoad(t, r.addr, 4)
	c := connect(t, r.addr)
	began := time.Now()
	times := *reloadTimes
	for i := 1; i <= times; i++ {
		rewrite(t, file, config(i))
		if status, body := r.reloaded(t, ""); status != 200 || !strings.Contains(body, `"applied"`) {
			t.Fatalf("reload %d: status %d, %s", i, status, body)
		}
		if i%3 > 0 {
			c.mustSet(t, fmt.Sprintf("c%d:k", i), fmt.Sprint(i))
		}
	}
	l.progress(100)
	done, failed := l.finish()
	t.Logf("%d reloads in %v, %d requests", times, time.Since(began).Round(time.Millisecond), done)
	if failed > 0 {
		t.Errorf("%d requests failed, %d went well", failed, done)
	}
	_, metrics, err := r.http("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\ncacherouter_config_last_reload_successful 1\n", fmt.Sprintf("\ncacherouter_config_reloads_total{outcome=\"applied\"} %d\n", times),
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	if n := servers[3].Stat("curr_connections"); n > 2*2+1 { // two loops, and who asks
		t.Errorf("%d connections to a server of a pool that came and went", n)
	}
}

// TestReloadThatMovesTooMuch: it is refused whoever asks, unless it is forced, and can be tried.
func TestReloadThatMovesTooMuch(t *testing.T) {
	servers := memcachedtest.StartN(t, 4, memcachedtest.Steady...)
	file := filepath.Join(t.TempDir(), "router.yml")
	text := twoPools(servers[:2], servers[2:])
	rewrite(t, file, text)
	r := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", file)
	c := connect(t, r.addr)
	c.mustSet(t, "b:k", "v")
	rewrite(t, file, strings.Replace(text, `"b:", pool: b`, `"b:", pool: a`, 1)+"loops: 3\n")

	var report struct {
		Outcome, Error string
		Moved          float64
		Changes        []struct {
			Subject, Change string
			Moved           float64
		}
		Upgrade []string
	}
	status, body := r.reloaded(t, "dry_run=true")
	if err := json.Unmarshal([]byte(body), &report); err != nil || status != 200 {
		t.Fatalf("status %d, %s, %v", status, body, err)
	}
	if report.Outcome != "refused" || report.Moved != 1 || len(report.Changes) != 1 || len(report.Upgrade) != 1 || report.Upgrade[0] != "loops" {
		t.Errorf("a dry run says %+v", report)
	}
	if got := report.Changes[0]; got.Subject != `route for "b:"` || got.Change != "pool a, was b" || got.Moved != 1 {
		t.Errorf("the change is %+v", got)
	}
	r.signal(syscall.SIGHUP)
	r.waitLog(`msg="reload refused".*(route for)`)
	if status, body := r.reloaded(t, ""); status != 422 || !strings.Contains(body, "max_moved") {
		t.Errorf("status %d, %s", status, body)
	}
	c.mustGet(t, "b:k", "v")
	_, state, _ := r.http("/api/v1/reload")
	_, metrics, _ := r.http("/metrics")
	if !strings.Contains(state, "max_moved") || !strings.Contains(metrics, "\ncacherouter_config_last_reload_successful 0\n") {
		t.Errorf("a refused reload is not shown: %s", state)
	}
	if status, body := r.reloaded(t, "force=true"); status != 200 {
		t.Errorf("status %d, %s", status, body)
	}
	c.mustMiss(t, "b:k")
}

// TestReloadByFile: a file that is watched is taken over when it has changed; one that is half
// written, or that is gone, leaves the configuration before in force, and says so once.
func TestReloadByFile(t *testing.T) {
	t.Parallel() // it waits more than it works
	servers := memcachedtest.StartN(t, 3, memcachedtest.Steady...)
	file := filepath.Join(t.TempDir(), "router.yml")
	text := twoPools(servers[:1], servers[1:2]) + "reload: {watch: true, max_moved: 1}\n"
	rewrite(t, file, text)
	r := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", file)
	c := connect(t, r.addr)
	c.mustSet(t, "b:k", "v")
	if err := os.WriteFile(file, []byte(text[:len(text)/2]), 0o644); err != nil {
		t.Fatal(err)
	}
	r.waitLog(`msg="reload refused".*(router.yml)`)
	c.mustGet(t, "b:k", "v")
	next := strings.Replace(text, "s0="+servers[1].Addr(), "s0="+servers[2].Addr(), 1)
	rewrite(t, file, next)
	r.waitLog(`msg="configuration changes".*(server s0 at)`)
	waitFor(t, "the server to be another one", func() error {
		if values, err := c.get("b:k"); err != nil || len(values) > 0 {
			return fmt.Errorf("%v, %v", values, err)
		}
		return nil
	})
	if n := strings.Count(r.log.String(), `msg="reload refused"`); n != 1 {
		t.Errorf("a file that was refused once is refused %d times", n)
	}
}

// TestReloadOfPoolsInAFleet: routers that get a pool more, one after the other, agree about it, and
// about the others as before when it is gone again. Its servers stand in a file of their own.
func TestReloadOfPoolsInAFleet(t *testing.T) {
	t.Parallel() // it waits more than it works
	servers := memcachedtest.StartN(t, 5, memcachedtest.Steady...)
	list := filepath.Join(t.TempDir(), "servers")
	rewrite(t, list, strings.Join(named(servers[3:]), "\n")+"\n")
	gossip := memcachedtest.Reserve(t)
	text := twoPools(servers[:2], servers[2:3]) + "reload: {max_moved: 1}\n" + quick
	config := func(i int, c string) string {
		s := text + fmt.Sprintf("gossip: {bind: %q, join: [%q]}\n", []string{gossip, "127.0.0.1:0"}[i], gossip)
		if c != "" {
			s = strings.Replace(s, "routes:\n", fmt.Sprintf("  c: {file: %q%s}\nroutes:\n  - {prefix: \"c:\", pool: c}\n", list, c), 1)
		}
		return s
	}
	var files []string
	var routers []*router
	for i := range 2 {
		files = append(files, filepath.Join(t.TempDir(), "router.yml"))
		rewrite(t, files[i], config(i, ""))
		routers = append(routers, startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--name", fmt.Sprint("r", i), "--config", files[i]))
	}
	voting := func(pool string, want int) {
		t.Helper()
		for _, r := range routers {
			waitFor(t, "the routers to vote on pool "+pool, func() error {
				_, text, err := r.http("/metrics")
				if line := fmt.Sprintf("cacherouter_routers_voting{pool=%q} %d\n", pool, want); !strings.Contains(text, line) {
					return fmt.Errorf("no %s, %w", line, err)
				}
				return nil
			})
		}
	}
	reloadAll := func(c string) {
		t.Helper()
		for i, r := range routers {
			rewrite(t, files[i], config(i, c))
			if status, body := r.reloaded(t, ""); status != 200 {
				t.Fatalf("status %d: %s", status, body)
			}
		}
	}
	voting("a", 2)
	one, two := connect(t, routers[0].addr), connect(t, routers[1].addr)
	reloadAll(", timeout: 2s")
	voting("c", 2)
	one.mustSet(t, "c:k", "v")
	two.mustGet(t, "c:k", "v")
	reloadAll(", timeout: 3s") // for which it begins anew, with the same membership
	two.mustGet(t, "c:k", "v")
	reloadAll("")
	voting("a", 2)
	if _, text, _ := routers[0].http("/metrics"); strings.Contains(text, `pool="c"`) {
		t.Error("a pool that is gone is still shown")
	}
	reloadAll(", timeout: 2s")
	voting("c", 2)
	// What its membership begins with does not change under it.
	rewrite(t, files[0], config(0, ", resolver: \"127.0.0.1:53\""))
	if status, body := routers[0].reloaded(t, ""); status != 422 || !strings.Contains(body, "takes an upgrade") {
		t.Errorf("status %d, %s", status, body)
	}
}
