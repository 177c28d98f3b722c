package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

func TestTermDrainsAndExitsZero(t *testing.T) {
	server := memcachedtest.Start(t)
	proxy := memcachedtest.Proxy(t, server.Addr())
	r := startRouter(t, []string{proxy.Addr()})
	idle, waiting := connect(t, r.addr), connect(t, r.addr)
	idle.mustSet(t, "k", "v")

	proxy.Set(memcachedtest.Stall)
	gets := server.Stat("cmd_get")
	waiting.send("get k\r\nget k\r\n")
	waitFor(t, "the request to reach the server", func() error {
		if server.Stat("cmd_get") == gets {
			return errors.New("not there yet")
		}
		return nil
	})
	began := time.Now()
	r.term()
	waitFor(t, "the listener to close", func() error {
		conn, err := net.Dial("tcp", r.addr)
		if err == nil {
			conn.Close()
			return errors.New("it still accepts")
		}
		return nil
	})
	proxy.Set(memcachedtest.Pass)
	for range 2 {
		if values, err := waiting.values(); err != nil || values["k"] != "v" {
			t.Errorf("a request owed at SIGTERM gives %v, %v", values, err)
		}
	}
	for name, c := range map[string]*client{"waiting": waiting, "idle": idle} {
		if rest, err := io.ReadAll(c.r); err != nil || len(rest) != 0 {
			t.Errorf("after the drain the %s client reads %q, %v; want an orderly end", name, rest, err)
		}
	}
	r.stop()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the drain took %v with nobody left to wait for", took)
	}
}

func TestTermEndsIdleRouterAtOnce(t *testing.T) {
	r := startRouter(t, []string{memcachedtest.Reserve(t)})
	idle := connect(t, r.addr)
	if reply, err := idle.do("version\r\n"); err != nil || !strings.HasPrefix(reply, "VERSION ") {
		t.Fatalf("version gives %q, %v", reply, err)
	}
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("an idle router took %v to end", took)
	}
}

// TestReloadUnderLoad changes the list of servers over and over while clients work: no request may fail.
func TestReloadUnderLoad(t *testing.T) {
	backends := memcachedtest.Addrs(memcachedtest.StartN(t, 4))
	path := configFile(t, backends[:2])
	r := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", path)
	l := startLoad(t, r.addr, 6)
	l.moving.Store(true)
	lists := [][]string{backends[:3], backends[1:], backends, backends[2:], {"a=" + backends[0], "b=" + backends[3] + "@3"}}
	for i := range 10 {
		l.progress(200)
		writeConfig(t, path, lists[i%len(lists)])
		reload(t, r, i+1)
	}
	l.progress(200)
	if done, failed := l.finish(); failed != 0 {
		t.Errorf("%d requests failed in reloads, %d went well", failed, done)
	}
}

// reload sends SIGHUP and waits until the router has said n times that it reloaded.
func reload(t *testing.T, r *router, n int) {
	t.Helper()
	r.signal(syscall.SIGHUP)
	waitFor(t, fmt.Sprintf("reload %d", n), func() error {
		if got := strings.Count(r.log.String(), "msg=reloaded"); got < n {
			return fmt.Errorf("%d reloads so far", got)
		}
		return nil
	})
}

func TestReloadRoutesToTheNewServer(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	path := configFile(t, []string{servers[0].Addr()})
	r := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", path)
	c := connect(t, r.addr)
	c.mustSet(t, "k", "old")
	writeConfig(t, path, []string{servers[1].Addr()})
	reload(t, r, 1)
	c.mustSet(t, "k", "new")
	connect(t, servers[1].Addr()).mustGet(t, "k", "new")
	connect(t, servers[0].Addr()).mustMiss(t, "k") // or a later change might bring it back
}

func TestBadReloadChangesNothing(t *testing.T) {
	server := memcachedtest.Start(t)
	path := configFile(t, []string{server.Addr()})
	r := startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", path)
	c := connect(t, r.addr)
	c.mustSet(t, "k", "v")
	for i, bad := range []string{"pool: {servers: []}\n", "pool: {servers: [127.0.0.1:1], nosuchfield: 3}\n", "{{{"} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		r.signal(syscall.SIGHUP)
		waitFor(t, "the refusal", func() error {
			if got := strings.Count(r.log.String(), `msg="reload refused"`); got <= i {
				return fmt.Errorf("%d refusals so far", got)
			}
			return nil
		})
		c.mustGet(t, "k", "v")
	}
	if !strings.Contains(r.log.String(), "nosuchfield") {
		t.Error("the refusal does not name the unknown field")
	}
}

