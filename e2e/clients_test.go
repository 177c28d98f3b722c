package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/memcachedtest"
)

// debianPython is the interpreter that Debian's python3-* packages belong to; another python3 may come first in PATH.
const debianPython = "/usr/bin/python3"

// clientSuite is a set of checks of one client program. Its run returns the outcome of each by name: "pass", or why
// not.
type clientSuite struct {
	name     string
	least    int // checks that must pass on plain memcached, so that a suite which runs nothing cannot succeed
	backends int // behind the router
	run      func(t *testing.T, addr string) map[string]string
}

// TestClients runs real, unmodified clients first on plain memcached and then through the router: the same checks must
// pass, by name.
func TestClients(t *testing.T) {
	suites := []clientSuite{
		{"gomemcache", 18, 3, gomemcacheChecks},
		{"meta (the tests' own)", 18, 3, metaChecks},
		{"pymemcache", 46, 3, pymemcacheTests},
		{"pylibmc", 26, 3, pythonScript("pylibmc", "pylibmc_checks.py")},
		{"python-memcache", 18, 3, pythonScript("memcache", "python_memcache_checks.py")},
		{"php-memcached", 28, 3, phpScript()},
		{"perl-cache-memcached-fast", 19, 3, perlScript},
		{"libmemcached-tools", 16, 3, toolsScript},
		{"memccapable-text", 25, 1, memccapable("-a")},
		{"memccapable-binary", 27, 3, memccapable("-b")},
	}
	compareSuites(t, suites)
}

// compareSuites runs each suite on plain memcached and through the router.
func compareSuites(t *testing.T, suites []clientSuite) {
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			if !*update { // suites take turns at the file
				t.Parallel() // most of them sleep more than they work
			}
			plain := s.run(t, memcachedtest.Start(t).Addr())
			if passed := count(plain, "pass"); passed < s.least {
				t.Fatalf("%d checks pass on plain memcached, want at least %d: %v", passed, s.least, failures(plain))
			}
			r := startRouter(t, memcachedtest.Addrs(memcachedtest.StartN(t, s.backends)))
			routed := s.run(t, r.addr)
			if diff := cmp.Diff(passes(plain), passes(routed)); diff != "" {
				t.Errorf("through the router (+) other checks pass than on memcached (-):\n%s\n%v", diff, failures(routed))
			}
			recordSuite(t, s, plain, routed)
		})
	}
}

func count(outcomes map[string]string, outcome string) int {
	n := 0
	for _, o := range outcomes {
		if o == outcome {
			n++
		}
	}
	return n
}

func passes(outcomes map[string]string) []string {
	var names []string
	for name, o := range outcomes {
		if o == "pass" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func failures(outcomes map[string]string) []string {
	var lines []string
	for name, o := range outcomes {
		if o != "pass" {
			lines = append(lines, name+": "+o)
		}
	}
	sort.Strings(lines)
	return lines
}

// output runs a client program and returns what it printed. Its exit status is not looked at: the lines tell.
func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s did not end in %v:\n%s", program, 4*patience, out)
	}
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatalf("cannot run %s: %v", program, err)
	}
	return string(out)
}

// script runs one of testdata/clients, with the host, the port and more arguments, and reads its PASS and FAIL lines.
func script(t *testing.T, addr, program, file string, args ...string) map[string]string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatalf("cannot split %q: %v", addr, err)
	}
	out := output(t, "testdata/clients", program, append([]string{file, host, port}, args...)...)
	return outcomesOf(t, out)
}

// outcomesOf reads PASS and FAIL lines.
func outcomesOf(t *testing.T, out string) map[string]string {
	t.Helper()
	outcomes := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "PASS "); ok {
			outcomes[name] = "pass"
		} else if rest, ok := strings.CutPrefix(lines.Text(), "FAIL "); ok {
			name, why, _ := strings.Cut(rest, ": ")
			outcomes[name] = why
		}
	}
	if len(outcomes) == 0 {
		t.Errorf("no outcome was printed:\n%s", out)
	}
	return outcomes
}

