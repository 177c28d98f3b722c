package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"cacherouter/internal/built"
	"cacherouter/internal/conformance"

	"github.com/bradfitz/gomemcache/memcache"
)

// devPatience bounds waits for the process; it is long because machines may be busy.
const devPatience = 30 * time.Second

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// builtBinary builds the command, once.
var builtBinary = built.Router("cacherouter", "-race")

// startDev runs the command's dev. It returns when the banner is complete,
// with the banner and a function that interrupts the process and returns its end.
func startDev(t *testing.T, args ...string) (shown string, stop func() error) {
	t.Helper()
	binary, err := builtBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append([]string{"dev"}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=20")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(devPatience, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		overdue.Stop()
		cmd.Process.Kill() // in vain if it has ended
		cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	for lines := bufio.NewScanner(out); !strings.Contains(shown, "Ctrl-C"); shown += lines.Text() + "\n" {
		if !lines.Scan() {
			t.Fatalf("the banner ends early: %q", shown)
		}
	}
	overdue.Stop() // what is asked of the process has deadlines of its own
	return shown, func() error {
		overdue.Reset(devPatience)
		return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
	}
}

// inBanner returns what the groups of a pattern match in the banner.
func inBanner(t *testing.T, shown, pattern string) []string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(shown)
	if m == nil {
		t.Fatalf("no %s in the banner:\n%s", pattern, shown)
	}
	return m[1:]
}

func TestDev(t *testing.T) {
	shown, stop := startDev(t, "--backends=4", "--memory=8", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0")
	addr := inBanner(t, shown, `clients +(\S+)`)[0]
	c := memcache.New(addr)
	c.Timeout = devPatience
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprint("key", i))
		if err := c.Set(&memcache.Item{Key: keys[i], Value: []byte(keys[i])}); err != nil {
			t.Fatal(err)
		}
	}
	items, err := c.GetMulti(keys)
	if err != nil || len(items) != len(keys) {
		t.Errorf("got %d of %d items: %v", len(items), len(keys), err)
	}
	c.Close()
	resp, err := http.Get(inBanner(t, shown, `curl (http://\S+/metrics)`)[0])
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(metrics), "cacherouter_") {
		t.Errorf("metrics: %.100q, %v", metrics, err)
	}
	checkHomes(t, shown, keys)
	checkExample(t, shown)
	if err := stop(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("still listening after Ctrl-C")
	}
}

// checkHomes asks the embedded servers themselves, where the banner's command says
// that keys live.
func checkHomes(t *testing.T, shown string, keys []string) {
	t.Helper()
	servers := inBanner(t, shown, `where (--backends \S+) hello`)[0]
	status, out, errs := command(append(append([]string{"where"}, strings.Fields(servers)...), keys...)...)
	if status != 0 {
		t.Fatalf("where: status %d, %s", status, errs)
	}
	homes := make(map[string]bool)
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		_, addr, _ := strings.Cut(f[1], "=")
		homes[addr] = true
		if got := ask(t, addr, "get "+f[0]+"\r\nquit\r\n"); !strings.HasPrefix(got, "VALUE "+f[0]+" ") {
			t.Errorf("%s is not where it should be, %s: %q", f[0], addr, got)
		}
	}
	if len(homes) != 4 {
		t.Errorf("100 keys live on %d of 4 servers", len(homes))
	}
}

// checkExample sends what the banner's first command sends.
func checkExample(t *testing.T, shown string) {
	t.Helper()
	m := inBanner(t, shown, `printf '(.*)' \| nc (\S+) (\d+)`)
	request := strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(m[0])
	want := "STORED\r\nVALUE hello 0 5\r\nworld\r\nEND\r\n"
	if got := ask(t, net.JoinHostPort(m[1], m[2]), request); got != want {
		t.Errorf("the banner's example answers %q, want %q", got, want)
	}
}

// ask sends a request that ends in quit, and returns all that comes back.
func ask(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(devPatience))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	return string(got)
}

func TestDevOnUnixSocketsAlone(t *testing.T) {
	dir := t.TempDir()
	shown, stop := startDev(t, "--backends=1", "--listen=unix:"+dir+"/a", "--listen=unix:"+dir+"/b", "--admin=")
	inBanner(t, shown, `clients +(`+dir+`/a)\n +clients +(`+dir+`/b)\n`)
	inBanner(t, shown, `(nc -U `+dir+`/a)\n`)
	if strings.Contains(shown, "curl") {
		t.Errorf("the banner has an admin server where there is none:\n%s", shown)
	}
	if err := stop(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

// What a newcomer tries must be answered as with real memcached behind the router.
func TestDevAnswersTheCases(t *testing.T) {
	shown, stop := startDev(t, "--listen=127.0.0.1:0", "--admin=")
	addr := inBanner(t, shown, `clients +(\S+)`)[0]
	cases, err := conformance.RouterCases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if err := errors.Join(conformance.Flush(addr), conformance.Replay(addr, c)); err != nil {
			t.Error(err)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

func TestDevRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if status, _, errs := command(append([]string{"dev"}, args...)...); status != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %q, want %q", args, status, errs, want)
		}
	}
	f("backends: 0", "--backends=0")
	f("memory: 0", "--memory=0")
	f("admin", "--admin=nonsense")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	f("address already in use", "--listen="+taken.Addr().String(), "--admin=")
}

func TestBannerCommands(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(netcat(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:11311"))), "nc 127.0.0.1 11311")
	f(netcat(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::]:11311"))), "nc localhost 11311")
	f(netcat(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("0.0.0.0:1"))), "nc localhost 1")
	f(netcat(&net.UnixAddr{Net: "unix", Name: "/tmp/s"}), "nc -U /tmp/s")
	f(program("bin/cacherouter"), "bin/cacherouter")
	f(program("/tmp/go-build123/b001/exe/cacherouter"), "go run ./cmd/cacherouter")
}
