// Package cacherouter_test checks what the packages of this module may import.
package cacherouter_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "cacherouter"

// listed is what the go command tells of a package.
type listed struct {
	ImportPath string
	Imports    []string // of the package itself, not of its tests
	Deps       []string // all that is linked with it
}

// path returns the import path within the module.
func (p *listed) path() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func packages(t *testing.T) (all []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath != module { // this test
			all = append(all, p)
		}
	}
	if len(all) < 10 {
		t.Fatalf("the go command lists only %d packages", len(all))
	}
	return all
}

// under reports whether an import path is root or lies below it.
func under(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

func underAny(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return under(path, root) })
}

// ours are the rules for imports within the module: what is below a path may import what
// is below those listed, and its own kind.
var ours = []struct {
	path, may, why string
}{
	{"ring", "", "placement is a pure function of names and keys, and anybody may use it alone"},
	{"rendezvous", "", "placement is a pure function of names and keys, and anybody may use it alone"},
	{"maglev", "rendezvous", "beyond the home its candidates follow in rendezvous order"},
	{"compat", "", "what other proxies do must not follow what we do"},
	{"mcrouter", "compat", "another program's configuration is read by its own rules"},
	{"bounded", "", "the load bound is arithmetic on counters; it never sees servers or sockets"},
	{"balance", "", "choosing among candidates needs their loads, not what they are"},
	{"meter", "balance", "what a server says of its load says nothing of how requests are carried"},
	{"coalesce", "", "a flight does not know what flies in it"},
	{"epoch", "", "what was written is told by hash; what a write is, others know"},
	{"hotkey", "epoch", "counting keys needs bytes only, and what is kept needs to know of writes"},
	{"refresh", "", "what a reply means for those who wait for it can be read without a connection"},
	{"latency", "", "counting durations is arithmetic"},
	{"client", "router reactor", "a client in the process knows its router, and nothing beneath it but how to speak to it"},
	{"handoff", "", "what is handed over is sockets and bytes, whatever speaks on them"},
	{"reload", "", "what a change is in words has nothing to do with how it is made"},
	{"fresh", "", "watching a file for changes has nothing to do with caches"},
	{"memproto", "", "the wire is bytes in, requests and replies out"},
	{"reactor", "latency", "event loops know bytes, not memcached"},
	{"backend", "memproto reactor latency internal/prefetch", "a server's connections must not know which client asks, or why this server"},
	{"quota", "", "counting what may be asked needs no more than a clock"},
	{"router", "backend memproto reactor latency bounded balance coalesce epoch hotkey refresh quota internal/prefetch", "how keys are placed, who is a member and what is shown are told to it, so that each can change alone"},
	{"membership", "fresh", "who is in is decided from what is observed, not from how requests are carried"},
	{"embedded", "memproto", "the stand-in server must be able to disagree with the router about everything but the wire"},
	{"accesslog", "router", "what became of a request is told by the router, and only written down"},
	{"tracing", "accesslog router memproto", "what became of a request is told by the router, and only sent on"},
	{"admin", "accesslog backend memproto router membership reactor hotkey latency reload", "what is shown is read from the router; nothing is decided here"},
	{"top", "admin", "what a terminal shows is what the JSON API says, and nothing else"},
	{"loadtest", "", "what measures the router must not share its mistakes, nor its loops"},
	{"loadtest/lab", "bounded balance ring rendezvous maglev hotkey membership/subset membership/damping membership/health membership/view membership/discover", "the lab studies the product's own decisions, without its sockets: what membership decides is pure, and of discover it is the guard"},
	{"loadtest/walk", "loadtest ring", "another proxy's rule is compared on the product's own ring, without its sockets"},
	{"deploy", "", "examples are tested as their users have them"},
	{"e2e", "", "the suites see the program from outside"},
	{"internal/memcachedtest", "", "real servers are started, not imitated"},
	{"internal/built", "", "how a binary is built has nothing to do with what it does"},
	{"internal/history", "", "a judge must not know the accused"},
	{"internal/netlab", "internal/memcachedtest", "a network does not know what talks over it; only what is missing is said in one way"},
	{"internal/conformance", "internal/memcachedtest", "one suite judges router and memcached alike, and reaches both as test servers are reached"},
}

