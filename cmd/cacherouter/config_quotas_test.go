package main

import (
	"net/netip"
	"strings"
	"testing"

	"cacherouter/quota"
	"cacherouter/router"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestQuotas(t *testing.T) {
	file := writeConfig(t, `pool:
  servers: [h:1]
  bound: {spill: none}
  shed: {low: 10, normal: 20}
routes:
  - {prefix: a, rate: 1000, burst: 5, priority: low}
  - {prefix: b, concurrent: 64, priority: high}
  - {priority: normal}
clients:
  - {network: 10.0.0.0/8, rate: 0.5, each: true}
  - {network: "fd00::/8", concurrent: 9}
`)
	c, err := loadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	routes := []router.Route{
		{Prefix: "a", Pool: "default", Quota: quota.Config{Rate: 1000, Burst: 5}, Priority: router.Low},
		{Prefix: "b", Pool: "default", Quota: quota.Config{Concurrent: 64}, Priority: router.High},
		{Pool: "default"},
	}
	if diff := cmp.Diff(routes, c.routes(c.Routes)); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	clients := []router.ClientQuota{
		{Network: netip.MustParsePrefix("10.0.0.0/8"), Each: true, Quota: quota.Config{Rate: 0.5}},
		{Network: netip.MustParsePrefix("fd00::/8"), Quota: quota.Config{Concurrent: 9}},
	}
	if diff := cmp.Diff(clients, c.clients(), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
	if most := c.Pool.Shed.asRouted(); most[router.Low] != 10 || most[router.Normal] != 20 || most[router.High] != 0 {
		t.Errorf("shed %v", most)
	}
	if tab, err := c.Pool.fixedTable(nil); err != nil || tab.Bound == nil || tab.Spill != router.SpillNone {
		t.Errorf("a pool that sheds counts nothing: %v", err)
	}
	status, out, errs := command("check", "--config", file)
	for _, want := range []string{"1000 requests a second, priority low", "64 requests in flight, priority high"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, check says %s%s, not %q", status, out, errs, want)
		}
	}
}

func TestBadQuotasSayWhereAndWhat(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		refuses(t, text, want...)
	}
	const pool = "pool: {servers: [h:1]}\n"
	f(pool+"routes:\n  - {rate: -1}\n", "line 3", "routes", "a rate of -1")
	f(pool+"routes:\n  - {prefix: x, burst: 1}\n", "line 3", `"x"`, "wants a rate")
	f(pool+"routes:\n  - {concurrent: -1}\n", "line 3", "-1 requests")
	f(pool+"routes:\n  - {priority: urgent}\n", "line 3", `"urgent" is none of low, normal and high`)
	f(pool+"routes:\n  - {prefix: x, deny: true, rate: 1}\n", "line 3", "deny", "alone")
	f(pool+"clients:\n  - {network: 10.0.0.0/8}\n  - {network: 10.0.0.1, rate: 1}\n", "line 4", "clients", `"10.0.0.1" is no network`)
	f(pool+"clients:\n  - {network: 10.1.0.0/8}\n", "line 3", "clients", "want 10.0.0.0/8")
	f(pool+"clients:\n  - {network: \"::ffff:10.0.0.0/104\"}\n", "line 3", "clients", "want it written so")
	f(pool+"clients:\n  - {network: 10.0.0.0/8}\n  - {network: 10.0.0.0/8}\n", "line 4", "twice", "line 3")
	f(pool+"clients:\n  - {network: 10.0.0.0/8, rat: 1}\n", "line 3", "rat")
	f(pool+"clients:\n  - {network: 10.0.0.0/8, rate: 1e9}\n", "line 3", "a rate of 1e+09")
	f("pool:\n  servers: [h:1]\n  shed: {low: -1}\n", "line 3", "shed", "-1 is negative")
	f("pool:\n  servers: [h:1]\n  shed: {normal: 10}\n", "line 3", "shed", "rising order")
	f("pool:\n  servers: [h:1]\n  shed: {low: 20, normal: 10}\n", "line 3", "shed", "rising order")
	f("pool:\n  servers: [h:1]\n  retries: {budget: 2}\n", "line 3", "retries: budget", "between 0 and 1")
	f("pool:\n  servers: [h:1]\n  retries: {floor: -1}\n", "line 3", "retries: floor", "between")
}
