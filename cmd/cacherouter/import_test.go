package main

import (
	"strings"
	"testing"
)

const nutcrackerYML = `
alpha:
  listen: 127.0.0.1:22121
  hash: fnv1a_64
  hash_tag: "{}"
  distribution: ketama
  auto_eject_hosts: true
  server_retry_timeout: 2000
  server_failure_limit: 1
  timeout: 400
  client_connections: 100
  backlog: 1024
  servers:
   - 127.0.0.1:31211:1 server1
   - 127.0.0.1:31212:2 server2
   - 127.0.0.1:31213:3
beta:
  listen: /var/run/nutcracker.sock 0666
  distribution: modula
  servers:
   - 127.0.0.1:11211:1
`

func TestImportNutcracker(t *testing.T) {
	file := writeConfig(t, nutcrackerYML)
	status, out, errs := command("import", file, "--pool=alpha", "--sample=500")
	if status != 0 {
		t.Fatal(errs)
	}
	for _, comment := range []string{"auto_eject_hosts", "server_retry_timeout", "server_failure_limit", "backlog"} {
		if !strings.Contains(out, "# "+comment+" has no counterpart") {
			t.Errorf("nothing said of %s:\n%s", comment, out)
		}
	}
	c, err := loadConfig(writeConfig(t, out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if c.Pool.Distribution != "twemproxy-ketama" || c.Pool.HashTag != "{}" || c.Pool.Timeout.String() != "400ms" || c.MaxClients != 100 ||
		c.Listen[0].Address != "127.0.0.1:22121" || c.Pool.Servers[0].Name != "server1" || c.Pool.Servers[1].Weight != 2 || c.Pool.Servers[2].Name != "127.0.0.1:31213" {
		t.Errorf("got %+v", c)
	}
	status, out, errs = command("import", file, "--pool=beta", "--sample=500")
	if status != 0 || !strings.Contains(out, `"unix:/var/run/nutcracker.sock"`) || !strings.Contains(out, "0666") || !strings.Contains(out, "# timeout") {
		t.Errorf("%s%s", out, errs)
	}
}

// All pools of a file become pools of ours, each behind its own listener; those of Redis do not.
func TestImportPools(t *testing.T) {
	redis := "gamma:\n  redis: true\n  servers: [127.0.0.1:6379:1]\n"
	status, out, errs := command("import", writeConfig(t, nutcrackerYML+redis), "--sample=500")
	if status != 0 || !strings.Contains(out, "gamma is left out") {
		t.Fatalf("%s%s", out, errs)
	}
	c, err := loadConfig(writeConfig(t, out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(c.Pools) != 2 || c.Pools["alpha"].HashTag != "{}" || c.Pools["beta"].Distribution != "twemproxy-modula" || c.MaxClients != 0 {
		t.Errorf("got %+v", c.Pools)
	}
	for i, want := range []struct{ address, pool string }{{"127.0.0.1:22121", "alpha"}, {"unix:/var/run/nutcracker.sock", "beta"}} {
		if l := c.Listen[i]; l.Address != want.address || len(l.Routes) != 1 || l.Routes[0].Pool != want.pool {
			t.Errorf("listener %d: %+v", i, l)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	f := func(text, want string, args ...string) {
		t.Helper()
		status, _, errs := command(append([]string{"import", writeConfig(t, text)}, args...)...)
		if status != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %q", text, status, errs)
		}
	}
	f(nutcrackerYML, "no pool gamma", "--pool=gamma")
	f("", "no pool")
	f("a:\n  redis: true\nb:\n  redis: true\n", "no pool for memcached")
	f("a:\n  redis: true\n  servers: [h:1:1]\n", "memcached only")
	f("a:\n  distribution: random\n  servers: [h:1:1]\n", "random")
	f("a:\n  hash: nosuch\n  servers: [h:1:1]\n", "nosuch")
	f("a:\n  servers: [h:1]\n", "host:port")
	f("a:\n  servers: []\n", "at least one")
	f("a:\n  nonsense: 1\n  servers: [h:1:1]\n", "line 2")
}
