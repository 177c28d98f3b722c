//go:build linux

package fleet

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/built"
	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
)

var build = built.Router("cacherouter")

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// binary returns the router's path.
func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, c Config) *Fleet {
	t.Helper()
	memcachedtest.Need(t, "memcached")
	c.Binary = binary(t)
	f, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	return f
}

// get asks for a key that nobody has.
func get(addr string) error {
	c := caller.Conn{Target: addr, Timeout: 5 * time.Second}
	defer c.Close()
	_, _, err := c.Get("k")
	return err
}

func set(t *testing.T, addr string) {
	t.Helper()
	c := caller.Conn{Target: addr, Timeout: 5 * time.Second}
	defer c.Close()
	if err := c.Set("k", []byte("v"), 0); err != nil {
		t.Error(err)
	}
}

func hit(t *testing.T, addr string) bool {
	t.Helper()
	c := caller.Conn{Target: addr, Timeout: 5 * time.Second}
	defer c.Close()
	_, hit, err := c.Get("k")
	if err != nil {
		t.Error(err)
	}
	return hit
}

func TestServersKeepTheirAddresses(t *testing.T) {
	f := start(t, Config{Servers: 2, Keep: true})
	s := f.Servers[1]
	set(t, s.Addr)
	if err := s.Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !hit(t, s.Addr) {
		t.Error("the new process has not taken over the memory")
	}
	s.Kill()
	s.Kill()
	if err := get(s.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a server that is down: %v", err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hit(t, s.Addr) {
		t.Error("a killed server came back with its memory")
	}
	if err := get(f.Servers[0].Addr); err != nil {
		t.Error(err)
	}
}

func TestRoutersReachServersThroughWhatStandsBefore(t *testing.T) {
	inner := start(t, Config{Servers: 2})
	var asked []string
	f := start(t, Config{Servers: 2, Routers: 1, Static: true, Front: func(server string) (string, error) {
		asked = append(asked, server)
		return inner.Servers[len(asked)-1].Addr, nil // another server, as far as routers can tell
	}})
	set(t, f.Routers[0].Addr)
	if hit(t, f.Servers[0].Addr) || hit(t, f.Servers[1].Addr) || hit(t, inner.Servers[0].Addr) == hit(t, inner.Servers[1].Addr) {
		t.Error("the value is not where the front leads, once")
	}
	if !slices.Equal(asked, []string{f.Servers[0].Addr, f.Servers[1].Addr}) {
		t.Errorf("fronts for %v", asked)
	}
	for i := range 2 {
		if f.Servers[i].Front != inner.Servers[i].Addr || inner.Servers[i].Front != inner.Servers[i].Addr {
			t.Errorf("server %d is reached at %s, the one behind at %s", i, f.Servers[i].Front, inner.Servers[i].Front)
		}
	}
}

func TestFleetsDoNotMeet(t *testing.T) {
	a, b := start(t, Config{Servers: 1}), start(t, Config{Servers: 1})
	set(t, a.Servers[0].Addr)
	if hit(t, b.Servers[0].Addr) {
		t.Error("two fleets share a server")
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	f := start(t, Config{Servers: 1, Routers: 2, Static: true})
	if err := f.Routers[1].proc.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := Await(t.Context(), "the crash is known", 10*time.Second, f.Routers[1].Crashed); err != nil || f.Routers[0].Crashed() {
		t.Errorf("%v; the other crashed: %v", err, f.Routers[0].Crashed())
	}
	f.Stop()
	f.Stop()
	for _, addr := range []string{f.Servers[0].Addr, f.Routers[0].Addr} {
		if err := get(addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := os.Stat(f.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is there: %v", err)
	}
}

func TestRoutersTakeOverANewList(t *testing.T) {
	f := start(t, Config{Servers: 2, Listed: 1, Routers: 1, Static: true})
	c := caller.Conn{Target: f.Routers[0].Addr, Timeout: 5 * time.Second}
	defer c.Close()
	if err := f.List(2); err != nil {
		t.Fatal(err)
	}
	err := Await(t.Context(), "the second server gets keys", 10*time.Second, func() bool {
		for _, key := range strings.Split("abcdefghijklmnop", "") {
			if err := c.Set(key, nil, 0); err != nil {
				t.Error(err)
			}
		}
		second := caller.Conn{Target: f.Servers[1].Addr, Timeout: 5 * time.Second}
		defer second.Close()
		stats, _ := second.Stats()
		return stats["curr_items"] > 0
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCutKeepsRoutersApartUntilItIsHealed(t *testing.T) {
	if os.Geteuid() != 0 {
		memcachedtest.Missing(t, "only root may drop packets")
	}
	memcachedtest.Need(t, "iptables")
	f := start(t, Config{Servers: 1, Routers: 3})
	count := func() int {
		text, err := exec.Command("iptables", "-w", "-S", "OUTPUT").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "-d "+f.network)
	}
	p, err := f.Cut(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 8 {
		t.Errorf("%d rules, want 2 pairs, 2 ways, 2 protocols", n)
	}
	for range 2 {
		if err := p.Heal(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 0 {
		t.Errorf("%d rules are left", n)
	}
	if p, err = f.CutServer(t.Context(), f.Routers[0], f.Servers[0]); err != nil || count() != 1 {
		t.Errorf("%d rules, %v; want one", count(), err)
	}
	if err := p.Heal(); err != nil || count() != 0 {
		t.Errorf("%d rules are left, %v", count(), err)
	}
}

func TestFleetsThatCannotBe(t *testing.T) {
	for _, c := range []Config{{}, {Servers: 91}, {Servers: 1, Routers: 51}, {Servers: 1, Listed: 2}} {
		if f, err := Start(t.Context(), c); err == nil {
			f.Stop()
			t.Errorf("%+v was started", c)
		}
	}
	if _, err := Start(t.Context(), Config{Servers: 1, Routers: 1, Binary: "/nonexistent/router"}); err == nil {
		t.Error("a router that does not exist was started")
	}
}
