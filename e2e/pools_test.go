package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// twoPools is a configuration of the pools a and b, by their prefixes; the rest goes to a.
func twoPools(a, b []*memcachedtest.Server) string {
	list := func(s []*memcachedtest.Server) string { return strings.Join(named(s), ", ") }
	return fmt.Sprintf("pools:\n  a: {servers: [%s]}\n  b: {servers: [%s]}\nroutes:\n  - {prefix: \"b:\", pool: b}\n  - {pool: a}\n", list(a), list(b))
}

// Two routers with two pools whose servers have the same names: what happens in one pool is
// seen, agreed on and made good there, and is nothing to the other.
func TestPools(t *testing.T) {
	servers := memcachedtest.StartN(t, 5)
	a, b := servers[:2], servers[2:]
	gossip := memcachedtest.Reserve(t)
	one := startWatching(t, twoPools(a, b)+fmt.Sprintf("gossip: {bind: %q}\n", gossip), "--name", "one")
	two := startWatching(t, twoPools(a, b)+fmt.Sprintf("gossip: {bind: \"127.0.0.1:0\", join: [%q]}\n", gossip), "--name", "two")
	routers := []*router{one, two}
	of := func(r *router, pool string) (m members, err error) {
		_, text, err := r.http("/api/v1/members?pool=" + pool)
		if err == nil {
			err = json.Unmarshal([]byte(text), &m)
		}
		return m, err
	}
	waitStatus := func(r *router, pool, server, status string) {
		t.Helper()
		waitFor(t, fmt.Sprintf("%s of pool %s to be %s", server, pool, status), func() error {
			m, err := of(r, pool)
			for _, s := range m.Servers {
				if s.Name == server && s.Status == status && m.Agreed {
					return nil
				}
			}
			return fmt.Errorf("%+v, %w", m, err)
		})
	}
	for _, r := range routers {
		waitFor(t, "the other router", func() error {
			_, text, err := r.http("/metrics")
			for _, want := range []string{`cacherouter_routers_voting{pool="a"} 2`, `cacherouter_routers_voting{pool="b"} 2`} {
				if !strings.Contains(text, want) {
					return fmt.Errorf("no %s, %w", want, err)
				}
			}
			return nil
		})
	}
	c := connect(t, one.addr)
	for i := range 20 {
		for _, key := range []string{fmt.Sprint("a:", i), fmt.Sprint("b:", i), fmt.Sprint("other", i)} {
			if err := c.set(key, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	items := func(servers []*memcachedtest.Server) (n int) {
		for _, s := range servers {
			n += s.Stat("curr_items")
		}
		return n
	}
	if x, y := items(a), items(b); x != 40 || y != 20 {
		t.Errorf("the pools hold %d and %d items, want 40 and 20", x, y)
	}

	resp, err := http.Post("http://"+one.admin+"/api/v1/drain?server=s0", "", nil)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a drain that names no pool: %v, %v", resp.Status, err)
	}
	drain := startCommand(t, raceBinary, "drain", "--admin", one.admin, "--pool", "a", "s0")
	<-drain.done
	b[1].Stop()
	for _, r := range routers {
		waitStatus(r, "a", "s0", "draining")
		waitStatus(r, "b", "s1", "out")
		waitStatus(r, "a", "s1", "in")
		waitStatus(r, "b", "s0", "in")
	}
	if n := len(mustMembers(t, of, one, "a").Servers); n != 2 {
		t.Errorf("pool a has %d servers", n)
	}
	for i := range 20 { // what was on s2 is still there, the rest can be stored again
		if err := c.set(fmt.Sprint("b:", i), "new"); err != nil {
			t.Error(err)
		}
	}

	for path, want := range map[string]string{
		"/metrics":                          `cacherouter_server_up{addr="` + b[2].Addr() + `",server="s2",pool="b"} `,
		"/api/v1/pools":                     `"name":"b","servers":3`,
		"/api/v1/where?key=b:1":             `"pool":"b","route":"b:"`,
		"/api/v1/where?key=x":               `"pool":"a"`,
		"/api/v1/overview?pool=b":           `"pool":"b"`,
		"/api/v1/overview":                  `"pools":["a","b"]`,
		"/api/v1/placement?pool=b":          `"name":"s2"`,
		"/api/v1/servers?pool=a":            `"total":2`,
		"/api/v1/hotkeys?pool=b":            `"rate":`,
		"/api/v1/members?pool=nosuchpoolis": `no pool is named`,
	} {
		if _, text, err := one.http(path); err != nil || !strings.Contains(compact(text), want) {
			t.Errorf("%s has no %s: %v, %.2000s", path, want, err, text)
		}
	}
	if x := one.waitLog(`msg="server status".* server=s1 .*pool=(\S+)|pool=(\S+) .*server=s1`); x != "b" {
		t.Errorf("the log says s1 of pool %s", x)
	}
}

func mustMembers(t *testing.T, of func(*router, string) (members, error), r *router, pool string) members {
	t.Helper()
	m, err := of(r, pool)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// compact takes the space out of JSON.
func compact(text string) string {
	return strings.NewReplacer("\n", "", "\": ", "\":", "  ", "").Replace(text)
}
