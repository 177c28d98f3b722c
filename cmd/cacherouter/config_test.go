package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

func TestConfigDoc(t *testing.T) {
	const file = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(file, []byte(configDoc()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(configDoc(), string(got)); diff != "" {
		t.Errorf("docs/configuration.md is out of date, run with -update (-want +got):\n%s", diff)
	}
	for row := range strings.Lines(configDoc()) {
		if strings.HasPrefix(row, "| `") && strings.HasSuffix(strings.TrimSpace(row), "|  |") {
			t.Errorf("a field has no doc: %s", row)
		}
	}
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "router.yml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLoadConfig(t *testing.T) {
	c, err := loadConfig(writeConfig(t, `
listen: [127.0.0.1:1, "unix:/tmp/x"]
loops: 3
drain_timeout: 3s
pool:
  distribution: maglev
  timeout: 250ms
  on_failure: miss
  servers:
    - 10.0.0.1:11211
    - b=10.0.0.2:11211@7
    - {name: c, address: "unix:/run/mc", weight: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Loops != 3 || c.Listen[1].Address != "unix:/tmp/x" || c.Admin != "127.0.0.1:11312" || c.DrainTimeout != duration(3*time.Second) ||
		c.Pool.Timeout != duration(250*time.Millisecond) || c.Pool.OnFailure != "miss" {
		t.Errorf("got %+v", c)
	}
	var got []string
	for _, s := range c.Pool.Servers {
		got = append(got, s.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.1:11211", "b=10.0.0.2:11211", "c=unix:/run/mc"}, got); diff != "" {
		t.Error(diff)
	}
	if w := c.Pool.Servers[1].Weight*10 + c.Pool.Servers[2].Weight; w != 72 {
		t.Errorf("weights %d", w)
	}
}

// refuses checks that a configuration is an error that names the file, and says all that is wanted.
func refuses(t *testing.T, text string, want ...string) {
	t.Helper()
	file := writeConfig(t, text)
	_, err := loadConfig(file)
	if err == nil {
		t.Errorf("%q: no error", text)
		return
	}
	for _, w := range append(want, file) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q: %q does not say %q", text, err, w)
		}
	}
}

func TestBadConfigSaysWhereAndWhat(t *testing.T) {
	const head = "pool:\n  servers: [h:1, h:2]\n"
	f := func(text string, want ...string) {
		t.Helper()
		refuses(t, text, want...)
	}
	f("", "want at least one server", "servers")
	f(head+"nonsense: 1\n", "line 3", "nonsense")
	f(head+"  nonsense: 1\n", "line 3", "nonsense")
	f(head+"  timeout: soon\n", "line 3", "soon")
	f(head+"  timeout: -1s\n", "line 3", "negative")
	f(head+"  timeout: 0s\n", "line 3", "timeout")
	f(head+"  connect_timeout: 0s\n", "line 3", "connect_timeout")
	f(head+"  max_value: 0\n", "line 3", "max_value")
	f(head+"  bulk_size: 0\n", "line 3", "bulk_size")
	f(head+"  on_failure: panic\n", "line 3", "on_failure", "panic")
	f(head+"  distribution: roulette\n", "line 3", "distribution", "roulette", "rendezvous")
	f(head+"  hash: md5\n", "line 3", "hash", "rendezvous")
	f(head+"  distribution: ring\n  mode: evcache\n", "line 4", "mode", "ring")
	f(head+"  distribution: maglev\n  table_size: 65536\n", "65536", "prime")
	f(head+"  distribution: twemproxy-ketama\n  hash: md6\n", "md6")
	f(head+"loops: -1\n", "line 3", "loops")
	f(head+"loops: many\n", "line 3", "many")
	f(head+"engine: steam\n", "line 3", "engine", "steam")
	f(head+"admin: nowhere\n", "line 3", "admin", "nowhere")
	f(head+"admin_token_file: /nowhere\n", "line 3", "admin_token_file", "/nowhere")
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(head+"admin_token_file: "+short+"\n", "line 3", "admin_token_file", "6 bytes", "at least 16")
	f(head+"listen: []\n", "line 3", "listen")
	f(head+"listen: [\"unix:\"]\n", "line 3", "listen", "no path")
	f(head+"listen: [\"h:99999\"]\n", "line 3", "listen", "h:99999")
	f(head+"---\nloops: 1\n", "second document")
	f("pool:\n  servers:\n    - h:1\n    - h:1\n", "line 4", "h:1", "twice")
	f("pool:\n  servers:\n    - a=h:1\n    - a=h:2\n", "line 4", "server a", "twice")
	f("pool:\n  servers:\n    - a=h:1\n    - b=h:1\n", "line 4", "h:1", "twice")
	f("pool:\n  servers:\n    - h:1@0\n", "line 3", "weight 0")
	f("pool:\n  servers:\n    - h:1@70000\n", "line 3", "weight 70000")
	f("pool:\n  servers:\n    - h:1@x\n", "line 3", "weight")
	f("pool:\n  servers:\n    - {name: a, address: h}\n", "line 3", "server a", "host:port")
	f("pool:\n  servers:\n    - {name: a, adress: h:1}\n", "line 3", "adress")
	f("listen:\n  - {address: \"h:1\", nonsense: 1}\n"+head, "line 2", "nonsense")
	f("listen:\n  - {address: \"h:1\", tls: {sert: x}}\n"+head, "line 2", "sert")
	f("listen:\n  - {address: \"h:1\", tls: {cert: /none, key: /none}}\n"+head, "line 2", "/none")
	f("listen:\n  - {address: \"h:1\", tls: {}}\n"+head, "line 2", "certificate")
	f("listen:\n  - {address: \"h:1\", passwords: /none}\n"+head, "line 2", "/none")
	f("listen:\n  - h:2\n  - {address: \"h:1\", allow: [everywhere]}\n"+head, "line 3", "everywhere")
	f("listen:\n  - {address: \"unix:/x\", allow: [10.0.0.0/8]}\n"+head, "line 2", "unix")
	f(head+"  tls: {ca: /none}\n", "line 3", "tls", "/none")
	f(head+"  passwords: /none\n", "line 3", "passwords", "/none")
	f(head+"max_clients: -1\n", "line 3", "max_clients")
	f(head+"max_outstanding: 0\n", "line 3", "max_outstanding")
	f(head+"max_line: 100\n", "line 3", "max_line")
	f(head+"log: {requests: {every: -1}}\n", "line 3", "log: requests: every", "-1")
	f(head+"log:\n  slow: {over: soon}\n", "line 4", "soon")
	f(head+"log:\n  slow: {rate: 0}\n", "line 4", "rate", "less than 1")
	f(head+"log:\n  slow: {keep: 10001}\n", "line 4", "keep", "10001")
	f(head+"log:\n  traces: {endpoint: \"http://h:1\"}\n", "line 4", "endpoint", "log.requests.every")
	f(head+"log:\n  requests: {every: 1}\n  traces: {endpoint: \"h:4318\"}\n", "line 5", "endpoint", "h:4318")
	f(head+"advertise: [here]\n", "line 3", "advertise", "here")
	f("pool: [\n", "line")
}

// Every distribution the documentation names builds.
func TestDistributionsBuild(t *testing.T) {
	for _, name := range distributions() {
		p := defaultConfig().Pool
		p.Distribution = name
		for _, s := range []string{"10.0.0.1:11211", "10.0.0.2:11211", "10.0.0.3:11211"} {
			var sc serverConfig
			if err := sc.UnmarshalText([]byte(s)); err != nil {
				t.Fatal(err)
			}
			p.Servers = append(p.Servers, sc)
		}
		tab, err := buildTable(&p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := tab.Picker.Pick(nil, tab.KeyHash([]byte("user:1")), 1); len(got) != 1 || got[0] > 2 {
			t.Errorf("%s: picked %v", name, got)
		}
	}
}
