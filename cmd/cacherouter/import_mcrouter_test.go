package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The guide's examples come to what stands beside them, which check takes.
func TestImportExamples(t *testing.T) {
	f := func(from, to string, args ...string) {
		t.Helper()
		const dir = "../../docs/examples/moving"
		status, got, errs := command(append([]string{"import", filepath.Join(dir, from), "--sample=600"}, args...)...)
		if status != 0 {
			t.Fatalf("%s: status %d: %s", from, status, errs)
		}
		if to = filepath.Join(dir, to); *update {
			if err := os.WriteFile(to, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s, -update writes it (-want +got):\n%s", from, diff)
		}
		for _, line := range strings.Split(strings.TrimSpace(errs), "\n") {
			if !strings.Contains(line, ": 600 of 600 keys stay where they are") {
				t.Errorf("%s: %s", from, line)
			}
		}
		if status, _, errs := command("check", "--config", to); status != 0 || errs != "" {
			t.Errorf("%s: status %d: %s", to, status, errs)
		}
	}
	f("nutcracker.yml", "from-nutcracker.yml")
	f("mcrouter.json", "from-mcrouter.yml", "--route-prefix=/east/web/")
}

// What cannot be proved, or is disproved, is an error, behind the configuration that is printed all the same.
func TestImportProves(t *testing.T) {
	f := func(route, want string, status int, args ...string) {
		t.Helper()
		file := writeConfig(t, `{"pools": {"a": {"servers": ["h:1", "h:2"]}, "b": {"servers": ["h:3"]}}, "route": `+route+`}`)
		got, out, errs := command(append([]string{"import", file, "--sample=500"}, args...)...)
		if got != status || !strings.Contains(errs, want) || !strings.Contains(out, "pools:") {
			t.Errorf("%s: status %d, %s%s, want %d, %s", route, got, out, errs, status, want)
		}
	}
	f(`"PoolRoute|a"`, "the routes: 500 of 500 keys stay where they are\ncacherouter: pool a: 500 of 500", 0)
	f(`"PoolRoute|a"`, "the routes: 0 of 0", 0, "--sample=0", "--keys="+writeConfig(t, "/x/y/z\n"))
	f(`{"type": "PoolRoute", "pool": "a", "hash": "Rendezvous"}`, "500 were not compared: the configuration alone does not tell where keys are: hash function Rendezvous of pool a", 1)
	f(`{"type": "PoolRoute", "pool": "a", "hash": "Rendezvous"}`, "", 0, "--sample=0")
	f(`{"type": "OperationSelectorRoute", "default_policy": "PoolRoute|a", "operation_policies": {"set": "PoolRoute|b"}}`, "0 of 500 keys stay where they are", 1)
	f(`{"type": "ModifyKeyRoute", "target": "PoolRoute|b", "set_key_suffix": "x"}`, ", as ", 1)
	f(`{"type": "BigValueRoute", "target": "PoolRoute|a", "split_threshold": 1000000}`, "500 of 500 keys stay where they are", 0)
	f(`{"type": "PrefixSelectorRoute", "policies": {"x": "PoolRoute|a"}}`, "500 of 500 keys stay where they are (2 prefixes)", 0)
	f(`"PoolRoute|b"`, "the routes: 3 of 3 keys", 0, "--sample=0", "--keys="+writeConfig(t, "a\nb\n\nc\n"))
	f(`"PoolRoute|b"`, "1 are served here and were not", 0, "--sample=0", "--keys="+writeConfig(t, "/x/y/z\n"))
}

func TestImportMcrouterRefuses(t *testing.T) {
	f := func(text, want string, args ...string) {
		t.Helper()
		status, out, errs := command(append([]string{"import", writeConfig(t, text)}, args...)...)
		if status != 1 || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%q: status %d, %q%q", text, status, out, errs)
		}
	}
	f(`{"route": "NullRoute"}`, "no route leads to a pool")
	f(`{"route": "PoolRoute|a"}`, "router.yml: line 1: route: there is no pool")
	f(`{"pools": {"a": {"servers": ["h:1", "h:1"]}}, "route": "PoolRoute|a"}`, "h:1")
	f(`{"route": "NullRoute"}`, "--pool chooses", "--pool=x")
	f(nutcrackerYML, "--route-prefix is mcrouter's", "--route-prefix=/a/b/")
	f(nutcrackerYML, "line 2", "--from=mcrouter")
	f(`{"pools": {"a": {"servers": ["h:1"]}}, "route": "PoolRoute|a"}`, "is no key", "--keys="+writeConfig(t, "a b\n"))
}

// Whatever a configuration of mcrouter's says, what becomes of it is YAML that can be read.
func FuzzImportMcrouter(f *testing.F) {
	text, err := os.ReadFile("../../docs/examples/moving/mcrouter.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"pools": {"a\nb": {"servers": ["h:1", "h:2"], "\u2028": 1}}, "route": {"type": "PrefixSelectorRoute", "policies": {"x\"y\n": "PoolRoute|a\nb"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		in, err := importMcrouter("mcrouter.json", []byte(text), "")
		if err != nil {
			return
		}
		c := defaultConfig()
		if err := c.read("made", []byte(in.text)); err != nil && strings.Contains(err.Error(), "yaml") {
			t.Fatalf("%v in\n%s", err, in.text)
		}
	})
}
