package membership_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/built"
	"cacherouter/internal/memcachedtest"
	"cacherouter/internal/netlab"
	"github.com/bradfitz/gomemcache/memcache"
)

// binary builds the router once for all tests.
var binary = built.Router("cacherouter")

// serving is a cacherouter process on a host of a lab, and a client beside it.
type serving struct {
	*memcache.Client
	host *netlab.Host
	log  memcachedtest.Output
}

// serve starts the command with a configuration and waits until it answers.
func serve(t *testing.T, h *netlab.Host, config map[string]any) *serving {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(h.IP(), "11311")
	config["name"], config["listen"], config["admin"] = h.Name(), []string{address}, "127.0.0.1:11312"
	b, err := json.Marshal(config) // JSON is YAML, too
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), h.Name()+".yml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &serving{host: h, Client: memcache.New(address)}
	s.DialContext, s.Timeout = h.Dial, 5*time.Second
	cmd := h.Command(program, "serve", "--config", path)
	cmd.Stderr = &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("log of %s:\n%s", h.Name(), s.log.String())
		}
	})
	soon(t, patience, h.Name()+" answers", func() bool { return s.Ping() == nil })
	return s
}

// set writes keys and returns how many were refused.
func (s *serving) set(keys []string, value string) (refused int) {
	for _, k := range keys {
		if s.Set(&memcache.Item{Key: k, Value: []byte(value)}) != nil {
			refused++
		}
	}
	return refused
}

// get reads keys and returns how many hit, and how many failed.
func (s *serving) get(keys []string) (hits, failed int) {
	for _, k := range keys {
		switch _, err := s.Get(k); {
		case err == nil:
			hits++
		case !errors.Is(err, memcache.ErrCacheMiss):
			failed++
		}
	}
	return hits, failed
}

// held returns the keys that a server holds.
func held(t *testing.T, h *netlab.Host, s *memcachedtest.Server, keys []string) (has []string) {
	t.Helper()
	c := memcache.New(s.Addr())
	c.DialContext, c.Timeout = h.Dial, 5*time.Second
	defer c.Close()
	for _, k := range keys {
		_, err := c.Get(k)
		if err == nil {
			has = append(has, k)
		} else if !errors.Is(err, memcache.ErrCacheMiss) {
			t.Fatal(err)
		}
	}
	return has
}

// servingFleet starts servers and routers, which are the command, on hosts of a lab.
func servingFleet(t *testing.T, routers, servers int) (*labFleet, []*serving) {
	t.Helper()
	f := &labFleet{t: t, Lab: netlab.New(t)}
	var list []string
	for i, h := range f.Hosts("m", servers) {
		f.machines = append(f.machines, h)
		f.servers = append(f.servers, memcachedtest.StartAt(t, h))
		list = append(list, fmt.Sprintf("m%d=%s", i, f.servers[i].Addr()))
	}
	var all []*serving
	var join []string
	for _, h := range f.Hosts("r", routers) {
		all = append(all, serve(t, h, map[string]any{
			"pool":       map[string]any{"servers": list},
			"gossip":     map[string]any{"bind": gossipAddress(h), "join": join, "expected": routers},
			"membership": map[string]any{"view": map[string]any{"settle": "1s"}},
		}))
		join = []string{gossipAddress(all[0].host)}
	}
	return f, all
}

// TestLabServing: what clients see. A router that alone cannot reach a server reads
// elsewhere and refuses writes, and no other router notices. One that is cut off from the
// other routers goes on with what it reaches, and takes over what they have decided when it
// is not cut off any more.
func TestLabServing(t *testing.T) {
	t.Parallel()
	f, all := servingFleet(t, 3, 4)
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	soon(t, patience, "all is well", func() bool {
		for _, s := range all {
			if s.set(keys, "v") > 0 || strings.Count(s.log.String(), "router joined") < 2 {
				return false
			}
		}
		return true
	})
	far := held(t, f.machines[2], f.servers[2], keys)
	if len(far) == 0 {
		t.Fatal("no key lives on m2")
	}
	bad := all[1]
	f.Cut(bad.host, f.machines[2])
	soon(t, patience, "reads go elsewhere and writes are refused", func() bool {
		_, failed := bad.get(far)
		return failed == 0 && bad.set(far, "w") == len(far)
	})
	if hits, failed := all[0].get(keys); hits != len(keys) || failed > 0 {
		t.Errorf("another router has %d hits and %d failures of %d", hits, failed, len(keys))
	}
	if n := all[0].set(keys, "x"); n > 0 {
		t.Errorf("another router refuses %d writes", n)
	}
	f.Heal()
	soon(t, patience, "reads and writes as before", func() bool {
		hits, failed := bad.get(keys)
		return hits == len(keys) && failed == 0 && bad.set(keys, "y") == 0
	})
	for _, s := range all {
		if strings.Contains(s.log.String(), "server status") {
			t.Errorf("%s: the routers have decided something", s.host.Name())
		}
	}

	near := held(t, f.machines[3], f.servers[3], keys)
	cutOff, others := all[0], all[1:]
	f.Partition([]*netlab.Host{cutOff.host}, []*netlab.Host{others[0].host, others[1].host})
	soon(t, patience, "the router knows that it is cut off", func() bool {
		return strings.Contains(cutOff.log.String(), "too few routers can be heard")
	})
	f.servers[3].Stop()
	soon(t, patience, "the majority has moved the keys", func() bool {
		return strings.Contains(others[0].log.String(), "to=out") && others[0].set(near, "z") == 0 && others[1].set(near, "z") == 0
	})
	if n := cutOff.set(near, "old"); n != len(near) {
		t.Errorf("the router that is cut off takes %d writes of %d keys whose server is dead", len(near)-n, len(near))
	}
	f.Heal()
	healed := soon(t, 45*time.Second, "the router follows the others", func() bool { return cutOff.set(near, "new") == 0 })
	t.Logf("the router that was cut off follows %v after healing", healed)
}
