package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cacherouter/membership/damping"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Each constant of the packages can be set, but for what the command fills in itself.
func TestAllConstantsCanBeSet(t *testing.T) {
	f := func(constants, section any, own string) {
		t.Helper()
		c, s := reflect.TypeOf(constants), reflect.TypeOf(section)
		for i := range c.NumField() {
			name := c.Field(i).Name
			_, ok := s.FieldByName(name)
			if filled := strings.Contains(own, name); c.Field(i).IsExported() && ok == filled {
				t.Errorf("%v: field %s is in the section: %v, want %v", c, name, ok, !filled)
			}
		}
	}
	f(health.Config{}, healthConfig{}, "")
	f(damping.Config{}, dampingConfig{}, "")
	f(view.Config{}, viewConfig{}, "Router Boot Alone Expected Parameters Damping")
}

func TestConstantsArrive(t *testing.T) {
	c := defaultConfig()
	h, v, j, p := c.Membership.constants()
	if want := (health.Config{}).WithDefaults(); h != want {
		t.Errorf("health %+v, want %+v", h, want)
	}
	if want := (view.Config{}).WithDefaults(); v != want {
		t.Errorf("view %+v, want %+v", v, want)
	}
	if j.MaxKeys != 65536 || j.MaxBytes != 8<<20 || p.Quarantine || p.MaxOutage != 10*time.Minute {
		t.Errorf("journal %+v, policy %+v", j, p)
	}
	c, err := loadConfig(writeConfig(t, `
pool: {servers: [h:1]}
membership:
  readmit: quarantine
  health: {fall: 7, aggression: 1.5}
  view: {steady: 9s}
  damping: {off: true, suppress: 1000}
`))
	if err != nil {
		t.Fatal(err)
	}
	h, v, _, p = c.Membership.constants()
	if h.Fall != 7 || h.Aggression != 1.5 || h.Rise != 2 || v.Steady != 9*time.Second || !v.Damping.Off || v.Damping.Suppress != 1000 || !p.Quarantine {
		t.Errorf("health %+v, view %+v, policy %+v", h, v, p)
	}
}

func TestBadMembershipSaysWhereAndWhat(t *testing.T) {
	const head = "pool:\n  servers: [h:1, h:2]\n"
	const gossip = "gossip:\n  bind: 127.0.0.1:0\n"
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("not a key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(text string, want ...string) {
		t.Helper()
		refuses(t, text, want...)
	}
	f(head+"gossip:\n  join: [h:1]\n", "line 4", "join", "bind")
	f(head+"gossip:\n  bind: here\n", "line 4", "bind", "here")
	f(head+"gossip:\n  bind: unix:/x\n", "line 4", "bind", "host:port")
	f(head+gossip+"  join: [there]\n", "line 5", "join", "there")
	f(head+gossip+"  advertise: there\n", "line 5", "advertise", "there")
	f(head+gossip+"  expected: 1000\n", "line 5", "expected")
	f(head+gossip+"  keyring: /none\n", "line 5", "keyring", "/none")
	f(head+gossip+"  keyring: "+bad+"\n", "line 5", "keyring", "line 1", "base64")
	f(head+gossip+"membership: {enabled: false}\n", "line 4", "bind", "membership")
	f(head+"announce: [a=h:1]\n", "line 3", "announce", "gossip")
	f(head+gossip+"announce:\n  - a=h:1\n  - b=h\n", "line 7", "announce", "server b")
	f(head+"membership:\n  failover_writes: maybe\n", "line 4", "failover_writes", "at_once")
	f(head+"membership:\n  readmit: maybe\n", "line 4", "readmit", "quarantine")
	f(head+"membership:\n  failover_ttl: 10ms\n", "line 4", "failover_ttl")
	f(head+"membership:\n  handover: 1s\n", "line 4", "handover", "5s")
	f(head+"membership:\n  health:\n    fall: 0\n", "line 5", "fall", "not over 0")
	f(head+"membership:\n  health:\n    interval: 0s\n", "line 5", "interval", "not over 0")
	f(head+"membership:\n  health:\n    min_weight: 1001\n", "line 5", "min_weight", "1000")
	f(head+"membership:\n  health:\n    nonsense: 1\n", "line 5", "nonsense")
	f(head+"membership:\n  view:\n    commit: 2s\n", "line 5", "commit", "activation")
	f(head+"membership:\n  view:\n    fresh: 900ms\n", "line 5", "fresh", "beats")
	f(head+"membership:\n  damping:\n    reuse: 2000\n", "line 5", "reuse", "suppress")
	f("pool:\n  dns: [cache.example]\n", "line 2", "dns", "host:port")
	f("pool:\n  dns: [\"cache.example:0\"]\n", "line 2", "dns", "host:port")
	f("pool:\n  srv: [\"\"]\n", "line 2", "srv", "empty")
	f("pool:\n  file: /none\n", "line 2", "file", "/none")
	f("pool:\n  announced: true\n", "line 2", "announced", "gossip")
	f("pool:\n  srv: [x]\n  resolver: y\n", "line 3", "resolver", "host:port")
	f("pool:\n  srv: [x]\nmembership:\n  enabled: false\n", "line 2", "srv", "membership")
	f("pool:\n  srv: [x]\n  hash: md5\n", "line 3", "hash")
	f(head+"name: "+strings.Repeat("x", 256)+"\n", "line 3", "name")
}