func pythonScript(module, file string, args ...string) func(*testing.T, string) map[string]string {
	return func(t *testing.T, addr string) map[string]string {
		needPython(t, module)
		return script(t, addr, debianPython, file, args...)
	}
}

func needPython(t *testing.T, modules ...string) {
	t.Helper()
	memcachedtest.Need(t, debianPython)
	for _, module := range modules {
		if out, err := exec.Command(debianPython, "-c", "import "+module).CombinedOutput(); err != nil {
			memcachedtest.Missing(t, fmt.Sprintf("%s has no module %s: %s", debianPython, module, out))
		}
	}
}

func phpScript(args ...string) func(*testing.T, string) map[string]string {
	return func(t *testing.T, addr string) map[string]string {
		memcachedtest.Need(t, "php")
		if out, err := exec.Command("php", "-m").Output(); err != nil || !strings.Contains(string(out), "memcached") {
			memcachedtest.Missing(t, "php has no memcached extension")
		}
		return script(t, addr, "php", "php_checks.php", args...)
	}
}

func perlScript(t *testing.T, addr string) map[string]string {
	memcachedtest.Need(t, "perl")
	if err := exec.Command("perl", "-MCache::Memcached::Fast", "-e", "1").Run(); err != nil {
		memcachedtest.Missing(t, "perl has no Cache::Memcached::Fast")
	}
	return script(t, addr, "perl", "perl_checks.pl")
}

func toolsScript(t *testing.T, addr string) map[string]string {
	memcachedtest.Need(t, "memcping")
	return script(t, addr, "sh", "libmemcached_tools.sh")
}

var memccapableLine = regexp.MustCompile(`(?m)^((?:ascii|binary) .*?)\s+\[(\w+)\]`)

// memccapable runs one half of libmemcached's protocol test: -a for text, -b for binary.
func memccapable(half string) func(*testing.T, string) map[string]string {
	return func(t *testing.T, addr string) map[string]string {
		memcachedtest.Need(t, "memccapable")
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatalf("cannot split %q: %v", addr, err)
		}
		out := output(t, "", "memccapable", "-h", host, "-p", port, half)
		outcomes := make(map[string]string)
		for _, m := range memccapableLine.FindAllStringSubmatch(out, -1) {
			outcomes[m[1]] = m[2]
		}
		return outcomes
	}
}

var pytestLine = regexp.MustCompile(`(?m)^\S*::(\S+(?:\[.*\])?) (PASSED|FAILED|ERROR)`)

// pymemcacheTests runs pymemcache's own integration tests, as its Debian package ships them.
func pymemcacheTests(t *testing.T, addr string) map[string]string {
	needPython(t, "pymemcache", "pytest")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatalf("cannot split %q: %v", addr, err)
	}
	out := output(t, copyOf(t, "/usr/lib/python3/dist-packages/pymemcache"), debianPython, "-m", "pytest", "-v", "-p", "no:cacheprovider",
		"pymemcache/test/test_integration.py", "-m", "integration", "--server", host, "--port", port, "-k", "not tls")
	outcomes := make(map[string]string)
	for _, m := range pytestLine.FindAllStringSubmatch(out, -1) {
		outcomes[m[1]] = map[string]string{"PASSED": "pass"}[m[2]] + map[string]string{"FAILED": "fail", "ERROR": "error"}[m[2]]
	}
	if len(outcomes) != count(outcomes, "pass") {
		t.Log(out)
	}
	return outcomes
}

// copyOf copies a package into a fresh folder, so that running its tests writes nothing beside the original.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "test", "test_integration.py")); err != nil {
		memcachedtest.Missing(t, "pymemcache is not installed with its tests: "+err.Error())
	}
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, filepath.Base(dir)), os.DirFS(dir)); err != nil {
		t.Fatalf("cannot copy %s: %v", dir, err)
	}
	return to
}
