package main

import (
	"fmt"
	"strings"
	"testing"
)

// loaded reads a configuration.
func loaded(t *testing.T, text string) *config {
	t.Helper()
	c, err := loadConfig(writeConfig(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// What is otherwise is said in words, with the share of the keys that it moves, and what does not
// matter is not said.
func TestChangesOfConfigurations(t *testing.T) {
	f := func(before, after string, want ...string) {
		t.Helper()
		changes, err := loaded(t, before).changes(loaded(t, after), func(string) *table { return nil })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range changes {
			got = append(got, fmt.Sprintf("%s: %s %.1f", c.Subject, c.Change, c.Moved))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("from %q to %q:\n%s\nwant\n%s", before, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	one := "pool: {servers: [h:1, h:2]}\n"
	f(one, "# the same\n\npool:\n  servers: [h:1, 'h:2@1']\n")
	f(one, "pool: {servers: [h:1, h:2, h:3, h:4]}", "pool default: server h:3 added 0.5", "pool default: server h:4 added 0.0")
	f(one, "pool: {servers: [h:1]}", "pool default: server h:2 removed 0.5")
	f(one, "pool: {servers: [h:1@1, h:2@1], timeout: 2s, near: {bytes: 1048576}}",
		"pool default: timeout 2s, was 1s 0.0", "pool default: near.bytes 1048576, was 0 0.0")
	f(one, "pool: {servers: [h:2, h:1]}", "pool default: servers in another order 0.0")
	f("pool: {servers: [a=h:1]}", "pool: {servers: [a=h:2@3]}",
		"pool default: server a at h:2, was at h:1 0.0", "pool default: server a of weight 3, was 1 0.0")
	f(one, "pool: {servers: [h:1, h:2]}\nroutes: [{deny: true}]", "route for all other keys: added: denied 1.0")

	two := "pools: {a: {servers: [h:1]}, b: {servers: [h:2]}}\nroutes: [{pool: a}, {prefix: 'b:', pool: b}]\n"
	f(two, strings.Replace(two, "h:2", "h:3", 1), `pool b: server h:2 removed 1.0`, `pool b: server h:3 added 0.0`, `route for "b:": its pool 1.0`)
	f(two, strings.Replace(two, "pool: b}]", "pool: b, ttl_cap: 1h}]", 1), `route for "b:": ttl_cap 1h0m0s, was 0s 0.0`)
	f(two, strings.Replace(two, "pool: b}]", "pool: b, strip: true}]", 1), `route for "b:": strip true, was false 1.0`)
	f(two, strings.Replace(two, "pool: b}]", "pool: b}, {prefix: 'b:c:', pool: a}]", 1), `route for "b:c:": added: pool a 1.0`)
	f(two, strings.Replace(two, "{pool: a}", "{pool: a, split: {pool: b, percent: 25}}", 1),
		"route for all other keys: split.pool b, was none, split.percent 25, was 0 0.2")
	f(two, one, "pool a: removed 0.0", "pool b: removed 0.0", "pool default: added, its servers are h:1 h:2 0.0",
		`route for all other keys: removed, was pool a 0.5`, `route for "b:": removed, was pool b 0.5`)
	// The same servers under another name are where the keys are.
	f(two, "pools: {a: {servers: [h:1]}, b: {servers: [h:2]}, c: {servers: [x=h:2]}}\nroutes: [{pool: a}, {prefix: 'b:', pool: c}]\n",
		"pool c: added, its servers are x=h:2 0.0", `route for "b:": pool c, was b 0.0`)
	f("listen: [{address: 'h:9', routes: [{pool: a}]}]\npools: {a: {servers: [h:1]}}\nroutes: [{pool: a}]\n",
		"listen: [{address: 'h:9', routes: [{pool: a, read_only: true}]}]\npools: {a: {servers: [h:1]}}\nroutes: [{pool: a}]\n",
		"listen h:9: route for all other keys: read_only true, was false 0.0")
}

// What a reload cannot take over stays, and is named; a pool that would lose what its membership
// has promised is an error.
func TestWhatTakesAnUpgrade(t *testing.T) {
	before := loaded(t, "listen: [{address: 'h:9'}, {address: 'h:8'}]\nloops: 2\npool: {servers: [h:1]}\nmembership: {handover: 1m}\n")
	after := loaded(t, "listen: [{address: 'h:9', allow: [10.0.0.0/8]}, {address: 'h:7'}]\nloops: 3\npool: {servers: [h:1, h:2]}\nreload: {watch: true}\n")
	got, pending, err := before.amended(after)
	if err != nil {
		t.Fatal(err)
	}
	if want := "loops membership.handover listen h:9.allow listen h:8 listen h:7"; strings.Join(pending, " ") != want {
		t.Errorf("pending are %q, want %q", pending, want)
	}
	if got.Loops != 2 || len(got.Listen) != 2 || got.Listen[1].Address != "h:8" || len(got.Listen[0].Allow) > 0 || !got.Reload.Watch || len(got.Pool.Servers) != 2 {
		t.Errorf("in force would be %+v", got)
	}
	if next, pending, err := got.amended(after); err != nil || len(pending) != 5 || len(differencesOf(got, next)) > 0 {
		t.Errorf("the second time it would be %v otherwise, pending %v, %v", differencesOf(got, next), pending, err)
	}
	// What is valid with a setting that has to wait need not be without it.
	zones := "membership: {enabled: false}\npools: {a: {servers: [h:1]}, b: {servers: [h:2]}}\nroutes: [{pool: a}, {prefix: b, pool: b}]\n"
	composed := strings.Replace(strings.Replace(zones, "false", "true", 1), "[h:1]", "[h:1], failover: b", 1)
	if _, _, err := loaded(t, zones).amended(loaded(t, composed)); err == nil || !strings.Contains(err.Error(), "membership.enabled") {
		t.Errorf("composed without membership: %v", err)
	}
	f := func(before, after, want string) {
		t.Helper()
		err := loaded(t, before).Pool.takesUpgrade(&loaded(t, after).Pool)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("from %q to %q: %v, want %q", before, after, err, want)
		}
	}
	static := "pool: {servers: [h:1]}\n"
	f(static, "pool: {servers: [h:2], distribution: maglev, timeout: 3s}\n", "")
	f(static, "pool: {dns: ['a.example:1']}\n", "pool: dns: is - a.example:1, was none: takes an upgrade")
	f("pool: {servers: [h:1], dns: ['a.example:1']}\n", "pool: {dns: ['a.example:1']}\n", "pool: servers: to begin or to end with a list")
	f(static, "pool: {servers: [h:1], large_values: {split_over: 1000000}}\n", "pool: large_values: split_over: to begin")
	f("pool: {servers: [h:1], large_values: {split_over: 1000}}\n", "pool: {servers: [h:1], large_values: {split_over: 2000}}\n", "")
	f(static, "pool: {servers: [h:1], tls: {server_name: x}}\n", "pool: tls")
}

func differencesOf(a, b *config) (all []string) {
	for _, d := range compared(a, b) {
		all = append(all, d.String())
	}
	return all
}

// Which changes of a pool it takes over only when it begins.
func TestWhatBeginsAnew(t *testing.T) {
	base := loaded(t, "pool: {servers: [h:1, h:2]}\n")
	f := func(fields string, want bool) {
		t.Helper()
		if got := base.Pool.beginsAnew(&loaded(t, "pool: {"+fields+"}\n").Pool); got != want {
			t.Errorf("%s: %v", fields, got)
		}
	}
	f("servers: [h:1, h:3@2]", false)
	f("servers: [h:1, h:2], distribution: ring, points: 40", false)
	f("servers: [h:1, h:2], bound: {spill: any, factor: 2}, copies: {number: 2, balance: random}", false)
	f("servers: [h:1, h:2], copies: {number: 2, answer: home}", true)
	f("servers: [h:1, h:2], timeout: 2s", true)
	f("servers: [h:1, h:2], limit: {rate: 100}", true)
	f("servers: [h:1, h:2], flush_all: false", true)
}

// A check against another file says what a reload would do.
func TestCheckAgainst(t *testing.T) {
	old, file := writeConfig(t, "pool: {servers: [h:1]}\nloops: 1\n"), writeConfig(t, "pool: {servers: [h:1, h:2]}\nloops: 2\n")
	status, out, errs := command("check", "--config", file, "--against", old)
	for _, want := range []string{"pool default: server h:2 added (moves ", "loops: takes an upgrade", "1 to change"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, %q, %q: want %q", status, out, errs, want)
		}
	}
}