// What finds servers while the router runs is enough, and each sort becomes a source.
func TestSources(t *testing.T) {
	list := filepath.Join(t.TempDir(), "servers")
	if err := os.WriteFile(list, []byte("f=10.0.0.9:11211@3 # more\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(writeConfig(t, `
gossip: {bind: "127.0.0.1:0"}
pool:
  file: `+list+`
  dns: ["cache.example:11211"]
  srv: [_memcache._tcp.cache.example]
  announced: true
membership: {lists: {confirm: 5}}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := newSources(&c.Pool, &c.Membership.Lists, nil, nil)
	var names []string
	for _, w := range s.watchers {
		names = append(names, w.Name)
		if w.Guard.Confirm != 5 {
			t.Errorf("%s: guard %+v", w.Name, w.Guard)
		}
	}
	want := "file " + list + ", dns cache.example:11211, srv _memcache._tcp.cache.example, announced"
	if got := strings.Join(names, ", "); got != want || s.announced == nil || s.static != nil {
		t.Errorf("sources %s, want %s", got, want)
	}
	s.watchers[0].Look(t.Context())
	if got := s.watchers[0].List(); len(got) != 1 || got[0].String() != "f=10.0.0.9:11211@3" {
		t.Errorf("the file gives %v", got)
	}
}

func TestStaticSourceFollowsReloads(t *testing.T) {
	c := defaultConfig()
	c.Pool.Servers = []serverConfig{{Name: "a", Address: "h:1", Weight: 1}, {Name: "b", Address: "h:2", Weight: 1}, {Name: "c", Address: "h:3", Weight: 1}}
	s := newSources(&c.Pool, &c.Membership.Lists, nil, nil)
	s.watchers[0].Look(t.Context())
	s.static.set([]serverConfig{{Name: "d", Address: "h:4", Weight: 7}})
	s.watchers[0].Look(t.Context())
	if got := s.watchers[0].List(); len(got) != 1 || got[0].String() != "d=h:4@7" {
		t.Errorf("the list is %v", got)
	}
}

func TestKeyring(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	key := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	f := func(text, wrong string, lengths ...int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := readKeyring(file)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%q: error %v, want %q", text, err, wrong)
			}
			return
		}
		var got []int
		for _, k := range keys {
			got = append(got, len(k))
		}
		if err != nil || !reflect.DeepEqual(got, lengths) {
			t.Errorf("%q: keys of %v bytes, %v, want %v", text, got, err, lengths)
		}
	}
	f("# first\n\n "+key(32)+"\r\n"+key(16)+"\n"+key(24), "", 32, 16, 24)
	f("", "no keys")
	f(key(15)+"\n", "line 1")
	f(key(32)+"\nsecret!\n", "line 2")
	if _, err := readKeyring(file); strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells the key: %v", err)
	}
}

func TestRouterName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	f := func(name, admin, listen, want string) {
		t.Helper()
		c := config{Name: name, Admin: admin, Listen: []listenerConfig{{Address: listen}}}
		if got := c.routerName(); !strings.HasPrefix(got, want) {
			t.Errorf("%q %q %q: named %q, want %q", name, admin, listen, got, want)
		}
	}
	f("r1", "h:1", "h:2", "r1")
	f("", "h:1", "h:2", host+":1")
	f("", "", "h:2", host+":2")
	f("", "h:0", "h:2", host+":2")
	f("", "", "unix:/x", host+"/")
}

// What the configuration does not tell is said, and asked for where nothing else is known.
func TestPoolsThatAreFoundLater(t *testing.T) {
	later := writeConfig(t, "pool:\n  srv: [x]\n")
	status, out, _ := command("check", "--config", later)
	if status != 0 || !strings.Contains(out, "found by pool.srv") {
		t.Errorf("check: status %d, %q", status, out)
	}
	for _, args := range [][]string{{"where", "--config", later, "k"}, {"plan", "--config", later, "--add=h:9"}} {
		if status, _, errs := command(args...); status != 1 || !strings.Contains(errs, "running router") {
			t.Errorf("%v: status %d, %q", args, status, errs)
		}
	}
	if status, out, errs := command("where", "--config", later, "--backends", "h:1", "k"); status != 0 || out != "k\th:1\n" || errs != "" {
		t.Errorf("where with servers given: status %d, %q, %q", status, out, errs)
	}
	both := writeConfig(t, "pool:\n  srv: [x]\n  servers: [h:1]\n")
	if status, out, errs := command("where", "--config", both, "k"); status != 0 || out != "k\th:1\n" || !strings.Contains(errs, "pool.srv") {
		t.Errorf("where with both: status %d, %q, %q", status, out, errs)
	}
}
