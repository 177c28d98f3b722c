package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const twoPools = `pools:
  users:
    servers: [u1=h:1, u2=h:2]
    timeout: 250ms
  pages:
    like: users
    servers: [p1=h:3]
    on_failure: miss
`

func TestPoolsAndRoutes(t *testing.T) {
	c, err := loadConfig(writeConfig(t, twoPools+`routes:
  - {prefix: "user:", pool: users}
  - {prefix: "user:page:", pool: pages}
  - {pool: pages}
listen: [{address: "h:1", routes: [{prefix: x, pool: users}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.each() {
		got = append(got, p.name, p.summary()[:9], time.Duration(p.Timeout).String(), p.OnFailure)
	}
	if diff := cmp.Diff([]string{"pages", "1 servers", "250ms", "miss", "users", "2 servers", "250ms", "error"}, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	f := func(key, pool, route string) {
		t.Helper()
		targets, err := c.targets(c.Routes)
		if err != nil {
			t.Fatal(err)
		}
		if target := targets.Target(key); target.Pool != pool || target.Prefix != route || target.Known != key {
			t.Errorf("%s goes %+v, want route %q to %s", key, target, route, pool)
		}
	}
	f("user:1", "users", "user:")
	f("user:page:1", "pages", "user:page:")
	f("user", "pages", "")
	if r := c.routes(c.Listen[0].Routes); len(r) != 1 || r[0].Prefix != "x" || r[0].Pool != "users" {
		t.Errorf("the listener's routes are %v", r)
	}
	if d := c.doubts(); len(d) != 1 || !strings.Contains(d[0], "listen: h:1: no route for the rest") {
		t.Errorf("doubts %q", d)
	}
}

// The short form is a pool named default.
func TestShortFormOfPools(t *testing.T) {
	file := writeConfig(t, "pool: {servers: [h:1]}\nroutes: [{prefix: x}]\n")
	c, err := loadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.routes(c.Routes); len(r) != 1 || r[0].Pool != "default" {
		t.Errorf("routes %v", r)
	}
	if status, out, _ := command("where", "--config", file, "y"); status != 0 || out != "y\tno route\n" {
		t.Errorf("status %d, y is at %q", status, out)
	}
	if d := c.doubts(); len(d) != 1 || !strings.Contains(d[0], "SERVER_ERROR no route for key") {
		t.Errorf("doubts %q", d)
	}
}

func TestBadPoolsSayWhereAndWhat(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		refuses(t, text, want...)
	}
	f(twoPools, "line 1", "pools: there are several: want routes")
	f(twoPools+"routes:\n  - {pool: users}\n  - {prefix: x, pool: nowhere}\n", "line 11", "routes", `"x"`, "no pool nowhere", "pages users")
	f(twoPools+"routes:\n  - {prefix: x, pool: users}\n  - {prefix: x, pool: pages}\n", "line 11", "routes", `"x"`, "twice", "line 10")
	f(twoPools+"routes:\n  - {pool: users}\n  - {pool: pages}\n", "line 11", "all other keys", "twice")
	f(twoPools+"routes:\n  - {prefix: x}\n", "line 10", "says no pool")
	f(twoPools+"routes:\n  - {prefix: x, pol: users}\n", "line 10", "pol")
	f(twoPools+"routes:\n  - {prefix: "+strings.Repeat("x", 251)+", pool: users}\n", "line 10", "251 bytes")
	f(twoPools+"routes: [{pool: users}]\nlisten:\n  - {address: \"h:1\", routes: [{pool: none}]}\n", "line 11", "listen", "no pool none")
	f(twoPools+"pool: {servers: [h:1]}\n", "line 9", "pool: is the short form")
	f(twoPools+"routes:\n  - {prefix: x, pool: users, strip: true, add: \"a b\"}\n", "line 10", "a space")
	f(twoPools+"routes:\n  - {pool: users, strip: true}\n", "line 10", "there is none")
	f(twoPools+"routes:\n  - {pool: users, ttl_cap: 1500ms}\n", "line 10", "ttl_cap", "whole seconds")
	f(twoPools+"routes:\n  - {pool: users, ttl_cap: soon}\n", "line 10", "soon")
	f(twoPools+"routes:\n  - {prefix: x, deny: true, pool: users}\n", "line 10", "deny", "alone")
	f("pools:\n  a: {servers: [h:1], nonsense: 1}\n", "line 2", "nonsense")
	f("pools:\n  a:\n    servers: [h:1]\n    timeout: 0s\n", "line 4", "pools: a: timeout")
	f("pools:\n  a:\n    servers: [h:1]\n    timeout: soon\n", "line 4", "soon")
	f("pools:\n  a:\n    servers: [h:1, h:1]\n", "line 3", "pools: a: servers", "twice")
	f("pools:\n  a:\n    bound: {factor: 0.5}\n    servers: [h:1]\n", "line 3", "pools: a: bound: factor")
	f("pools:\n  a:\n    servers: [h:1]\n    large_values:\n      split_over: 100\n", "line 5", "pools: a: large_values: split_over", "512")
	f("pool:\n  servers: [h:1]\n  max_value: 1000\n  large_values: {split_over: 1000}\n", "line 4", "pool: large_values: split_over", "max_value")
	f("pool:\n  servers: [h:1]\n  large_values: {split: 1000}\n", "line 3", "split")
	f("pools:\n  a: {servers: [h:1]}\n  a: {servers: [h:2]}\n", "line 3", "a is there twice")
	f("pools:\n  \"a b\": {servers: [h:1]}\n", "line 2", `"a b" is no name`)
	f("pools:\n  a: {like: b, servers: [h:1]}\n", "line 2", `no pool "b"`)
	f("pools:\n  a: {like: b}\n  b: {like: c}\n  c: {like: a}\n", "circle", "a -> b -> c -> a")
	f("pools: [a]\n", "line 1", "mapping")
	f("pools:\n  a: {servers: [h:1], announced: true}\n", "line 2", "pools: a: announced", "gossip")
	f("pools:\n  a: {servers: [h:1], announce: [x=h:1]}\n", "line 2", "pools: a: announce", "gossip")
	f("gossip: {bind: \"127.0.0.1:0\"}\nannounce: [x=h:1]\npools:\n  a: {servers: [h:1]}\n", "line 2", "announce", "pool that the servers are for")
	f("pool: {servers: [h:1], like: x}\n", "line 1", "like", "want pools")
	f("pool: {servers: [h:1], announce: [x=h:1]}\n", "line 1", "announce", "at the top")
}

// check prints the pools and the routes in the order in which they decide, and says what is
// most probably not meant.
func TestCheckPrintsRoutes(t *testing.T) {
	file := writeConfig(t, twoPools+"  spare:\n    servers: [h:9]\nroutes:\n  - {prefix: a, pool: users}\n  - {prefix: a:b, pool: pages}\n")
	status, out, errs := command("check", "--config", file)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	for _, want := range []string{"ok, 3 pools", "pool pages", "1 servers, rendezvous, digest", "route \"a:b\""} {
		if !strings.Contains(out, want) {
			t.Errorf("check says %s, not %q", out, want)
		}
	}
	if strings.Index(out, `"a:b"`) > strings.Index(out, `"a"`) {
		t.Errorf("the longer prefix is not first: %s", out)
	}
	for _, want := range []string{"pools: spare: no route leads to it", "routes: no route for the rest"} {
		if !strings.Contains(errs, want) {
			t.Errorf("check warns %s, not of %q", errs, want)
		}
	}
}

// A shadow on the servers that it is to be compared with is doubted.
func TestCheckDoubtsShadowOnTheSameServers(t *testing.T) {
	file := writeConfig(t, strings.Replace(twoPools, "p1=h:3", "u3=h:2", 1)+"routes: [{pool: users, shadow: {pool: pages, percent: 1}}]\n")
	if status, _, errs := command("check", "--config", file); status != 0 || !strings.Contains(errs, "shadow: pool pages has server h:2 of pool users") {
		t.Errorf("status %d, check warns %s", status, errs)
	}
}

// What routes say beside their pools is checked, printed, and obeyed by where.
func TestPoliciesOfRoutes(t *testing.T) {
	file := writeConfig(t, `pool: {servers: [a=h:1, b=h:2]}
routes:
  - {prefix: "old:", strip: true, add: "v2:", ttl_cap: 1h, read_only: true}
  - {prefix: "secret:", deny: true}
  - {}
`)
	status, out, errs := command("check", "--config", file)
	for _, want := range []string{`route "old:"`, `pool default, read only, for 1h0m0s at most, prefix off, "v2:" before it`, `route "secret:"`, "denied", "route all other keys"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, check says %s%s, not %q", status, out, errs, want)
		}
	}
	_, renamed, _ := command("where", "--config", file, "old:1", "secret:1")
	_, plain, _ := command("where", "--config", file, "v2:1")
	if want := strings.Replace(plain, "v2:1", "old:1", 1) + "secret:1\tno route\n"; renamed != want {
		t.Errorf("where says %q, want %q", renamed, want)
	}
	if _, out, _ = command("where", "--config", file, "--json", "old:1"); !strings.Contains(out, `"known_as": "v2:1"`) {
		t.Errorf("where says %s", out)
	}
}

// where says route and pool, behind the columns that there always are.
func TestWhereOfPools(t *testing.T) {
	file := writeConfig(t, twoPools+"routes:\n  - {prefix: \"user:\", pool: users}\n  - {prefix: \"page:\", pool: pages}\n")
	status, out, errs := command("where", "--config", file, "page:1", "user:1", "other")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 3 {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	if lines[0] != "page:1\tp1=h:3\tpool pages, route \"page:\"" || !strings.HasPrefix(lines[1], "user:1\tu") || lines[2] != "other\tno route" {
		t.Errorf("where says %q", lines)
	}
	status, out, _ = command("where", "--config", file, "--json", "page:1")
	if status != 0 || !strings.Contains(out, `"pool": "pages"`) || !strings.Contains(out, `"route": "page:"`) || !strings.Contains(out, `"home": "p1=h:3"`) {
		t.Errorf("status %d: %s", status, out)
	}
	if status, _, errs = command("where", "--config", file, "--backends", "h:1", "x"); status == 0 || !strings.Contains(errs, "--pool") {
		t.Errorf("status %d: %s", status, errs)
	}
	status, out, errs = command("plan", "--config", file, "--pool", "pages", "--add", "p2=h:4")
	if status != 0 || !strings.Contains(out, "keys move") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if status, _, errs = command("plan", "--config", file, "--add", "h:4"); status == 0 || !strings.Contains(errs, "choose one with --pool: pages users") {
		t.Errorf("status %d: %s", status, errs)
	}
}