// hasNarrowerRule reports whether a rule below another one is for a path.
func hasNarrowerRule(path, rule string) bool {
	for _, other := range ours {
		if other.path != rule && under(other.path, rule) && under(path, other.path) {
			return true
		}
	}
	return false
}

func TestImportsWithinTheModule(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range ours {
			if !under(p.path(), rule.path) || hasNarrowerRule(p.path(), rule.path) {
				continue
			}
			for _, imported := range p.Imports {
				name, isOurs := strings.CutPrefix(imported, module+"/")
				if isOurs && !underAny(name, append(strings.Fields(rule.may), rule.path)) {
					t.Errorf("%s imports %s: %s", p.path(), name, rule.why)
				}
			}
		}
	}
}

// foreign are the imports that belong to certain packages alone.
var foreign = []struct {
	path, only, why string
}{
	{"net/http", "admin tracing e2e loadtest/fleet loadtest/chaos", "one small server answers HTTP, on a port of its own; only tools ask it, and Docker, and traces go out by it"},
	{"go.opentelemetry.io", "tracing", "one package knows how traces are sent"},
	{"github.com/prometheus", "admin", "everything else keeps plain counters"},
	{"github.com/hashicorp/memberlist", "membership", "gossip must be replaceable, and only membership needs it"},
	{"github.com/coreos/go-systemd", "cmd", "only a whole process has to do with systemd"},
	{"unsafe", "reactor loadtest/load internal/prefetch", "only raw system calls need it, and who asks for memory by its address"},
	{"github.com/bradfitz/gomemcache", "loadtest/load", "one of the load test's clients; the product is no client"},
	{"github.com/HdrHistogram", "loadtest", "the path of a request has its own, smaller histograms"},
	{"testing", "internal", "programs do not contain their tests"},
	{"log", "membership/gossip", "there is one logger, log/slog, and it is passed in; only memberlist wants the old one"},
	{"github.com/anishathalye/porcupine", "internal/history", "one package judges histories"},
	{"github.com/google/go-cmp", "", "it is for tests"},
	{"pgregory.net/rapid", "", "it is for tests"},
	{"go.uber.org/goleak", "", "it is for tests"},
}

func TestForeignImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range foreign {
			for _, imported := range p.Imports {
				forbidden := under(imported, rule.path) && imported != "log/slog"
				if forbidden && !underAny(p.path(), strings.Fields(rule.only)) {
					t.Errorf("%s imports %s: %s", p.path(), imported, rule.why)
				}
			}
		}
	}
}

// links are the rules for all that comes along with a package.
var links = []struct {
	path, never, why string
}{
	{"memproto", "net", "the wire has no sockets"},
	{"ring", "net", "placement sees no addresses"},
	{"rendezvous", "net", "placement sees no addresses"},
	{"maglev", "net", "placement sees no addresses"},
	{"compat", "net", "placement sees no addresses"},
	{"cmd", "google.golang.org/grpc", "traces go by plain HTTP; gRPC makes a binary 8 MB larger"},
	{"router", "net/http github.com/prometheus go.opentelemetry.io", "the path of a request has no metrics library in it"},
	{"loadtest", module + "/router " + module + "/backend " + module + "/reactor", "what measures the router must not be made of it"},
}

func TestLinkedPackages(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range links {
			if !under(p.path(), rule.path) {
				continue
			}
			for _, dep := range p.Deps {
				if underAny(dep, strings.Fields(rule.never)) {
					t.Errorf("%s is linked with %s: %s", p.path(), dep, rule.why)
				}
			}
		}
	}
}

// Nothing is above a command.
func TestCommandsAreNotImported(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			name, isOurs := strings.CutPrefix(imported, module+"/")
			if isOurs && (under(name, "cmd") || name == "loadtest" || under(name, "e2e")) {
				t.Errorf("%s imports the command %s", p.path(), name)
			}
		}
	}
}
