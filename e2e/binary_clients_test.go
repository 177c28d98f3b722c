package e2e

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

var update = flag.Bool("update", false, "rewrite the table of clients in docs/clients.md")

const (
	clientsDoc = "../docs/clients.md"
	spyJar     = "/usr/share/java/spymemcached.jar"
)

// TestBinaryClients is TestClients for clients that speak the binary protocol, some of which know no other.
func TestBinaryClients(t *testing.T) {
	compareSuites(t, []clientSuite{
		{"pylibmc-binary", 25, 3, pythonScript("pylibmc", "pylibmc_checks.py", "binary")},
		{"php-memcached-binary", 26, 3, phpScript("binary")},
		{"python-binary-memcached", 21, 3, pythonScript("bmemcached", "../binary/bmemcached_checks.py")},
		{"perl-memcached-libmemcached-binary", 19, 3, perlLibmemcached},
		{"ruby-dalli-binary", 28, 3, dalli},
		{"spymemcached-binary", 22, 3, spymemcached("binary")},
		{"spymemcached-text", 20, 3, spymemcached("text")},
	})
}

func perlLibmemcached(t *testing.T, addr string) map[string]string {
	memcachedtest.Need(t, "perl")
	if err := exec.Command("perl", "-MMemcached::libmemcached", "-e", "1").Run(); err != nil {
		memcachedtest.Missing(t, "perl has no Memcached::libmemcached")
	}
	return script(t, addr, "perl", "../binary/libmemcached_checks.pl")
}

func dalli(t *testing.T, addr string) map[string]string {
	ruby := memcachedtest.Need(t, "ruby")
	if err := exec.Command(ruby, "-e", `require "dalli"; exit Dalli::VERSION.start_with?("3.0.")`).Run(); err != nil {
		memcachedtest.Missing(t, "ruby has no dalli 3.0, the last that knows the binary protocol only")
	}
	return script(t, addr, ruby, "../binary/dalli_checks.rb")
}

// spymemcached runs the Java client, compiled on the way.
func spymemcached(protocol string) func(*testing.T, string) map[string]string {
	return func(t *testing.T, addr string) map[string]string {
		memcachedtest.Need(t, "javac") // java runs a source file only with the compiler installed
		java := memcachedtest.Need(t, "java")
		if _, err := os.Stat(spyJar); err != nil {
			memcachedtest.Missing(t, "spymemcached is not installed: "+err.Error())
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatalf("cannot split %q: %v", addr, err)
		}
		return outcomesOf(t, output(t, "testdata/binary", java, "-cp", spyJar, "SpyChecks.java", host, port, protocol))
	}
}

// TestClientAuthenticates has a real client log in by SASL.
func TestClientAuthenticates(t *testing.T) {
	needPython(t, "bmemcached")
	passwords := file(t, "passwords", "ann:secret\n")
	r := startWith(t, steadyBackends(t, 2), "listen:\n  - {address: 127.0.0.1:0, passwords: "+passwords+"}")
	f := func(password, want string) {
		t.Helper()
		got := output(t, "", debianPython, "-c", fmt.Sprintf(`
import bmemcached
try:
    c = bmemcached.Client(["%s"], "ann", "%s")
    print(c.set("a", "value"), c.get("a"))
except bmemcached.exceptions.MemcachedException:
    print("refused")`, r.addr, password))
		if strings.TrimSpace(got) != want {
			t.Errorf("with password %q the client says %q, want %q", password, got, want)
		}
	}
	f("secret", "True value")
	f("wrong", "refused")
}

// recordSuite compares a suite's outcome with its row in the table of clients; with -update it writes the row.
func recordSuite(t *testing.T, s clientSuite, plain, routed map[string]string) {
	t.Helper()
	head := "| " + s.name + " |"
	row := fmt.Sprintf("%s %d | %d | %d |\n", head, len(plain), count(plain, "pass"), count(routed, "pass"))
	text, err := os.ReadFile(clientsDoc)
	if err != nil {
		t.Fatalf("cannot read the table of clients: %v", err)
	}
	doc := string(text)
	if strings.Contains(doc, row) {
		return
	}
	if !*update {
		t.Errorf("%s has no row %q; run this test with -update", clientsDoc, row)
		return
	}
	if err := os.WriteFile(clientsDoc, []byte(withRow(doc, head, row)), 0o644); err != nil {
		t.Fatalf("cannot write the table of clients: %v", err)
	}
}

// withRow puts a row in place of that with the same head, or at the end of the table.
func withRow(doc, head, row string) string {
	at := strings.Index(doc, head)
	if at < 0 {
		at = strings.LastIndex(doc, "|\n") + len("|\n")
		return doc[:at] + row + doc[at:]
	}
	end := at + strings.Index(doc[at:], "\n") + 1
	return doc[:at] + row + doc[end:]
}