func TestUnixSocketListener(t *testing.T) {
	backends := steadyBackends(t, 3)
	path := filepath.Join(t.TempDir(), "router.sock")
	r := startServe(t, raceBinary, "--listen", "unix:"+path, "--listen", "127.0.0.1:0", "--backends", strings.Join(backends, ","))
	r.waitLog(`msg=listening .*network=unix addr=(\S+)`)
	local, remote := connect(t, "unix:"+path), connect(t, r.addr)
	big := strings.Repeat("u", 500000)
	local.mustSet(t, "k", big)
	remote.mustGet(t, "k", big)
	remote.mustSet(t, "k", "small")
	local.mustGet(t, "k", "small")
	r.stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left behind: %v", err)
	}
}

func TestUnixSocketBackend(t *testing.T) {
	r := startRouter(t, []string{memcachedtest.StartUnix(t).Addr()})
	c := connect(t, r.addr)
	c.mustSet(t, "k", "v")
	c.mustGet(t, "k", "v")
}

func TestFlushAllOff(t *testing.T) {
	r := startRouter(t, steadyBackends(t, 2), "--flush-all=false")
	c := connect(t, r.addr)
	c.mustSet(t, "k", "v")
	for _, request := range []string{"flush_all\r\n", "flush_all 0\r\n", "flush_all noreply\r\nflush_all\r\n"} {
		if reply, err := c.do(request); err != nil || reply != "CLIENT_ERROR flush_all not allowed" {
			t.Errorf("%q gives %q, %v", request, reply, err)
		}
	}
	c.mustGet(t, "k", "v")
}

func TestFlushAllNeedsEveryServer(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	r := startRouter(t, memcachedtest.Addrs(servers))
	c := connect(t, r.addr)
	if reply, err := c.do("flush_all\r\n"); err != nil || reply != "OK" {
		t.Fatalf("flush_all gives %q, %v", reply, err)
	}
	servers[1].Stop()
	if reply, err := c.do("flush_all\r\n"); !failed(err) {
		t.Errorf("flush_all with a dead server gives %q, %v; want SERVER_ERROR", reply, err)
	}
}

func TestAdminAnswers(t *testing.T) {
	r := startRouter(t, steadyBackends(t, 1))
	connect(t, r.addr).mustSet(t, "k", "v")
	f := func(path string, wantStatus int, wantIn string) {
		t.Helper()
		reply, err := http.Get("http://" + r.admin + path)
		if err != nil {
			t.Fatalf("cannot ask %s: %v", path, err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if err != nil || reply.StatusCode != wantStatus || !strings.Contains(string(body), wantIn) {
			t.Errorf("%s gives %d %.300q, %v; want %d with %q", path, reply.StatusCode, body, err, wantStatus, wantIn)
		}
	}
	f("/healthz", 200, "")
	f("/readyz", 200, "")
	f("/metrics", 200, "cacherouter_")
	f("/nosuchpage", 404, "")
}

// TestBadStartsAreRefused wants status 1 or 2 and a message that names what is wrong, and no process left.
func TestBadStartsAreRefused(t *testing.T) {
	path, err := raceBinary()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	f := func(wantIn string, args ...string) {
		t.Helper()
		out, err := exec.Command(path, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() < 1 || exit.ExitCode() > 2 || !strings.Contains(string(out), wantIn) {
			t.Errorf("%q: %v, output %q; want status 1 or 2 and %q", args, err, out, wantIn)
		}
	}
	f("server", "serve", "--listen", "127.0.0.1:0", "--admin", "")
	f("nosuch", "serve", "--listen", "127.0.0.1:0", "--admin", "", "--backends", "127.0.0.1:1", "--distribution", "nosuch")
	f(taken.Addr().String(), "serve", "--listen", taken.Addr().String(), "--admin", "", "--backends", "127.0.0.1:1")
	f("no/such/file", "serve", "--config", "no/such/file")
	f("nosuchcommand", "nosuchcommand")
}
