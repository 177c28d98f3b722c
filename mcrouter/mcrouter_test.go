package mcrouter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pools are those of the tests' configurations.
const pools = `"pools": {
  "a": {"servers": ["h:1", "h:2"]},
  "b": {"servers": ["h:3", "h:4"]},
  "one": {"servers": ["h:5"]}, "two": {"servers": ["h:6"]}, "three": {"servers": ["h:7"]},
  "crc": {"servers": ["h:8", "h:9"]}
}`

// read reads a configuration with the pools of the tests and a route.
func read(t testing.TB, route string) *Config {
	t.Helper()
	c, err := Read(fmt.Appendf(nil, "{%s,\n\"route\": %s}", pools, route), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lines are the pools and routes of a plan, one a line, and the notes.
func lines(p *Plan) (out, notes []string) {
	for _, pool := range p.Pools {
		servers := slices.Clone(pool.Servers)
		for i, w := range pool.Weights {
			servers[i] += fmt.Sprint("@", w)
		}
		s := fmt.Sprintf("%s %s %s", pool.Of, pool.Distribution, strings.Join(servers, ","))
		if pool.Failover != nil {
			s += " failover " + pool.Failover.Of
		}
		if pool.WarmUp != nil {
			s += " warm_up " + pool.WarmUp.Of
		}
		if pool.Copies > 0 {
			s += fmt.Sprintf(" copies %d", pool.Copies)
		}
		if pool.SplitOver > 0 {
			s += fmt.Sprint(" split_over ", pool.SplitOver)
		}
		out = append(out, s)
	}
	for _, r := range p.Routes {
		s := fmt.Sprintf("%q ->", r.Prefix)
		if r.Pool != nil {
			s += " " + r.Pool.Of
		}
		for _, flag := range []struct {
			set  bool
			text string
		}{{r.Deny, "deny"}, {r.ReadOnly, "read_only"}, {r.TTLCap > 0, fmt.Sprint("ttl ", r.TTLCap)}, {r.Strip, "strip"}, {r.Add != "", "add " + r.Add}} {
			if flag.set {
				s += " " + flag.text
			}
		}
		if r.Shadow.Pool != nil {
			s += fmt.Sprintf(" shadow %s %v", r.Shadow.Pool.Of, r.Shadow.Percent)
		}
		if r.Split.Pool != nil {
			s += fmt.Sprintf(" split %s %v", r.Split.Pool.Of, r.Split.Percent)
		}
		out = append(out, s)
	}
	for _, n := range p.Notes {
		notes = append(notes, fmt.Sprintf("%s: %s", n.Path, n.Text))
	}
	return out, notes
}

// Each route handle has its counterpart, or a note.
func TestPlan(t *testing.T) {
	f := func(route, want string, noted ...string) {
		t.Helper()
		p, err := read(t, route).Plan(3)
		if err != nil {
			t.Errorf("%s: %v", route, err)
			return
		}
		got, notes := lines(p)
		if diff := cmp.Diff(strings.Split(want, "; "), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", route, diff)
		}
		notes = slices.DeleteFunc(notes, func(s string) bool { return strings.Contains(s, "no route leads here") })
		if len(notes) != len(noted) {
			t.Errorf("%s: %d notes, want %d: %q", route, len(notes), len(noted), notes)
		}
		for i, n := range notes {
			if i < len(noted) && !strings.Contains(n, noted[i]) {
				t.Errorf("%s: note %q, want %q", route, n, noted[i])
			}
		}
	}
	const a, b = "a mcrouter-ch3 h:1,h:2", "b mcrouter-ch3 h:3,h:4"
	f(`"PoolRoute|a"`, a+`; "" -> a`)
	f(`{"type": "PoolRoute", "pool": "a", "hash": {"hash_func": "Crc32", "salt": "x"}}`, `a mcrouter-crc32 h:1,h:2; "" -> a`)
	f(`{"type": "PoolRoute", "pool": {"name": "c", "inherit": "a", "qos": {"class": 1}}}`, `c mcrouter-ch3 h:1,h:2; "" -> c`, "route.pool.qos: has no counterpart: packets")
	f(`{"type": "PoolRoute", "pool": {"name": "c", "inherit": "a", "weights": [0.5, 1]}}`, `c mcrouter-weighted-ch3 h:1@5000,h:2@10000; "" -> c`)
	f(`{"type": "PoolRoute", "pool": {"name": "c", "inherit": "a", "weights": [1, 1.0]}}`, `c mcrouter-ch3 h:1,h:2; "" -> c`)
	f(`{"type": "PoolRoute", "pool": {"name": "c", "inherit": "a", "weights": [0, 1]}}`, `c  h:1,h:2; "" -> c`, "WeightedCh3 with a weight of 0")
	f(`{"type": "PoolRoute", "pool": "a", "hash": "Rendezvous"}`, `a  h:1,h:2; "" -> a`, "hash function Rendezvous has no counterpart")
	f(`{"type": "HashRoute", "children": "Pool|a", "hash_func": "Crc32"}`, `a mcrouter-crc32 h:1,h:2; "" -> a`)
	f(`{"type": "HashRoute", "children": ["PoolRoute|a", "PoolRoute|b"]}`, a+`; "" -> a`, "HashRoute has no counterpart: requests go to pool a")
	f(`{"type": "PrefixSelectorRoute", "policies": {"x:": "PoolRoute|a", "x:y:": "PoolRoute|b"}, "wildcard": "ErrorRoute|no"}`,
		a+"; "+b+`; "x:" -> a; "x:y:" -> b; "" -> deny`, "route.wildcard: every request")
	f(`{"type": "FailoverRoute", "children": ["PoolRoute|a", "PoolRoute|b"], "failover_limit": {"rate": 0.5}}`,
		a+" failover b; "+b+`; "" -> a`, "failover_limit: has no counterpart")
	f(`{"type": "FailoverRoute", "children": ["PoolRoute|a", {"type": "PoolRoute", "pool": "crc", "hash": "Crc32"}]}`, a+` failover crc; crc mcrouter-crc32 h:8,h:9; "" -> a`)
	f(`{"type": "FailoverRoute", "children": ["PoolRoute|a", "PoolRoute|a"]}`, a+`; "" -> a`, "has servers that it has itself")
	f(`{"type": "FailoverWithExptimeRoute", "normal": "PoolRoute|a", "failover": ["PoolRoute|one", "PoolRoute|b"], "failover_exptime": 30}`,
		a+` failover one; one mcrouter-ch3 h:5; "" -> a`, "pool one only, and not pool b")
	f(`"FailoverRoute|Pool|a"`, `a mcrouter-ch3 h:1 failover a; a mcrouter-ch3 h:2; "" -> a`, "the first server of pool a has all keys")
	f(`{"type": "WarmUpRoute", "cold": "PoolRoute|a", "warm": "PoolRoute|b", "exptime": 9}`, a+" warm_up b; "+b+`; "" -> a`, "with the time they have left")
	f(`{"type": "MissFailoverRoute", "children": ["PoolRoute|a", "PoolRoute|b"]}`, a+" warm_up b; "+b+`; "" -> a`, "also copied from there")
	f(`{"type": "AllInitialRoute", "children": ["PoolRoute|a", "PoolRoute|b", "PoolRoute|crc"]}`, a+"; "+b+`; "" -> a shadow b 100`, "pool crc does not see")
	f(`{"type": "AllSyncRoute", "children": ["PoolRoute|a", "PoolRoute|b"]}`, a+"; "+b+`; "" -> a shadow b 100`, "clients are not told")
	f(`{"type": "AllFastestRoute", "children": ["PoolRoute|one", "PoolRoute|two", "PoolRoute|three"]}`, `one rendezvous h:5,h:6,h:7 copies 3; "" -> one`, "each item lives on all 3 servers")
	f(`{"type": "OperationSelectorRoute", "default_policy": "AllSyncRoute|Pool|a", "operation_policies": {"get": "LatestRoute|Pool|a"}}`,
		`a rendezvous h:1,h:2 copies 2; "" -> a`, "LatestRoute: each item lives on all 2", "AllSyncRoute: each item lives on all 2")
	f(`{"type": "OperationSelectorRoute", "operation_policies": {"get": "PoolRoute|a", "delete": "PoolRoute|b"}}`,
		a+`; "" -> a read_only`, "is read only", "delete: has no counterpart: the operation goes to pool a, like others, and not to h:3")
	f(`{"type": "RoutingGroupRoute", "default_policy": "PoolRoute|a", "routing_group_policies": {"get_like": {"type": "WarmUpRoute", "cold": "PoolRoute|a", "warm": "PoolRoute|b"}}}`,
		a+" warm_up b; "+b+`; "" -> a`, "all do")
	f(`{"type": "OperationSelectorRoute", "default_policy": "PoolRoute|a", "operation_policies": {"set": "PoolRoute|b"}}`, a+`; "" -> a`, "has no counterpart: all go to the former")
	f(`{"type": "PoolRoute", "pool": "a", "shadows": [{"target": "PoolRoute|b", "index_range": [0, 1], "key_fraction_range": [0.25, 0.5]}]}`,
		a+"; "+b+`; "" -> a shadow b 25`, "index_range has no counterpart", "other keys than with mcrouter")
	f(`{"type": "MigrateRoute", "from": "PoolRoute|a", "to": "PoolRoute|b", "start_time": 99999999999}`, a+"; "+b+`; "" -> a split b 0`, "raise percent step by step")
	f(`{"type": "MigrateRoute", "from": "PoolRoute|a", "to": "PoolRoute|b", "start_time": 1}`, b+`; "" -> b`, "it has ended")
	f(`{"type": "ModifyExptimeRoute", "target": "PoolRoute|a", "exptime": 60, "action": "min"}`, a+`; "" -> a ttl 60`)
	f(`{"type": "ModifyKeyRoute", "target": "PoolRoute|a", "ensure_key_prefix": "v:"}`, a+`; "v:" -> a; "" -> a add v:`)
	f(`{"type": "PrefixSelectorRoute", "policies": {"x:": {"type": "ModifyKeyRoute", "target": "PoolRoute|a", "ensure_key_prefix": "y:", "replace_key_prefix": "x:"}}}`,
		a+`; "x:" -> a strip add y:`)
	f(`{"type": "BigValueRoute", "target": "PoolRoute|a", "split_threshold": 1000000, "batch_size": 10}`, a+` split_over 1000000; "" -> a`, "is not found", "batch_size")
	f(`{"type": "BigValueRoute", "target": "PoolRoute|a", "split_threshold": 0, "batch_size": 10}`, a+`; "" -> a`, "values are not stored in parts", "batch_size")
	f(`{"type": "RateLimitRoute", "target": "PoolRoute|a", "rates": {"gets_rate": 1}}`, a+`; "" -> a`, "RateLimitRoute has no counterpart", "rates: has no counterpart")
	f(`{"type": "HostIdRoute", "children": ["NullRoute", "PoolRoute|a"]}`, a+`; "" -> a`, "HostIdRoute has no counterpart: requests go to pool a")
	f(`{"type": "L1L2SizeSplitRoute", "l1": "PoolRoute|a", "l2": "PoolRoute|b", "threshold": 9}`, a+`; "" -> a`, "requests go where its l1 sends them", "l2: has no counterpart", "threshold")
}

// Keys with routing prefixes have routes of their own, which take them off.
func TestRoutingPrefixes(t *testing.T) {
	const text = `{` + pools + `, "routes": [
  {"aliases": ["/x/1/", "x/2"], "route": {"type": "PrefixSelectorRoute", "policies": {"k:": "PoolRoute|b"}, "wildcard": "PoolRoute|a"}},
  {"aliases": ["/y/1/"], "route": "PoolRoute|keeping"}
], "named_handles": {"PoolRoute|keeping": {"type": "PoolRoute", "name": "PoolRoute|keeping", "pool": {"name": "c", "inherit": "one", "keep_routing_prefix": true}}}}`
	c, err := Read([]byte(text), "/x/1/")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Plan(3)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := lines(p)
	want := []string{`"k:" -> b`, `"/x/1/k:" -> b strip add k:`, `"/x/2/k:" -> b strip add k:`, `"" -> a`, `"/x/1/" -> a strip`, `"/x/2/" -> a strip`, `"/y/1/" -> c`}
	if diff := cmp.Diff(want, got[3:]); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	for key, known := range map[string]string{"k:1": "k:1", "/x/1/k:1": "k:1", "/y/1/k": "/y/1/k", "/z/1/k": ""} {
		if h, err := c.Home(key); err != nil || h.Known != known || len(h.Reads) > 0 != (known != "") {
			t.Errorf("%s is at %+v, %v", key, h, err)
		}
	}
	if _, err := Read([]byte(text), ""); err == nil || !strings.Contains(err.Error(), "line 6: routes: no route is for /././") {
		t.Errorf("without --route-prefix: %v", err)
	}
}

// Where keys are is told by rules that the plan has no part in.
func TestHomes(t *testing.T) {
	f := func(route, key, reads, writes string) {
		t.Helper()
		h, err := read(t, route).Home(key)
		if got := strings.Join(h.Reads, ",") + " " + strings.Join(h.Writes, ","); err != nil || got != reads+" "+writes {
			t.Errorf("%s: %s is at %s, %v, want %s %s", route, key, got, err, reads, writes)
		}
	}
	f(`"PoolRoute|a"`, "k1", "h:2", "h:2") // by mcrouter's own furc_hash
	f(`"PoolRoute|a"`, "/x/y/k1|#|other", "", "")
	f(`"PoolRoute|a"`, "k1|#|other", "h:2", "h:2")
	f(`{"type": "PrefixSelectorRoute", "policies": {"x:": "PoolRoute|one", "x:y:": "PoolRoute|two"}}`, "x:y", "h:5", "h:5")
	f(`{"type": "PrefixSelectorRoute", "policies": {"x:": "PoolRoute|one", "x:y:": "PoolRoute|two"}}`, "x:y:", "h:6", "h:6")
	f(`{"type": "PrefixSelectorRoute", "policies": {"x:": "PoolRoute|one"}}`, "y", "", "")
	f(`{"type": "OperationSelectorRoute", "default_policy": "AllSyncRoute|Pool|a", "operation_policies": {"get": "FailoverRoute|Pool|a"}}`, "k", "h:1", "h:1,h:2")
	f(`{"type": "WarmUpRoute", "cold": "PoolRoute|one", "warm": "PoolRoute|two"}`, "k", "h:5", "h:5")
	f(`{"type": "FailoverRoute", "children": ["ErrorRoute", "PoolRoute|one"]}`, "k", "h:5", "h:5")
	f(`"NullRoute"`, "k", "", "")
	for _, route := range []string{`"RandomRoute|Pool|a"`, `{"type": "PoolRoute", "pool": "a", "hash": "Latest"}`} {
		if _, err := read(t, route).Home("k"); !errors.Is(err, ErrOpen) {
			t.Errorf("%s: %v", route, err)
		}
	}
}

func TestReadSaysWhereAndWhat(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c, err := Read([]byte(text), "")
		if err == nil {
			_, err = c.Plan(3)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	f(`[]`, "line 1: the configuration is a list")
	f(`{"route": "PoolRoute|a", "macros": {}}`, "preprocessed_config")
	f(`{"pools": {}}`, "neither route nor routes")
	f(`{"route": "NullRoute", "routes": []}`, "routes: route is there, too")
	f(`{"routes": [{"aliases": ["/a/"], "route": "NullRoute"}]}`, "no routing prefix")
	f("{\n\"route\": \"PoolRoute|a\"}", `line 2: route: there is no pool "a"`)
	f(`{"route": "NoRoute|a"}`, `nothing is known of route handle "NoRoute"`)
	f(`{"route": {"children": []}}`, "route: a route handle without type")
	f(`{"route": "x", "named_handles": {"x": ["y"], "y": "x"}}`, "goes round in a circle: x -> y -> x")
	f(`{"route": "PoolRoute|a", "pools": {"a": {"inherit": "b"}, "b": {"inherit": "a"}}}`, "goes round in a circle")
	f(`{"route": "PoolRoute|a", "pools": {"a": {"servers": ["h"]}}}`, `pools.a.servers[0]: server "h" is not host:port`)
	f(`{"route": "PoolRoute|a", "pools": {"a": {"servers": [{}]}}}`, "only addresses")
	f(`{"route": "PoolRoute|a", "pools": {"a": {"servers": ["h:1"], "weights": [2]}}}`, "weights[0]: is no weight")
	f(`{"route": "WarmUpRoute"}`, "WarmUpRoute without cold")
	f(`{"route": {"type": "PrefixSelectorRoute", "wildcard": {"type": "PrefixSelectorRoute", "wildcard": "NullRoute"}}}`, "nothing is known")
	many := `{"route": "a0", "named_handles": {`
	for i := range 40 {
		many += fmt.Sprintf(`"a%d": ["a%d", "a%d"], `, i, i+1, i+1)
	}
	f(many+`"a40": "NullRoute"}}`, "more than")
}

func TestReadServer(t *testing.T) {
	f := func(text string, port int64, want server, wrong string) {
		t.Helper()
		if got, w := readServer(text, port); w != wrong || w == "" && got != want {
			t.Errorf("%s: %+v %q, want %+v %q", text, got, w, want, wrong)
		}
	}
	f("h:1", 0, server{address: "h:1"}, "")
	f("h:1:ascii:ssl:compressed", 0, server{"h:1", "ascii", true}, "")
	f("h:1:caret:plain", 0, server{"h:1", "caret", false}, "")
	f("[::1]:2:ascii", 0, server{"[::1]:2", "ascii", false}, "")
	f("h:1", 9, server{address: "h:9"}, "")
	f("h", 9, server{address: "h:9"}, "")
	f("unix:/tmp/x:ascii", 0, server{"unix:/tmp/x", "ascii", false}, "")
	f("h:0", 0, server{}, "is not host:port")
	f(":1", 0, server{}, "has no host")
	f("[::1", 0, server{}, "lacks a bracket")
}

// Whatever is read, nothing of it makes the reader stumble, and its own rules and the plan's are asked without harm.
func FuzzRead(f *testing.F) {
	for _, route := range []string{
		`"PoolRoute|a"`, `"AllSyncRoute|Pool|a"`, `"FailoverRoute|Pool|a"`,
		`{"type": "PrefixSelectorRoute", "policies": {"x:": "PoolRoute|a"}, "wildcard": {"type": "WarmUpRoute", "cold": "PoolRoute|a", "warm": "PoolRoute|b"}}`,
		`{"type": "OperationSelectorRoute", "default_policy": "PoolRoute|a", "operation_policies": {"get": "LatestRoute|Pool|a"}}`,
		`{"type": "ModifyKeyRoute", "target": "PoolRoute|a", "ensure_key_prefix": "v:", "replace_key_prefix": "w:"}`,
		`{"type": "PoolRoute", "pool": {"name": "c", "inherit": "a"}, "shadows": [{"target": "x", "key_fraction_range": [0, 1], "index_range": [0, 2]}]}`,
	} {
		f.Add("{"+pools+`, "named_handles": [{"type": "PoolRoute", "name": "x", "pool": "one"}], "route": `+route+"}", "x:1")
	}
	f.Add(`{"routes": {"/a/b/": "NullRoute", "/././": "ErrorRoute|no"}, // none`+"\n}", "/a/b/c")
	f.Fuzz(func(t *testing.T, text, key string) {
		c, err := Read([]byte(text), "")
		if err != nil {
			return
		}
		p, err := c.Plan(3)
		if err != nil {
			return
		}
		if len(p.Routes) == 0 && len(c.selectors[0].policies) > 0 {
			t.Error("routes are lost")
		}
		_, _ = c.Home(key)
		for _, pool := range p.Pools {
			_, _ = c.HomeIn(pool, key)
		}
	})
}
